"""Which places of a staging memory are in use."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.dma.fabric.packets import SLOT_BITS, SLOTS_EACH, bank_bits

__all__ = ["Places"]


class Places(wiring.Component):
    """`place` is one of `bank` that is not in use, if `there`; `take` uses it, `back` gives places back. `room`: every
    bank has one.

    Timing: `room` and `used` from registers, `place` and `there` from `bank` too.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "bank": In(bank_bits(cfg)),
                "place": Out(SLOT_BITS),
                "there": Out(1),
                "room": Out(1),
                "take": In(1),
                "back": In(SLOTS_EACH),
                "used": Out(SLOTS_EACH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = self.cfg.dma.link_movers
        anywhere = fault("a place of a link is taken in any bank")
        free = Signal(SLOTS_EACH)
        m.d.comb += [
            free.eq(Cat(~self.used[n] & ((self.bank == n % banks) | anywhere) for n in range(SLOTS_EACH))),
            self.room.eq(Cat(~self.used[k::banks].all() for k in range(banks)).all()),
            self.there.eq(free.any()),
        ]
        for n in reversed(range(SLOTS_EACH)):
            with m.If(free[n]):
                m.d.comb += self.place.eq(n)
        taken = Signal(SLOTS_EACH)
        m.d.comb += taken.eq(Mux(self.take, 1 << self.place, 0))
        m.d.sync += self.used.eq((self.used & ~self.back) | taken)
        return m
