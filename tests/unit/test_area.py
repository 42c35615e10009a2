"""The area of small modules whose gates, registers, RAM and levels are known by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.delay import delayed
from rtl.base.lookup import Lookup
from rtl.base.placed import Placed, Repeated
from rtl.base.ram import Ram
from rtl.base.xor_map import XorMap
from sim.area import synthesis
from sim.area.area import summed_up
from sim.area.design import units_of, uses_of
from sim.area.synthesis import synthesise
from sim.errors import PlexusError


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path))
    return tmp_path / "area"


def area(component: wiring.Component, *, jobs: int = 1) -> dict[str, Any]:
    units = units_of(component, "dut")
    mapped = synthesise(units, jobs=jobs, came=lambda name: None, tick=lambda: None)
    report = summed_up([(use, mapped[use.digest]) for use in uses_of(units, "dut")], lambda use: 1000.0)
    for key in ("area_ge", "flip_flops", "ram_bits"):  # what the honesty of a table is
        assert report["total"][key] == sum(unit[key] * unit["count"] for unit in report["units"])
        assert report["total"][key] == sum(branch[key] for branch in report["branches"])
    assert report["total"]["ram_bits"] == sum(macro["bits"] for macro in report["macros"])
    return report


class Made(wiring.Component):
    """A component of its members and what elaborates it."""

    def __init__(self, members: dict[str, Any], body: Callable[[Module, Any], None]):
        self._body = body
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._body(m, self)
        return m


def and4() -> wiring.Component:
    """Four inputs and their AND, each behind a register without reset."""

    def body(m: Module, at: Any) -> None:
        held, out = Signal(4, reset_less=True, name="held"), Signal(reset_less=True, name="out")
        m.d.sync += [held.eq(at.i), out.eq(held.all())]
        m.d.comb += at.o.eq(out)

    return Made({"i": In(4), "o": Out(1)}, body)


def test_gates_between_registers() -> None:
    (unit,) = area(and4())["units"]
    assert unit["flip_flops"] == unit["described_register_bits"] == 5
    assert unit["area_ge"] == 5 * 6 + 3  # two NAND2 and a NOR2
    assert unit["levels"] == 2 and unit["path"][0].startswith("held[")


def test_parity_is_a_tree() -> None:
    def body(m: Module, at: Any) -> None:
        m.d.comb += at.o.eq(at.i.xor())

    (unit,) = area(Made({"i": In(16), "o": Out(1)}, body))["units"]
    assert unit["levels"] == 4 and unit["area_ge"] == 15 * 2.5
    assert unit["path"][1] == "o" and unit["levels_allowed"] == 95 and not unit["too_deep"]


def test_a_reset_is_a_gate_an_enable_a_multiplexer() -> None:
    def body(m: Module, at: Any) -> None:
        held, reset = Signal(reset_less=True), Signal()
        with m.If(at.enable):
            m.d.sync += held.eq(at.i)
        m.d.sync += reset.eq(at.i)
        m.d.comb += at.o.eq(Cat(held, reset))

    (unit,) = area(Made({"i": In(1), "enable": In(1), "o": Out(2)}, body))["units"]
    assert unit["cells"] == {"DFF": 2, "INV": 1, "MUX2": 1, "NOR2": 1}  # NOR2 of the reset and the inverted input
    assert unit["area_ge"] == 12 + 0.5 + 2.5 + 1 and unit["levels"] == 1


def test_ram_is_macros_by_shape() -> None:
    def body(m: Module, at: Any) -> None:
        m.submodules.a = a = Ram(64, 16, 8)
        m.submodules.b = b = Ram(64, 16, 32)
        m.submodules.c = c = Lookup(12, 256, 3)
        m.d.comb += [a.read_address.eq(at.i), b.read_address.eq(a.read_data), c.read_address[0].eq(b.read_data)]
        m.d.comb += at.o.eq(c.read_data[0])

    report = area(Made({"i": In(4), "o": Out(12)}, body))
    shapes = {(one["depth"], one["width_bits"], one["reads"], one["writes"]): one["count"] for one in report["macros"]}
    assert shapes == {(16, 64, 1, 1): 2, (256, 12, 1, 1): 3}  # each reader of a lookup has a copy
    assert report["total"] == {
        "area_ge": 0, "flip_flops": 0, "ram_bits": 2 * 1024 + 3 * 3072, "described_register_bits": 0, "too_deep": 0
    }  # fmt: skip


@pytest.mark.parametrize(("depth", "bits", "registers"), [(512, 16 * 512, 0), (4, 0, 64)])
def test_a_memory_of_the_language_is_a_macro_if_it_is_large(depth: int, bits: int, registers: int) -> None:
    def body(m: Module, at: Any) -> None:
        m.submodules.memory = memory = Memory(shape=16, depth=depth, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(at.i[0]),
            write.addr.eq(at.i),
            write.data.eq(at.i),
            read.addr.eq(at.i),
            at.o.eq(read.data),
        ]

    report = area(Made({"i": In(16), "o": Out(16)}, body))
    assert report["total"]["ram_bits"] == bits
    assert report["total"]["flip_flops"] == report["total"]["described_register_bits"] == registers


def test_delay_lines_and_clock_gates() -> None:
    def body(m: Module, at: Any) -> None:
        m.submodules.gate = gate = ClockGate()
        gated_domain(m, "slow", gate)
        held = Signal(reset_less=True)
        m.d.comb += [gate.enable.eq(at.i[0]), at.o.eq(delayed(m, Cat(at.i, held), 5, "late"))]
        m.d.slow += held.eq(at.i[1])

    (unit,) = area(Made({"i": In(2), "o": Out(3)}, body))["units"]
    assert unit["flip_flops"] == unit["described_register_bits"] == 1 + 3 * 5
    gates = unit["area_ge"] - 6 - 3 * 5 * 7.5 - 5
    assert gates == 1.5  # the gate is open during reset: an OR


def test_a_map_over_gf2_becomes_gates() -> None:
    def body(m: Module, at: Any) -> None:
        m.submodules.map = sums = XorMap(8, [0b00001111, 0b11110000, 0b10000000])
        m.d.comb += [sums.i.eq(at.i), at.o.eq(sums.o)]

    (unit,) = area(Made({"i": In(8), "o": Out(3)}, body))["units"]
    assert unit["area_ge"] == 2 * 3 * 2.5 and unit["levels"] == 2


def large() -> wiring.Component:
    """16 registered words with sums: enough to be a unit of its own where it is placed often."""

    def body(m: Module, at: Any) -> None:
        held = Signal(256, reset_less=True)
        m.d.sync += held.eq(held + at.i)
        m.d.comb += at.o.eq(held)

    return Made({"i": In(8), "o": Out(256)}, body)


def test_a_repeated_module_is_made_once_and_counted_in_the_hierarchy() -> None:
    def body(m: Module, at: Any) -> None:
        for n in range(3):
            m.submodules[f"part{n}"] = part = Placed("part", large)
            m.d.comb += [part.i.eq(at.i), at.o[256 * n : 256 * n + 256].eq(part.o)]
        m.submodules.lanes = lanes = Repeated("lanes", large, 4, shared=("i",))
        m.d.comb += [lanes.i.eq(at.i), at.o[768:].eq(lanes.o)]

    alone = area(large())["total"]
    report = area(Made({"i": In(8), "o": Out(7 * 256)}, body), jobs=2)
    assert alone["flip_flops"] == 256 and report["total"]["flip_flops"] == 7 * 256
    assert report["total"]["area_ge"] == 7 * alone["area_ge"]
    branches = [unit["branches"] for unit in report["units"] if unit["area_ge"]]
    assert sorted(branches, key=len) == [{"lanes": 4}, {"part0": 1, "part1": 1, "part2": 1}]


def test_what_a_unit_gives_to_what_places_it_is_used() -> None:
    """Registers and gates behind a unit, in front of it, and a path through registers of the whole."""

    def body(m: Module, at: Any) -> None:
        before, behind = Signal(8, reset_less=True), Signal(512, reset_less=True)
        for n in range(2):
            m.submodules[f"part{n}"] = part = Placed("part", large)
            m.d.comb += part.i.eq(before)
            m.d.sync += behind[256 * n : 256 * n + 256].eq(part.o & at.mask)
        m.d.sync += before.eq(at.i)
        m.d.comb += at.o.eq(behind)

    report = area(Made({"i": In(8), "mask": In(256), "o": Out(512)}, body))
    (whole,) = [unit for unit in report["units"] if "top" in unit["branches"]]
    assert whole["flip_flops"] == whole["described_register_bits"] == 8 + 512
    assert 512 <= whole["area_ge"] - 520 * 6 <= 2 * 512 and whole["levels"] == 1  # an AND, or a NOR and inverters


def test_what_is_there_is_not_made_again(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = area(and4())
    monkeypatch.setattr(synthesis, "run_child", lambda *a, **k: pytest.fail("Yosys was started"))
    assert area(and4()) == first
    monkeypatch.undo()
    monkeypatch.setenv("PLEXUS_BUILD", str(shelf.parent))
    (kept,) = (shelf / "units").iterdir()
    kept.write_text(kept.read_text()[:40])  # torn
    assert area(and4()) == first and not list(shelf.glob(".unit-*"))


def test_an_interrupt_keeps_what_was_made(shelf: Path) -> None:
    units = units_of(and4(), "dut")
    with pytest.raises(KeyboardInterrupt):
        synthesise(units, jobs=1, came=lambda name: (_ for _ in ()).throw(KeyboardInterrupt), tick=lambda: None)
    assert len(list((shelf / "units").iterdir())) == 1 and not list(shelf.glob(".unit-*"))


def test_what_has_no_gates_is_refused() -> None:
    from rtl.contract.config import named
    from rtl.tensor.array import Array

    with pytest.raises(PlexusError, match="places plexus_native_array, a model in C"):
        units_of(Array(named("tiny"), form="native"), "array")
