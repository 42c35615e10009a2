"""Signals of rings and of requests on one stream."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import SEMAPHORE_UPDATE

__all__ = ["SignalShare"]


class SignalShare(wiring.Component):
    """`rings` go first, but what has been offered at `o` is not taken back. Timing: combinational."""

    def __init__(self):
        signal = stream.Signature(SEMAPHORE_UPDATE)
        super().__init__({"rings": In(signal), "link": In(signal), "o": Out(signal)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        offered = Signal()  # the link's
        turn = Signal()
        m.d.comb += [
            turn.eq(offered | ~self.rings.valid),
            self.o.valid.eq(self.rings.valid | self.link.valid),
            self.o.payload.eq(Mux(turn, self.link.payload, self.rings.payload)),
            self.rings.ready.eq(self.o.ready & ~turn),
            self.link.ready.eq(self.o.ready & turn),
        ]
        m.d.sync += offered.eq(self.link.valid & turn & ~self.o.ready)
        return m
