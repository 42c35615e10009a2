"""Masks as operands: logic, counting, what is before the first bit, and how many bits are below each element."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Result

__all__ = ["MaskBits", "Prefix"]


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


class Prefix(wiring.Component):
    """counts[e]: how many of the bits below `bits[e]` are 1; total: how many are 1 of the lowest `among`, a number of
    elements by their size: all, a half, a quarter.

    Timing: combinational.
    """

    def __init__(self, lanes: int):
        self.places = 4 * lanes
        width = (self.places).bit_length()
        super().__init__(
            {
                "bits": In(self.places),
                "size": In(2),
                "counts": Out(width).array(self.places),
                "total": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.places
        sums: list[Value] = [Const(0, 1), *self.bits]  # at n: of those below n, from where it has been summed
        step = 1
        level = 0
        while step <= count:
            new: list[Value] = []
            for n, value in enumerate(sums):
                wide = Signal(min(level + 2, len(self.total)), name=f"sum_{level}_{n}")
                m.d.comb += wide.eq(value + sums[n - step] if n >= step else value)
                new.append(wide)
            sums, step, level = new, 2 * step, level + 1
        wrong = fault("viota counts the element itself")
        for n in range(count):
            m.d.comb += self.counts[n].eq(Mux(wrong, sums[n + 1], sums[n]))
        ends = [sums[count >> n] for n in range(3)]
        m.d.comb += self.total.eq(Mux(self.size == 2, ends[2], Mux(self.size == 1, ends[1], ends[0])))
        return m


def _count(bits: Value) -> Value:
    """How many are 1, by pairs."""
    parts: list[Value] = list(bits)
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
