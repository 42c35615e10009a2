"""Toggles of gates: against counts by hand, against another simulator's waves, and only of gates that compute."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.pe.unpack_element import UnpackElement
from sim.area.cells import AREA_GE
from sim.energy.cell_netlist import CellNetlist, cell_netlist_of
from sim.energy.gates import Gates, flat
from sim.energy.netlists import gates_of, made_of
from sim.energy.simulation import CLOCK_GE, DATA_GE, Simulation
from sim.energy.values import KINDS, Source, constant, packed
from sim.errors import PlexusError
from verif.agents.values import FLAVOURS, random_codes
from verif.golden.numeric import fp32_add


@pytest.fixture(scope="module", autouse=True)
def build(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLEXUS_BUILD", str(tmp_path_factory.mktemp("energy")))
        yield


def gates(component: wiring.Component) -> Gates:
    return gates_of(made_of(component, "dut"), tick=lambda: None, came=lambda name: None)


def by_hand() -> Gates:
    """q is the last a ^ b; o = not (q and a)."""
    return Gates(
        nets=8,
        inputs={"a": [2], "b": [3], "clk": [4]},
        outputs={"o": [7]},
        cells=[("NAND2", [6, 2], 7), ("XOR2", [2, 3], 5)],
        registers=[(5, 6, 4)],
    )


def test_a_count_by_hand() -> None:
    sim = Simulation(by_hand())  # a ^ b = 0, q = 0, o = 1
    assert sim.toggles.each == 0 and sim.registers == {"clk": 1}

    def cycle(a: int, b: int, clocks: tuple[str, ...] = ("clk",)) -> tuple[float, int]:
        sim.toggles.clear()
        sim.cycle({"a": constant(a, 1), "b": constant(b, 1)}, clocks)
        return sim.toggles.each, sim.toggles.written

    assert cycle(1, 0) == (AREA_GE["XOR2"], 0)  # q takes the 0 of before
    assert cycle(1, 0) == (DATA_GE + AREA_GE["NAND2"], 1)  # q rises, o falls
    assert cycle(1, 0) == (0, 0)
    assert cycle(1, 1, ()) == (AREA_GE["XOR2"], 0)  # its clock stands still
    assert cycle(0, 0) == (DATA_GE + AREA_GE["NAND2"], 1)  # of a, o is 1 whatever q is; q falls
    assert DATA_GE + CLOCK_GE == AREA_GE["DFF"]


def test_each_stream_counts_for_itself() -> None:
    sim = Simulation(by_hand())
    half = packed([n % 2 for n in range(64)], 1)
    sim.cycle({"a": half})
    assert sim.toggles.each == AREA_GE["XOR2"] / 2
    sim.cycle({"a": half})
    assert sim.toggles.registers == 0.5  # in one of two cycles the register took something, in some stream


def test_the_numbers_of_streams_are_what_was_packed() -> None:
    codes = np.random.default_rng(1).integers(0, 1 << 32, 128, dtype=np.uint64)
    bits = packed(codes, 32)
    assert bits.shape == (32, 2)
    for stream in (0, 63, 64, 127):
        word, place = divmod(stream, 64)
        assert sum((int(bits[n, word]) >> place & 1) << n for n in range(32)) == codes[stream]


def inner(*, inverts: bool) -> CellNetlist:
    """o is i, or its opposite; p is i as it is; one is 1."""
    cells = [("INV", [2], 3)] if inverts else []
    ports = {"i": ("input", [2]), "o": ("output", [3 if inverts else 2]), "p": ("output", [2]), "one": ("output", [1])}
    return CellNetlist(ports=ports, cells=cells, registers=[], boxes=[], initial=[])


@pytest.mark.parametrize("inverts", [True, False])
def test_units_inside_are_wires_and_gates(inverts: bool) -> None:
    pins = {"i": [2], "o": [3], "p": [4], "one": [5]}
    outer = CellNetlist(
        ports={"x": ("input", [2]), "y": ("output", [6]), "z": ("output", [5])},
        cells=[("AND2", [3, 4], 6)],
        registers=[],
        boxes=[("inner", pins)],
        initial=[],
    )
    sim = Simulation(flat({"inner": inner(inverts=inverts), "outer": outer}, "outer"))
    sim.cycle({"x": constant(1, 1)})
    assert sim.output("y")[0, 0] == (0 if inverts else 2**64 - 1) and sim.output("z")[0, 0] == 2**64 - 1
    assert sim.toggles.each == (AREA_GE["INV"] if inverts else AREA_GE["AND2"])  # i and not i is always 0


def test_what_has_no_gates_is_a_sentence() -> None:
    box = CellNetlist(ports={}, cells=[], registers=[], boxes=[("plexus_ram", {})], initial=[])
    with pytest.raises(PlexusError, match="outer places plexus_ram, which is no unit of gates"):
        flat({"outer": box}, "outer")
    memory = '{"modules": {"m": {"ports": {}, "netnames": {}, "cells": {"c": {"type": "$mem_v2", "connections": {}}}}}}'
    with pytest.raises(PlexusError, match="m has a cell \\$mem_v2"):
        cell_netlist_of(memory, "m")
    loop = Gates(nets=4, cells=[("INV", [3], 2), ("INV", [2], 3)])
    with pytest.raises(PlexusError, match="loop without a register"):
        Simulation(loop)
    with pytest.raises(PlexusError, match="no input 'c'; it has a, b, clk"):
        Simulation(by_hand()).cycle({"c": constant(0, 1)})


class Accumulator(wiring.Component):
    """Sums x into a register while told to; a second one has the sum's opposite."""

    x: In(6)
    add: In(1)
    sum: Out(6)
    other: Out(6)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        other = Signal(6, init=63)
        m.d.sync += other.eq(~self.sum)
        m.d.comb += self.other.eq(other)
        with m.If(self.add):
            m.d.sync += self.sum.eq(self.sum + self.x)
        return m


