"""Masks as operands: logic, counting, and what is before the first bit."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.vector.layouts import VECTOR, Kind, Result
from rtl.gpsimd.vector.rotate import ones

__all__ = ["MaskBits"]


class MaskBits(wiring.Component):
    """Of masks `first` (vs2) and `second` (vs1): `result` as `i` says, a mask; `number`, what vcpop or vfirst give.

    active: elements that count. Timing: combinational.
    """

    def __init__(self, lanes: int):
        bits = 32 * lanes
        super().__init__(
            {
                "i": In(VECTOR),
                "first": In(bits),
                "second": In(bits),
                "active": In(bits),
                "result": Out(bits),
                "number": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, bits = self.i, len(self.first)
        a, b, logic, found = Signal(bits), Signal(bits), Signal(bits), Signal(bits)
        invert_b, invert = i.bits[1], i.bits[2]
        m.d.comb += [a.eq(self.first), b.eq(Mux(invert_b, ~self.second, self.second)), found.eq(a & self.active)]
        with m.Switch(i.lane.result):
            with m.Case(Result.AND):
                m.d.comb += logic.eq(a & b)
            with m.Case(Result.OR):
                m.d.comb += logic.eq(a | b)
            with m.Default():
                m.d.comb += logic.eq(a ^ b)
        lowest, before = Signal(bits), Signal(bits)
        m.d.comb += [lowest.eq(found & -found), before.eq(lowest - 1)]
        with m.If(i.kind == Kind.BITS):
            m.d.comb += self.result.eq(Mux(invert, ~logic, logic))
        with m.Else():  # vmsbf, vmsof, vmsif are 1, 2 and 3
            including = before | lowest
            m.d.comb += self.result.eq(Mux(i.bits[1], Mux(i.bits[0], including, lowest), before))
        counted = Signal(bits)
        m.d.comb += [
            counted.eq(Mux(i.bits[0], before, found)),
            self.number.eq(Mux(i.bits[0] & ~found.any(), 0xFFFFFFFF, ones(m, counted, "counted"))),
        ]
        return m
