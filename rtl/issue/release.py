"""Counts the descriptors of each DMA ring: released by DMA_TRIGGER, completed by the DMA."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.arbiter import RoundRobin
from rtl.base.dma_port import COUNT_BITS, RELEASE
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["RING_COUNTS", "Release"]

RING_COUNTS = data.StructLayout({"released": COUNT_BITS, "completed": COUNT_BITS})


class Release(wiring.Component):
    """Takes the triggers of all queues in turn, one a cycle, and passes them to the DMA.

    `load` sets how many descriptors `load_ring` has. A trigger of more than are left is taken with
    `refused`, and nothing is released. `settled`: all that was released has completed.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        rings = cfg.dma.rings
        super().__init__(
            {
                "start": In(1),
                "load": In(1),
                "load_ring": In(range(rings)),
                "load_count": In(COUNT_BITS),
                "request": In(stream.Signature(RELEASE)).array(len(Queue)),
                "refused": Out(1),
                "release": Out(stream.Signature(RELEASE)),
                "completed": In(rings),
                "counts": Out(RING_COUNTS).array(rings),
                "settled": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rings = self.cfg.dma.rings
        m.submodules.turn = turn = RoundRobin(len(Queue))
        m.submodules.fifo = fifo = Fifo(RELEASE, 2)
        connect(m, fifo.o, flipped(self.release))
        left = [Signal(COUNT_BITS, name=f"left_{r}") for r in range(rings)]
        chosen = Signal(RELEASE)
        enough = Signal()
        ready = Signal()
        taken = Signal()

        m.d.comb += [
            turn.requests.eq(Cat(request.valid for request in self.request)),
            turn.accept.eq(ready),
            enough.eq(
                (chosen.count <= Array(left)[chosen.ring]) | fault("more descriptors than the ring has may be released")
            ),
            fifo.i.payload.eq(chosen),
            fifo.i.valid.eq(turn.grant.any() & enough),
            ready.eq(fifo.i.ready | ~enough),
            self.refused.eq(~enough),
            taken.eq(turn.grant.any() & ready & (enough | fault("a trigger that is refused counts"))),
        ]
        for q, request in enumerate(self.request):
            m.d.comb += request.ready.eq(turn.grant[q] & ready)
            with m.If(turn.grant[q]):
                m.d.comb += chosen.eq(request.payload)

        open_rings = []
        for r in range(rings):
            counts = self.counts[r]
            open_rings.append(counts.released != counts.completed)
            with m.If(taken & (chosen.ring == r)):
                m.d.sync += [
                    counts.released.eq(counts.released + chosen.count),
                    left[r].eq(Mux(enough, left[r] - chosen.count, 0)),
                ]
            with m.If(self.completed[r]):
                m.d.sync += counts.completed.eq(counts.completed + 1)
            with m.If(self.load & (self.load_ring == r)):
                m.d.sync += left[r].eq(self.load_count)
            with m.If(self.start):
                m.d.sync += [counts.released.eq(0), counts.completed.eq(0), left[r].eq(0)]
        m.d.comb += self.settled.eq(~Cat(open_rings).any())
        return m
