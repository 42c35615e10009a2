"""Which places of a staging memory are in use."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.dma.fabric.packets import SLOT_BITS, SLOTS_EACH

__all__ = ["Places"]


class Places(wiring.Component):
    """`place` is one that is not in use, if `there`; `take` uses it, `back` gives places back.

    Timing: `place` and `there` from registers.
    """

    def __init__(self):
        super().__init__(
            {
                "place": Out(SLOT_BITS),
                "there": Out(1),
                "take": In(1),
                "back": In(SLOTS_EACH),
                "used": Out(SLOTS_EACH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n in reversed(range(SLOTS_EACH)):
            with m.If(~self.used[n]):
                m.d.comb += self.place.eq(n)
        m.d.comb += self.there.eq(~self.used.all())
        taken = Signal(SLOTS_EACH)
        m.d.comb += taken.eq(Mux(self.take, 1 << self.place, 0))
        m.d.sync += self.used.eq((self.used & ~self.back) | taken)
        return m
