"""Masks as operands: logic, counting, and what is before the first bit."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.vector.layouts import VECTOR, Kind, Result

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
        m.d.comb += [a.eq(self.first), b.eq(self.second ^ invert_b.replicate(bits)), found.eq(a & self.active)]
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
            m.d.comb += self.result.eq(logic ^ invert.replicate(bits))
        with m.Else():  # vmsbf, vmsof, vmsif are 1, 2 and 3
            including = before | lowest
            m.d.comb += self.result.eq(Mux(i.bits[1], Mux(i.bits[0], including, lowest), before))
        places = Mux(found.any(), _count(before), 0xFFFFFFFF)
        m.d.comb += self.number.eq(Mux(i.bits[0], places, _count(found)))
        return m


def _count(bits: Value) -> Value:
    """How many are 1, by pairs."""
    parts: list[Value] = list(bits)
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
