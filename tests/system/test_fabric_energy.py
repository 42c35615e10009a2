"""Energy of links and switches: gates that encode and check as the golden codec does while they are counted, a crossbar
that lets every beat through; events of runs beside other counts; the index of a link with errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from rtl.contract.link import CRC_AT, FLIT_BYTES
from rtl.contract.link_config import LINKS, LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.link.codec.crc import Crc
from rtl.link.codec.decoder import Decoder
from rtl.link.codec.encoder import Encoder
from rtl.link.framing.rx_pool import RxPool
from rtl.link.framing.send_store import SendStore
from rtl.link.rules.flit_sender import FlitSender
from rtl.switch.beat import transfer_beat
from rtl.switch.crossbar import Crossbar
from rtl.switch.input.flit_pool import FlitPool
from rtl.switch.output.output_buffer import OutputBuffer
from sim.area.design import units_of
from sim.area.macros import Macro
from sim.energy.command import energy_of_run
from sim.energy.events import Event
from sim.energy.fabric.hardware import rows_of
from sim.energy.fabric.units import units_of_link, units_of_switch
from sim.energy.gates import Gates
from sim.energy.netlists import gates_of, made_of
from sim.energy.simulation import Simulation
from sim.energy.values import KINDS, Source
from sim.run.repeat import configured
from sim.systems.link.run import LinkRun, parse_link, run_link
from verif.golden.flit import decode, encode

LINK = LINKS["x8"]
Words = NDArray[np.uint64]


def gates(component: Any) -> Gates:
    return gates_of(made_of(component, "unit"), tick=lambda: None, came=lambda name: None)


@pytest.fixture(scope="module")
def encoder() -> Gates:
    return gates(Encoder(LINK, form="structural"))


def event(name: str, link: LinkConfig = LINK) -> Event:
    return next(one for unit in units_of_link(link) for one in unit.events if one.name == name)


def as_bytes(bits: Words, stream: int) -> NDArray[np.uint8]:
    """Of [bits, words] the bytes of one stream."""
    return np.packbits(
        (bits[:, stream // 64] >> np.uint64(stream % 64) & np.uint64(1)).astype(np.uint8), bitorder="little"
    )


class Watched(Simulation):
    """Remembers inputs and outputs of each cycle."""

    def __init__(self, of: Gates, given: str, *ports: str):
        self.given, self.ports = given, ports
        self.saw: list[tuple[Words | None, dict[str, Words]]] = []
        super().__init__(of)

    def cycle(self, inputs: Any, clocks: Any = None) -> None:
        super().cycle(inputs, clocks)
        self.saw.append((inputs.get(self.given), {port: self.output(port) for port in self.ports}))


def flits_encoded(of: Gates, name: str, kind: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Flits as they went in and as they came out, of three streams."""
    sim = Watched(of, "i__payload", "o__payload")
    event(name).drive([sim], Source(kind, name))
    beats = [(given, out["o__payload"]) for given, out in sim.saw if given is not None]
    went, came = [], []
    for first in range(0, len(beats) - LINK.beats, LINK.beats):
        for stream in (0, 17, 63):
            went.append(np.concatenate([as_bytes(beats[first + n][0][2:], stream) for n in range(LINK.beats)]))
            came.append(np.concatenate([as_bytes(beats[first + n + 1][1][2:], stream) for n in range(LINK.beats)]))
    return np.stack(went), np.stack(came)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["payload", "nop"])
def test_an_encoder_of_gates_encodes_while_it_is_counted(encoder: Gates, what: str, kind: str) -> None:
    went, came = flits_encoded(encoder, f"encode {what}", kind)
    assert len(went) == 6 and np.array_equal(came, encode(went[:, :CRC_AT]))
    assert went[:, :CRC_AT].any() and (what == "payload") == went[:, 4:200].any()
    assert decode(came).valid.all()


def test_a_wrong_gate_of_the_encoder_is_seen(encoder: Gates) -> None:
    n = next(n for n, cell in enumerate(encoder.cells) if cell[0] == "XOR2")
    kind, pins, out = encoder.cells[n]
    del kind
    cells = [*encoder.cells[:n], ("XNOR2", pins, out), *encoder.cells[n + 1 :]]
    wrong = Gates(
        nets=encoder.nets, inputs=encoder.inputs, outputs=encoder.outputs, cells=cells, registers=encoder.registers,
        initial=encoder.initial,
    )  # fmt: skip
    went, came = flits_encoded(wrong, "encode payload", "normal")
    assert not np.array_equal(came, encode(went[:, :CRC_AT]))


