"""Elements of a half or a quarter of a register as the elements of a whole one, two or four times as wide."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Spread"]


class Spread(wiring.Component):
    """`o` is `i`, or with `doubles` its half `part`, with `quarters` too its quarter, extended to 8 << `size` bits.

    Timing: combinational.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        super().__init__(
            {
                "i": In(32 * lanes),
                "doubles": In(1),
                "quarters": In(1),
                "part": In(2),
                "size": In(2),
                "signed": In(1),
                "o": Out(32 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        half, quarter = Signal(16 * self.lanes), Signal(8 * self.lanes)
        m.d.comb += [
            half.eq(Mux(self.part[0], self.i[16 * self.lanes :], self.i[: 16 * self.lanes])),
            quarter.eq(self.i.word_select(self.part, 8 * self.lanes)),
        ]

        def extended(value: Value, bits: int) -> Value:
            return Cat(value, (value[-1] & self.signed).replicate(bits - len(value)))

        halves = Cat(
            Mux(
                self.size == 2,
                extended(half[16 * n : 16 * n + 16], 32),
                Cat(extended(half[16 * n : 16 * n + 8], 16), extended(half[16 * n + 8 : 16 * n + 16], 16)),
            )
            for n in range(self.lanes)
        )
        quarters = Cat(extended(quarter[8 * n : 8 * n + 8], 32) for n in range(self.lanes))
        m.d.comb += self.o.eq(Mux(self.doubles, Mux(self.quarters, quarters, halves), self.i))
        return m
