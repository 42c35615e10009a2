"""Flits that were acknowledged, but not the unit they belong to."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig

__all__ = ["BegunUnits"]


class BegunUnits(wiring.Component):
    """`begun`: acknowledged flits of the unit whose tail is not acknowledged.

    A receiver drops an incomplete unit when the session ends, so its first flits are lost though they had been
    acknowledged; the sender must report them with those in the retry buffer. `enqueue` with `tail`: a flit is stored;
    `in_flight`: flits not acknowledged. Timing: combinational from registers and `in_flight`.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
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
        m.submodules.flits = flits = Memory(shape=range(UNIT_FLITS_MAX), depth=size, init=[])
        store = flits.write_port()
        last = flits.read_port(domain="comb")
        put = Signal(range(size))
        open_ = Signal(range(UNIT_FLITS_MAX))  # flits stored of the unit whose tail is not
        known = Signal()  # a flit of this session was acknowledged
        any_ = Signal()
        m.d.comb += [
            store.en.eq(self.enqueue),
            store.addr.eq(put),
            store.data.eq(Mux(self.tail, 0, open_ + 1)),
            last.addr.eq(put - self.in_flight - 1),
            any_.eq(known | (put != self.in_flight)),
        ]
        m.d.sync += known.eq(any_)
        with m.If(self.clear):
            m.d.sync += [put.eq(0), open_.eq(0), known.eq(fault("a new session knows the tails of the old one"))]
        with m.Elif(self.enqueue):
            m.d.sync += [put.eq(put + 1), open_.eq(store.data)]
        m.d.comb += self.begun.eq(
            Mux(
                fault("a unit of more than two flits begun counts as two") & (last.data == 3),
                2,
                Mux(any_, last.data, 0),
            )
        )
        return m
