"""Flits that were acknowledged, but not the unit they belong to."""

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig

__all__ = ["BegunUnits"]


class BegunUnits(wiring.Component):
    """`begun`: acknowledged flits of the unit whose tail is not acknowledged.

    A receiver drops an incomplete unit when the session ends, so its first flits are lost though they had been
    acknowledged; the sender must report them with those in the retry buffer. `enqueue` with `tail`: a flit is stored;
    `in_flight`: flits not acknowledged. Timing: combinational from registers and `in_flight`.
    """

    FAULTS = {
        1: "a unit of more than two flits begun counts as two",
        2: "a new session knows the tails of the old one",
    }

    def __init__(self, cfg: LinkConfig, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "enqueue": In(1),
                "tail": In(1),
                "in_flight": In(range(cfg.window_flits + 1)),
                "clear": In(1),
                "begun": Out(range(UNIT_FLITS_MAX)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Twice the window: the newest flits must not overwrite the last acknowledged ones.
        size = 2 << (self.cfg.window_flits + UNIT_FLITS_MAX - 1).bit_length()
        tails = Signal(size, init=(1 << size) - 1)
        put = Signal(range(size))
        with m.If(self.clear):
            m.d.sync += put.eq(0)
            with m.If(~planted(self.plant, 2)):
                m.d.sync += tails.eq(-1)
        with m.Elif(self.enqueue):
            m.d.sync += [tails.bit_select(put, 1).eq(self.tail), put.eq(put + 1)]
        acknowledged = Signal.like(put)
        m.d.comb += acknowledged.eq(put - self.in_flight - 1)
        open_ = [~tails.bit_select((acknowledged - n)[: len(put)], 1) for n in range(UNIT_FLITS_MAX - 1)]
        count = Mux(open_[0], Mux(open_[1], Mux(open_[2] & ~planted(self.plant, 1), 3, 2), 1), 0)
        m.d.comb += self.begun.eq(count)
        return m
