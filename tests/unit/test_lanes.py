"""Lanes as a loop: proved by Yosys equal to the lanes one by one, on a lane with cells of all kinds."""

from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, DomainRenamer, EnableInserter, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.amaranth_internals import YosysError, find_yosys
from rtl.base.placed import Repetition
from rtl.emit.lanes import lanes_module
from sim.toolchain import activate

COUNT = 3
SHARED = ("op", "by")


class Toy(wiring.Component):
    """Arithmetic with and without signs, shifts, choices, a table; registers on two clocks."""

    x: In(5)
    op: In(3)
    by: In(3)
    out: Out(9)
    seen: Out(5)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(5, init=9)
        part = Signal(5, init=3)
        last = Signal(3, init=6)  # the same in all lanes
        result = Signal(9)
        m.submodules.table = table = Memory(shape=4, depth=8, init=[3, 1, 4, 1, 5, 9, 2, 6])
        port = table.read_port(domain="comb")
        m.d.comb += port.addr.eq(self.x[:3])
        with m.Switch(self.op):
            with m.Case(0):
                m.d.comb += result.eq(self.x + held)
            with m.Case(1):
                m.d.comb += result.eq(self.x.as_signed() * part.as_signed())
            with m.Case(2):
                m.d.comb += result.eq(Cat(held, self.x) >> self.by)
            with m.Case(3):
                m.d.comb += result.eq(part.as_signed() >> self.by)
            with m.Case(4):
                m.d.comb += result.eq(Cat(self.x.as_signed() < held.as_signed(), part.any(), ~held.xor(), port.data))
            with m.Case(5):
                m.d.comb += result.eq(Cat(held, part).bit_select(last, 4))
            with m.Default():
                m.d.comb += result.eq(Mux(self.x == part, -self.x, (part << self.by) | ~held))
        m.d.sync += [held.eq(result), last.eq(self.op ^ self.by)]
        with m.If(self.op[0]):
            m.d.part += part.eq(result[2:] ^ held)
        m.d.comb += [self.out.eq(result), self.seen.eq(held)]
        return m


class Apart(wiring.Component):
    """The same lanes one by one, with the ports of the module."""

    def __init__(self, broken: bool) -> None:
        self.broken = broken
        super().__init__(
            {
                "enable_part": In(1),
                "x": In(5 * COUNT),
                "op": In(3),
                "by": In(3),
                "out": Out(9 * COUNT),
                "seen": Out(5 * COUNT),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for i in range(COUNT):
            lane = Toy()
            m.submodules[f"lane{i}"] = DomainRenamer({"part": "sync"})(EnableInserter({"part": self.enable_part})(lane))
            m.d.comb += [
                lane.x.eq(self.x[5 * i : 5 * i + 5]),
                lane.op.eq(self.op),
                lane.by.eq(Mux(self.broken & (i == 1), self.op, self.by)),
                self.out[9 * i : 9 * i + 9].eq(lane.out),
                self.seen[5 * i : 5 * i + 5].eq(lane.seen),
            ]
        return m


def equal(folder: Path, broken: bool = False) -> None:
    """Prove with Yosys that the module and its lanes one by one have equal outputs in all five cycles after reset."""
    activate()
    (folder / "gate.v").write_text(lanes_module("gate", Repetition(Toy, COUNT, frozenset(SHARED), ("part",))))
    (folder / "gold.il").write_text(rtlil.convert(Apart(broken), name="gold", emit_src=False))
    resets = " ".join(f"-set-at {step} in_rst {int(step == 1)}" for step in range(1, 7))
    script = f"""
read_verilog -sv {folder}/gate.v
read_rtlil {folder}/gold.il
setattr -mod -unset top *
proc; flatten; memory; opt -full
miter -equiv -flatten -make_assert gold gate both
hierarchy -top both
sat -seq 6 -prove-asserts {resets} -verify both
"""
    find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], script, ignore_warnings=True)


def test_the_loop_is_its_lanes(tmp_path: Path) -> None:
    equal(tmp_path)


def test_a_planted_difference_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(YosysError, match="proof did fail"):
        equal(tmp_path, broken=True)


class Divides(wiring.Component):
    """A lane with a cell the emitter has no words for."""

    x: In(8)
    out: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.out.eq(self.x // 3)
        return m


def test_an_unknown_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="divfloor"):
        lanes_module("gate", Repetition(Divides, COUNT, frozenset(), ()))
