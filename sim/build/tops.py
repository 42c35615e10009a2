"""What can be built: names of tops and where their components come from.

A factory is a text "module:Class", resolved when it is needed, so that benches' own tops under verif/
can be named here without importing them. It is called with `cfg` if it has such a parameter and
with the build's options by name.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sim.errors import PlexusError
from sim.run import verdicts

__all__ = ["TOPS", "Top", "factory", "top"]


@dataclass(frozen=True, slots=True)
class Top:
    """A component that can be built alone. `options` lists the keywords its factory understands. `for_host`: C++ in it
    is compiled for this processor in every build, because the top shows that C++.
    """

    name: str
    factory: str
    doc: str
    options: tuple[str, ...] = ()
    for_host: bool = False


TOPS: dict[str, Top] = {
    t.name: t
    for t in (
        # one line each, sorted by name
        Top("activation", "rtl.numeric.functions.activation_unit:ActivationUnit", "functions of the scalar engine"),
        Top("add_lanes", "verif.benches.numeric.add_lanes_top:AddLanesTop", "both forms of a row of adders, compared"),
        Top("alu", "rtl.numeric.fp32.alu:Alu", "operators of the vector engine"),
        Top("array", "rtl.tensor.array:Array", "systolic array", ("form",)),
        Top("array_lockstep", "verif.benches.tensor.lockstep_top:LockstepTop", "both forms of the array, compared"),
        Top("axi_share", "rtl.dma.axi_share:AxiShare", "fetch and DMA on one HBM port", ("port_bytes",)),
        Top("begun_units", "rtl.link.rules.begun_units:BegunUnits", "flits acknowledged of a unit under way"),
        Top("bf16_mac", "rtl.numeric.pe.code_mac:Bf16Mac", "BF16 fused multiply-add into FP32"),
        Top("bf16_round", "rtl.numeric.fp32.bf16_round:Bf16Round", "sums to BF16, to the nearest or at random"),
        Top("check", "rtl.issue.check:Check", "checks of the instructions of one queue", ("queue",)),
        Top("indices", "rtl.dma.rings.indices:Indices", "indices that choose rows of a table"),
        Top("class_queues", "rtl.dma.movers.class_queues:ClassQueues", "rows that wait for a mover", ("depth",)),
        Top("clock_gate", "verif.benches.base.gate_top:GateTop", "registers of gated clocks"),
        Top("codec_lockstep", "verif.benches.link.codec_lockstep_top:CodecLockstepTop", "both codec forms", ("order",)),
        Top("convert", "rtl.numeric.formats.convert:Convert", "number format conversion"),
        Top("core", "rtl.core:Core", "a whole core", ("form", "link", "limited")),
        Top("core_pair", "verif.benches.core.pair_top:PairTop", "two cores joined by two ports and a wire", ("form",)),
        Top("dma", "rtl.dma.dma:Dma", "DMA: rings, row generator, movers, HBM ports", ("link",)),
        Top("exp", "rtl.numeric.functions.exp:Exp", "exp(x - m)"),
        Top("feed", "rtl.tensor.feed:Feed", "operands of the array from SBUF", ("reverse",)),
        Top("fetch", "rtl.issue.fetch:Fetch", "instruction and descriptor fetch"),
        Top("fifo", "rtl.base.fifo:Fifo", "FIFO in registers", ("shape", "depth")),
        Top("flit_decoder", "rtl.link.codec.decoder:Decoder", "repair and verdict of flits", ("form", "order")),
        Top("flit_encoder", "rtl.link.codec.encoder:Encoder", "CRC and FEC of a link's flits", ("form", "order")),
        Top("fp16_mac", "rtl.numeric.pe.code_mac:Fp16Mac", "FP16 fused multiply-add into FP32"),
        Top("fp32_add", "rtl.numeric.fp32.add_pipelined:Fp32AddPipelined", "FP32 adder"),
        Top("fp32_product", "rtl.numeric.fp32.multiply_comb:Fp32MultiplyComb", "FP32 multiplier without a register"),
        Top("fp32_sum", "rtl.numeric.fp32.add_comb:Fp32AddComb", "FP32 adder without a register"),
        Top("framing", "verif.benches.link.framing_top:FramingTop", "packets to flits to packets"),
        Top("gpsimd_engine", "rtl.gpsimd.clocked:ClockedGpsimd", "GPSIMD engine with its clock"),
        Top("halves", "rtl.numeric.pe.halves:Halves", "FP32 codes to two PE operands"),
        Top("issue", "rtl.issue.issue:Issue", "instruction issue of a core"),
        Top("issue_queue", "rtl.issue.queue:IssueQueue", "one instruction queue", ("queue",)),
        Top("lane_pair", "verif.benches.link.lane_pair_top:LanePairTop", "lanes of two ends", ("interval", "delay")),
        Top("lane_receiver", "rtl.link.lanes.lane_receiver:LaneReceiver", "their receiving end", ("interval",)),
        Top("lane_sender", "rtl.link.lanes.lane_sender:LaneSender", "lanes of a link, sending end", ("interval",)),
        Top(
            "lanes_lockstep",
            "verif.benches.vector.lanes_lockstep_top:LanesLockstep",
            "both forms of an engine's lanes, compared",
            ("kind",),
            for_host=True,
        ),
        Top("link_rules", "rtl.link.rules.rules:LinkRules", "replay, credits and sessions of one end of a link"),
        Top("mac", "rtl.numeric.pe.mac:Mac", "fused multiply-add of PE operands"),
        Top("mx_dot", "rtl.numeric.pe.mx_dot:MxDot", "MX dot product of codes"),
        Top("packet_merge", "rtl.link.core_side.packet_merge:PacketMerge", "requests and responses to one stream"),
        Top("packet_pack", "rtl.link.core_side.packet_pack:PacketPack", "packets of a DMA to packets of a port"),
        Top("packet_split", "rtl.link.core_side.packet_split:PacketSplit", "packets of a port to packets of a DMA"),
        Top("partial_sums", "rtl.numeric.fp32.partial_sums:PartialSums", "reduction along the free axis", ("slots",)),
        Top("pe", "rtl.tensor.pe:PE", "processing element"),
        Top("pe_mac", "rtl.numeric.pe.pe_mac:PeMac", "arithmetic of a PE in all modes", ("mx", "nvfp4")),
        Top("port_device", "rtl.link.device:PortDevice", "a port at flit granularity", ("form",)),
        Top("port_lanes", "rtl.link.device:LaneDevice", "a port with its lanes", ("form",)),
        Top("port_status", "rtl.link.status:PortStatus", "status registers of a port"),
        Top("psum", "rtl.memory.psum:Psum", "PSUM", ("form",)),
        Top("quantize", "rtl.numeric.formats.quantize:Quantize", "MX quantisation of a block", ("blocks",)),
        Top("quantize_mx", "rtl.vector.quantize:QuantizeMx", "columns of MX blocks in the vector engine"),
        Top("ram", "rtl.base.ram:Ram", "RAM cell", ("width", "depth", "granule")),
        Top("ram_fifo", "rtl.base.fifo:RamFifo", "FIFO in a RAM", ("shape", "depth")),
        Top("receive_path", "rtl.link.framing.receive_path:ReceivePath", "flits to packets"),
        Top("reciprocal", "rtl.numeric.fp32.reciprocal:Reciprocal", "correctly rounded reciprocal"),
        Top("round_bits", "rtl.numeric.fp32.round_bits:RoundBits", "random bits of a row of sums"),
        Top("sbuf", "rtl.memory.sbuf:Sbuf", "SBUF"),
        Top(
            "scalar_core",
            "verif.benches.gpsimd.scalar_core_top:ScalarCoreTop",
            "scalar core of the GPSIMD engine beside a memory",
            ("line_bits", "vectors"),
        ),
        Top("scalar_engine", "rtl.scalar.clocked:ClockedScalar", "scalar engine with its clock"),
        Top("scheduler", "rtl.link.framing.scheduler:Scheduler", "which unit of a link goes next"),
        Top("semaphores", "rtl.issue.semaphores:Semaphores", "semaphores", ("readers", "writers")),
        Top(
            "sequencer",
            "verif.benches.issue.sequencer_top:SequencerTop",
            "what a queue works out itself",
            ("window", "limit"),
        ),
        Top("send_path", "rtl.link.framing.send_path:SendPath", "packets to flits"),
        Top("special_units", "rtl.vector.special:SpecialUnits", "special units of vector", ("results", "size")),
        Top("standin", "verif.benches.native.standin:StandIn", "exercises the native driver's HBM"),
        Top("switch", "rtl.switch.device:SwitchDevice", "a switch at flit granularity", ("form",)),
        Top("switch_bypass", "rtl.switch.bypass:Bypass", "units that begin without the switch's scheduler"),
        Top("switch_crossbar", "rtl.switch.crossbar:Crossbar", "which output of a switch listens to which input"),
        Top("switch_egress", "rtl.switch.output.egress:Egress", "credits of a switch's output"),
        Top("switch_ingress", "rtl.switch.input.ingress:Ingress", "buffer of an input of a switch"),
        Top("switch_output_buffer", "rtl.switch.output.output_buffer:OutputBuffer", "retry buffer of an output"),
        Top("switch_port_registers", "rtl.switch.port_registers:PortRegisters", "counters of a port", ("count_bits",)),
        Top("switch_registers", "rtl.switch.registers:Registers", "partitions, routes of a switch", ("count_bits",)),
        Top("switch_responder", "rtl.switch.responder:Responder", "answers to refused reads in a switch"),
        Top("switch_routes", "rtl.switch.routes:Routes", "routing table of an input of a switch", ("read_back",)),
        Top("switch_scheduler", "rtl.switch.scheduling.scheduler:Scheduler", "who sends to whom in a switch"),
        Top("switch_scheduler_alone", "verif.benches.switch.scheduler_top:SchedulerTop", "the same between registers"),
        Top("tensor_engine", "rtl.tensor.engine:TensorEngine", "tensor engine", ("form",)),
        Top("tile", "rtl.tensor.tile:Tile", "8 x 8 processing elements"),
        Top("unpack", "rtl.numeric.pe.unpack:Unpack", "codes of float formats to PE operands"),
        Top("unpack_element", "rtl.numeric.pe.unpack_element:UnpackElement", "FP8 and FP4 codes to elements"),
        Top("vector_engine", "rtl.vector.clocked:ClockedVector", "vector engine with its clock"),
        Top(
            "vector_unit",
            "verif.benches.gpsimd.vector_unit_top:VectorUnitTop",
            "vector unit of a GPSIMD core beside a memory",
            ("lanes",),
        ),
    )
}


def top(name: str) -> Top:
    """The top of that name. Errors: PlexusError that lists the names."""
    if name not in TOPS:
        raise PlexusError(f"there is no top {name!r}; there are {', '.join(sorted(TOPS))}")
    return TOPS[name]


def factory(t: Top) -> Callable[..., Any]:
    """Import what `t` names."""
    verdicts.note_use(t.name)
    module, _, attribute = t.factory.partition(":")
    return getattr(importlib.import_module(module), attribute)
