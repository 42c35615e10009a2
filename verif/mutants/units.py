"""Which units are mutated, and which benches must notice: one build each, as the launchers in tests/sim run it."""

import dataclasses

from rtl.contract.config import load
from rtl.contract.link_config import LINKS, LinkConfig
from rtl.contract.switch_config import SWITCHES, SwitchConfig
from verif.mutants.unit import Unit

__all__ = ["SAMPLE", "UNMEASURED", "units"]


_STRUCTURAL = {"form": "structural"}
_WEIGHTS = (3, 1, 2, 8, 1, 1, 5, 1)
_EVERY_KIND = load("tiny", ["tensor.nvfp4=true"])
_LANES = dataclasses.replace(LINKS["x8"], spare_lanes=2, weak_corrections=8)
_FRAMES = LinkConfig(classes=2, shared_flits=8, weights=(3, 1, 1, 1, 1, 1, 1, 1))
_OUTPUT = LinkConfig(classes=2, shared_flits=12, window_flits=20)
_FOUR = SwitchConfig(ports=4, link=_OUTPUT)
_INPUT = SwitchConfig(name="small_x8", ports=4, link=LinkConfig(classes=2, shared_flits=8), length_cap_flits=7)
_MATCHING = SwitchConfig(ports=4, link=LinkConfig(weights=_WEIGHTS, strict_class=2, strict_cap=16), keep_slots=4)
_WHOLE = SwitchConfig(name="four", ports=4, link=LinkConfig(classes=2, shared_flits=28))


def _at(room: str, *names: str) -> tuple[str, ...]:
    return tuple(f"verif.benches.{room}.bench_{name}" for name in names)


def units() -> list[Unit]:
    """All that are measured, by room."""
    link, switch = LINKS["x8"], SWITCHES["sw4"]
    return [
        Unit("clock_gate", _at("base", "clock_gate")),
        Unit("fifo", _at("base", "fifo"), options={"shape": 16, "depth": 4}),
        Unit("ram_fifo", _at("base", "fifo"), options={"shape": 16, "depth": 4}),
        Unit("unpack", _at("numeric", "unpack")),
        Unit("unpack_element", _at("numeric", "unpack_element")),
        Unit("halves", _at("numeric", "halves")),
        Unit("round_bits", _at("numeric", "round_bits")),
        Unit("bf16_round", _at("numeric", "bf16_round")),
        Unit("fp32_add", _at("numeric", "add_pipelined")),
        Unit("fp32_sum", _at("numeric", "add_comb")),
        Unit("fp32_product", _at("numeric", "multiply_comb")),
        Unit("mac", _at("numeric", "mac")),
        Unit("bf16_mac", _at("numeric", "code_mac")),
        Unit("fp16_mac", _at("numeric", "code_mac")),
        Unit("mx_dot", _at("numeric", "mx_dot")),
        Unit("pe_mac", _at("numeric", "pe_mac")),
        Unit("alu", _at("numeric", "alu")),
        Unit("partial_sums", _at("numeric", "partial_sums"), options={"slots": 4}),
        Unit("reciprocal", _at("numeric", "reciprocal")),
        Unit("exp", _at("numeric", "exp")),
        Unit("activation", _at("numeric", "activation_unit")),
        Unit("convert", _at("numeric", "convert")),
        Unit("quantize", _at("numeric", "quantize"), options={"blocks": 2}),
        Unit("check", _at("issue", "check"), _EVERY_KIND, {"queue": 1}),
        Unit("fetch", _at("issue", "fetch")),
        Unit("issue_queue", _at("issue", "queue"), options={"queue": 0}),
        Unit("semaphores", _at("issue", "semaphores"), options={"readers": 3, "writers": 4}),
        Unit("issue", _at("issue", "issue")),
        Unit("sbuf", _at("memory", "sbuf")),
        Unit("psum", _at("memory", "psum"), options=_STRUCTURAL),
        Unit("axi_share", _at("dma", "axi_share"), options={"port_bytes": 32}),
        Unit("dma", _at("dma", "dma", "hbm")),
        Unit("pe", _at("tensor", "pe")),
        Unit("tile", _at("tensor", "tile")),
        Unit("array", _at("tensor", "array"), options=_STRUCTURAL),
        Unit("feed", _at("tensor", "feed"), _EVERY_KIND, {"reverse": False}),
        Unit("tensor_engine", _at("tensor", "engine"), _EVERY_KIND, _STRUCTURAL),
        Unit("special_units", _at("vector", "special"), options={"results": 4, "size": 4}),
        Unit("vector_engine", _at("vector", "engine", "instructions", "quantize")),
        Unit("scalar_engine", _at("scalar", "engine")),
        Unit("begun_units", _at("link", "begun_units"), link),
        Unit("port_status", _at("link", "status"), link),
        Unit("link_rules", _at("link", "rules"), link),
        Unit("lane_sender", _at("link", "lane_sender"), _LANES, {"interval": 6}),
        Unit("lane_receiver", _at("link", "lane_receiver"), _LANES, {"interval": 6}),
        Unit("flit_encoder", _at("link", "encoder"), link, _STRUCTURAL),
        Unit("flit_decoder", _at("link", "decoder"), link, _STRUCTURAL),
        Unit("packet_merge", _at("link", "packet_merge"), link),
        Unit("packet_pack", _at("link", "packet_pack"), link),
        Unit("packet_split", _at("link", "packet_split"), link),
        Unit("scheduler", _at("link", "scheduler"), LinkConfig(weights=_WEIGHTS, strict_class=2, strict_cap=16)),
        Unit("send_path", _at("link", "send_path"), _FRAMES),
        Unit("receive_path", _at("link", "receive_path"), _FRAMES),
        Unit("switch_crossbar", _at("switch", "crossbar"), _FOUR),
        Unit("switch_routes", _at("switch", "routes"), switch, {"read_back": True}),
        Unit("switch_port_registers", _at("switch", "port_registers"), _OUTPUT, {"count_bits": 14}),
        Unit("switch_registers", _at("switch", "registers"), _FOUR, {"count_bits": 10}),
        Unit("switch_egress", _at("switch", "egress"), _OUTPUT),
        Unit("switch_output_buffer", _at("switch", "output_buffer"), _OUTPUT),
        Unit("switch_bypass", _at("switch", "bypass"), _FOUR),
        Unit(
            "switch_responder",
            _at("switch", "responder"),
            SwitchConfig(ports=4, link=LinkConfig(classes=2, shared_flits=8)),
        ),
        Unit("switch_ingress", _at("switch", "ingress"), _INPUT),
        Unit("switch_scheduler", _at("switch", "scheduler"), _MATCHING),
        Unit("switch", _at("switch", "switch", "switch_losses"), _WHOLE),
    ]


SAMPLE = ("fifo", "ram_fifo")
"""Small units with short benches: a few mutants of each are part of `make test`."""

UNMEASURED = {
    "ram": "one cell of rtl/cells, which Yosys places as a black box",
    "add_lanes": "compares a C++ model with the adders that fp32_add measures",
    "array_lockstep": "compares a C++ model with the array that array measures",
    "codec_lockstep": "compares C++ models with flit_encoder and flit_decoder",
    "lane_pair": "two lane_sender and two lane_receiver, which are measured alone",
    "framing": "a send_path and a receive_path, which are measured alone",
    "core_pair": "two whole cores, whose units are measured alone",
}
"""Tops of benches that are not mutated, and why."""
