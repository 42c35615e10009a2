"""Reads 16-byte units of another mover's partitions ahead of their use."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.credit import Credit
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.dma.layouts import fetch_layout

__all__ = ["Remote"]

_DEPTH = 4


class Remote(wiring.Component):
    """`start` opens a run of `count` units from `first`; they come in order at `unit`.

    Timing: as many requests are under way as units find a place. `start` only when the run before has
    been taken to its end.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "first": In(fetch_layout(cfg)),
                "count": In(16),
                "request": Out(stream.Signature(fetch_layout(cfg))),
                "answer_valid": In(1),
                "answer": In(128),
                "unit": Out(stream.Signature(128)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.units = units = Fifo(128, _DEPTH)
        wiring.connect(m, units.o, wiring.flipped(self.unit))
        at = Signal(fetch_layout(self.cfg))
        left = Signal(16)
        m.submodules.free = free = Credit(_DEPTH)
        asks = Signal()
        m.d.comb += [
            self.request.valid.eq((left != 0) & (free.count != 0)),
            self.request.payload.eq(at),
            asks.eq(self.request.valid & self.request.ready),
            free.take.eq(asks),
            free.give.eq(self.unit.valid & self.unit.ready),
            units.i.valid.eq(self.answer_valid),
            units.i.payload.eq(self.answer),
        ]
        with m.If(self.start):
            m.d.sync += [at.eq(self.first), left.eq(self.count)]
        with m.Elif(asks):
            m.d.sync += [at.pair.eq(at.pair + 1), left.eq(left - 1)]
        return m
