"""How far the rows of one side of a descriptor reach from the first one, both ways."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.dma.layouts import PARTITION_SHIFT

__all__ = ["HIGH_BITS", "LOW_BITS", "Extent"]

HIGH_BITS = 20  # more than HBM's 2^36 bytes in units of a partition's stride
LOW_BITS = 37
_STEP_BITS = 48


class Extent(wiring.Component):
    """Adds up (count - 1) * step of one dimension after the other.

    A step is split into partitions (multiples of 2^18) and bytes of the same sign. `up_*` and `down_*` sum
    the products of positive and negative steps: partitions in `*_high`, bytes in `*_low`; `over`: a sum
    left its width, so it leaves every memory.
    Timing: `clear` zeroes the sums and ends what is under way. `start` takes `count` and `step`; `busy`
    until they are added: a cycle for every four bits of count - 1, none for count 1.
    """

    def __init__(self):
        super().__init__(
            {
                "clear": In(1),
                "start": In(1),
                "count": In(32),
                "step": In(_STEP_BITS),
                "busy": Out(1),
                "up_high": Out(HIGH_BITS),
                "up_low": Out(LOW_BITS),
                "down_high": Out(HIGH_BITS),
                "down_low": Out(LOW_BITS),
                "over": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(32)  # what is still to multiply with
        high = Signal(_STEP_BITS - PARTITION_SHIFT + 6)
        low = Signal(PARTITION_SHIFT + 28)  # room for all seven shifts
        lost = Signal()  # `high` has shifted out a one
        down = Signal()
        digit = left[:4]

        magnitude = Signal(_STEP_BITS)
        negative = self.step[-1]
        m.d.comb += [
            magnitude.eq(Mux(negative, -self.step, self.step)),
            self.busy.eq(left != 0),
        ]
        with m.If(self.start):
            m.d.sync += [
                left.eq(self.count - 1),
                high.eq(magnitude[PARTITION_SHIFT:]),
                low.eq(magnitude[:PARTITION_SHIFT]),
                lost.eq(0),
                down.eq(negative),
            ]
        with m.Elif(self.clear):
            m.d.sync += left.eq(0)  # of a descriptor that was refused for its form
        with m.Elif(self.busy):
            m.d.sync += [
                left.eq(left >> 4),
                high.eq(high << 4),
                low.eq(low << 4),
                lost.eq(lost | high[-4:].any()),
            ]

        old_high = Signal(HIGH_BITS)
        old_low = Signal(LOW_BITS)
        new_high = Signal(len(high) + 5)
        new_low = Signal(len(low) + 5)
        m.d.comb += [
            old_high.eq(Mux(down, self.down_high, self.up_high)),
            old_low.eq(Mux(down, self.down_low, self.up_low)),
            new_high.eq(old_high + high * digit),
            new_low.eq(old_low + low * digit),
        ]
        with m.If(self.clear):
            m.d.sync += [
                Cat(self.up_high, self.up_low, self.down_high, self.down_low).eq(0),
                self.over.eq(0),
            ]
        with m.Elif(self.busy):
            exceeded = new_high[HIGH_BITS:].any() | new_low[LOW_BITS:].any() | (lost & (digit != 0))
            with m.If(exceeded):
                m.d.sync += self.over.eq(1)
            with m.If(down):
                m.d.sync += [self.down_high.eq(new_high), self.down_low.eq(new_low)]
            with m.Else():
                m.d.sync += [self.up_high.eq(new_high), self.up_low.eq(new_low)]
        return m