@pytest.mark.regress
def test_a_checker_of_gates_takes_what_the_encoder_made(encoder: Gates) -> None:
    """The syndromes of whole flits are 0, of one with a wrong bit they are not."""
    sim = Simulation(gates(Crc(LINK, check=True)))
    _, came = flits_encoded(encoder, "encode payload", "bits")
    for wrong in (False, True):
        flit = came[0].copy()
        flit[100] ^= wrong
        for n in range(LINK.beats):
            part = flit[n * LINK.beat_bytes : (n + 1) * LINK.beat_bytes].copy()
            part[np.arange(len(part)) + n * LINK.beat_bytes >= 250] = 0
            bits = np.unpackbits(part, bitorder="little").astype(np.uint64)[:, None]
            one = {"enable": np.ones((1, 1), np.uint64), "first": np.array([[n == 0]], np.uint64)}
            sim.cycle(one | {"data": bits})
        assert bool((sim.output("sums")[:, 0] & np.uint64(1)).any()) == wrong


@pytest.mark.regress
def test_a_crossbar_of_gates_lets_every_input_through() -> None:
    cfg = SwitchConfig(name="four", ports=4)
    unit = next(unit for unit in units_of_switch(cfg) if unit.name == "crossbar")
    sim = Watched(gates(Crossbar(cfg)), "i", "o", "o_valid")
    unit.events[0].drive([sim], Source("bits", "crossbar"))
    size = transfer_beat(cfg.link).size
    given, out = sim.saw[-1]
    assert given is not None and (out["o_valid"] == ~np.uint64(0)).all()
    for n in range(cfg.outputs):
        k = (n + 1) % cfg.inputs
        assert np.array_equal(out["o"][n * size : (n + 1) * size], given[k * size : (k + 1) * size])


@pytest.mark.parametrize("name", ["x1", "x8", "x16", "sw16"])
def test_rows_are_those_of_macros_in_the_design(name: str) -> None:
    """Width and depth of each buffer, beside the RAMs that the RTL makes."""
    cfg: Any = configured(name, ())
    for part, (row,) in rows_of(cfg).items():
        macro = Macro(row.macro_bytes * 8 // row.bits, row.bits)
        assert macro in _macros(name, part, cfg), part
    assert rows_of(cfg)["decoder buffer"][0].macro_bytes == 2 * FLIT_BYTES


def _macros(name: str, part: str, cfg: Any) -> set[Macro]:
    of_switch = name.startswith("sw")
    link = cfg.link if of_switch else cfg
    made = {
        "decoder buffer": lambda: Decoder(link),
        "retry buffer": lambda: OutputBuffer(link) if of_switch else FlitSender(link),
        "send store": lambda: SendStore(link),
        "receive pool": lambda: FlitPool(link) if of_switch else RxPool(link),
    }
    return {macro for unit in units_of(made[part](), "unit") for macro in unit.macros}


def link_run(folder: Path, **params: Any) -> dict[str, Any]:
    settings = [f"{key}={value}" for key, value in {"flits": 1500, **params}.items()]
    return run_link(LinkRun(params=parse_link(settings), out=folder), Console(quiet=True))


@pytest.mark.sim
def test_events_of_a_link_agree_with_other_counts(tmp_path: Path) -> None:
    report = link_run(tmp_path / "a", flit_error_rate=0.02)
    events, cfg = report["events"], LINK
    assert events["cycles"] == 1500 * cfg.flit_cycles
    flits, payload = events["beats"] // cfg.beats, events["payload_beats"] // cfg.beats
    assert 0 <= 2 * 1500 - flits <= 2 * 2  # each end sends a marker or two meanwhile
    assert payload == report["payload_flits"] + report["replayed_flits"] <= flits
    assert events["stored_beats"] // cfg.beats == report["payload_flits"] and report["replayed_flits"] > 0
    goodput = 236 / 256 * events["stored_beats"] / (2 * events["cycles"])
    assert goodput == pytest.approx(report["goodput"], abs=1e-5)
    assert events["wire_bits"] == 2 * events["cycles"] * 10 * 64  # two spare lanes send, too


@pytest.mark.sim
@pytest.mark.regress
def test_errors_cost_energy_a_flit(tmp_path: Path) -> None:
    link_run(tmp_path / "clean")
    link_run(tmp_path / "noisy", flit_error_rate=0.02)
    found = energy_of_run(tmp_path / "noisy", tmp_path / "clean", None, None, None)
    index = found.index
    clean = found.report["payload_flits"] / 3000
    assert index is not None and 1 < index.low <= index.typical <= index.high <= 1.01 / clean
    assert sum(found.energy.shares()[part][1] for part in found.energy.shares()) == pytest.approx(1)