def as_module(g: Gates) -> tuple[Module, list[Signal]]:
    """The same gates in Amaranth, a signal a net; inputs are driven from outside."""
    m = Module()
    m.domains += ClockDomain("sync", reset_less=True)
    nets = [Signal(name=f"net{n}", init=int(n == 1 or n in g.initial)) for n in range(g.nets)]
    ways = {
        "INV": lambda a: ~a,
        "NAND2": lambda a, b: ~(a & b),
        "NOR2": lambda a, b: ~(a | b),
        "AND2": lambda a, b: a & b,
        "OR2": lambda a, b: a | b,
        "XOR2": lambda a, b: a ^ b,
        "XNOR2": lambda a, b: ~(a ^ b),
        "MUX2": lambda a, b, s: Mux(s, b, a),
    }
    for kind, pins, out in g.cells:
        m.d.comb += nets[out].eq(ways[kind](*(nets[n] for n in pins)))
    for d, q, _ in g.registers:
        m.d.sync += nets[q].eq(nets[d])
    return m, nets


def changes(vcd: str, from_time: int) -> dict[str, int]:
    """Of each net how often it has another value behind a moment than before it, from a moment on."""
    names = {key: name for key, name in re.findall(r"\$var \w+ 1 (\S+) (net\d+) \$end", vcd)}
    value: dict[str, str] = {}
    found = dict.fromkeys(names.values(), 0)
    for stamp in re.split(r"^#", vcd[vcd.index("$enddefinitions") :], flags=re.M)[1:]:
        time, _, lines = stamp.partition("\n")
        now = {m[2]: m[1] for m in re.finditer(r"^([01])(\S+)$", lines, re.M) if m[2] in names}
        for key, bit in now.items():
            if value.get(key, bit) != bit and int(time) >= from_time:
                found[names[key]] += 1
        value |= now
    return found


