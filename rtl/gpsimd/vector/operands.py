"""Operands of the lanes: registers, their halves and quarters extended, or a scalar in all elements."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.vector.layouts import VECTOR, Second
from rtl.gpsimd.vector.spread import Spread

__all__ = ["Operands"]


class Operands(wiring.Component):
    """Of instruction `i`: `a`, `b` and `c` of the lanes, from registers vs2 (`first`), vs1 (`second`) and vd (`third`).

    now_size: of the elements that vtype says; size: of those that are computed. part: which half or quarter of what is
    extended. scalar: what stands beside vs2 if that is no vector.
    Timing: combinational.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "i": In(VECTOR),
                "now_size": In(2),
                "size": In(2),
                "part": In(2),
                "scalar": In(32),
                "first": In(bits),
                "second": In(bits),
                "third": In(bits),
                "a": Out(bits),
                "b": Out(bits),
                "c": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, operands, scalar, of = self.i, self.i.operands, self.scalar, self.now_size
        m.submodules.first_spread = first = Spread(self.lanes)
        m.submodules.second_spread = second = Spread(self.lanes)
        everywhere = Signal(32)
        m.d.comb += [
            everywhere.eq(Mux(of == 2, scalar, Mux(of == 1, scalar[:16].replicate(2), scalar[:8].replicate(4)))),
            first.i.eq(self.first),
            first.doubles.eq(operands.widens_first),
            first.quarters.eq(operands.quarters),
            first.part.eq(self.part),
            first.size.eq(self.size),
            first.signed.eq(operands.signed_first),
            second.i.eq(Mux(i.second == Second.VECTOR, self.second, everywhere.replicate(self.lanes))),
            second.doubles.eq(operands.widens_second),
            second.part.eq(self.part),
            second.size.eq(self.size),
            second.signed.eq(operands.signed_second),
            self.a.eq(Mux(operands.to_third, self.third, Mux(operands.swaps, second.o, first.o))),
            self.b.eq(Mux(operands.swaps, first.o, second.o)),
            self.c.eq(Mux(operands.to_third, first.o, self.third)),
        ]
        return m