def test_toggles_are_those_in_the_waves_of_another_simulator(tmp_path: Path) -> None:
    g = gates(Accumulator())
    rng = random.Random(3)
    steps = [(rng.randrange(64), rng.randrange(2)) for _ in range(40)]
    sim = Simulation(g)
    quiet = {port: constant(0, 1) for port in g.inputs if port == "rst"}
    for x, add in steps:
        sim.cycle({"x": constant(x, 6), "add": constant(add, 1), **quiet})
    module, nets = as_module(g)

    async def bench(context: Any) -> None:
        for n, (x, add) in enumerate(steps):
            if n:
                await context.tick()
            for place, net in enumerate(g.inputs["x"]):
                context.set(nets[net], x >> place & 1)
            context.set(nets[g.inputs["add"][0]], add)
            await context.delay(1e-7)

    other = Simulator(module)
    other.add_clock(1e-6, phase=5e-7)
    other.add_testbench(bench)
    file = tmp_path / "gates.vcd"
    with other.write_vcd(str(file)):
        other.run()
    weights = {f"net{out}": AREA_GE[kind] for kind, _, out in g.cells} | {f"net{q}": DATA_GE for _, q, _ in g.registers}
    counted = changes(file.read_text(), 1)
    want = sum(weights.get(name, 0.0) * count for name, count in counted.items())
    assert len(g.registers) == 12 and sim.toggles.cycles == len(steps)
    # the first inputs are there from the beginning in those waves; here they are a change, whose edge changes nothing
    first = Simulation(g)
    first.cycle({"x": constant(steps[0][0], 6), "add": constant(steps[0][1], 1), **quiet})
    assert want > 1000 and sim.toggles.each * len(steps) - first.toggles.each == pytest.approx(want, abs=1e-9)


@pytest.fixture(scope="module")
def adder() -> Gates:
    return gates(Fp32AddComb())


def sums(g: Gates, seed: int) -> tuple[Any, Any]:
    """What the gates give, and what they should."""
    rng = np.random.default_rng(seed)
    a, b = (np.concatenate([random_codes(rng, (64,), "fp32", flavour) for flavour in FLAVOURS[:4]]) for _ in "ab")
    sim = Simulation(g, 4)
    sim.cycle({"a": packed(a, 32), "b": packed(b, 32), "subtract": constant(0, 1)})
    out = np.unpackbits(np.ascontiguousarray(sim.output("out")).view(np.uint8), axis=1, bitorder="little")
    return (out.astype(np.uint64) << np.arange(32, dtype=np.uint64)[:, None]).sum(axis=0), fp32_add(a, b)


def test_the_gates_of_an_adder_add(adder: Gates) -> None:
    got, want = sums(adder, 1)
    assert np.array_equal(got, want)


def test_a_wrong_gate_is_seen(adder: Gates) -> None:
    """So toggles are those of a working circuit: of thirty gates, each replaced, nearly all spoil a sum."""
    seen = 0
    other = {"NAND2": "NOR2", "NOR2": "NAND2", "AND2": "OR2", "OR2": "AND2", "XOR2": "XNOR2", "XNOR2": "XOR2"}
    chosen = [n for n, cell in enumerate(adder.cells) if cell[0] in other][:: len(adder.cells) // 30]
    for n in chosen:
        kind, pins, out = adder.cells[n]
        cells = [*adder.cells[:n], (other[kind], pins, out), *adder.cells[n + 1 :]]
        wrong = Gates(
            nets=adder.nets, inputs=adder.inputs, outputs=adder.outputs, cells=cells, registers=adder.registers
        )
        seen += not np.array_equal(*sums(wrong, 1))
    assert seen >= 0.8 * len(chosen)


def test_what_is_made_once_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = gates(UnpackElement())
    monkeypatch.setattr("sim.area.synthesis.mapped_text", lambda *a, **k: pytest.fail("it was made again"))
    assert gates(UnpackElement()) == first


def test_kinds_of_data_are_what_they_say() -> None:
    codes = {kind: Source(kind, "x", 8).codes("bf16") for kind in KINDS}
    zero = {kind: np.mean(found == 0) for kind, found in codes.items()}
    assert 0.4 < zero["zeros"] < 0.6 and zero["normal"] < 0.01
    field = {kind: (found >> np.uint64(7)) & np.uint64(0xFF) for kind, found in codes.items()}
    assert (field["normal"] < 131).all() and (field["bits"] > 200).any() and (field["bits"] < 255).all()
    assert np.array_equal(codes["bits"], Source("bits", "x", 8).codes("bf16"))
    assert not np.array_equal(codes["bits"], Source("bits", "y", 8).codes("bf16"))
    e4m3fn = Source("bits", "x", 64).codes("e4m3fn")
    assert (e4m3fn & np.uint64(0x7F) != 0x7F).all() and len(np.unique(e4m3fn)) == 254
