"""Ends instructions in order: semaphore update after the last write, then the record."""

from amaranth.hdl import Module, Signal, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import SEQUENCE_BITS, RetireSignature
from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, SEMAPHORE_UPDATE
from rtl.base.fifo import Fifo
from rtl.base.plant import planted
from rtl.contract.isa import Queue, Update
from rtl.issue.dispatch import OUTSTANDING

__all__ = ["OUTSTANDING_MAX", "Retire"]

OUTSTANDING_MAX = 16
"""Instructions of one queue that may be dispatched and not retired."""


class Retire(wiring.Component):
    """`done` says that the engine's oldest instruction has committed; it may come before the update of
    an older one was accepted. `retired` is outputs only: a cycle each, in order; the update is visible in
    the cycle after. A fault record is the last; `cause` and `sequence` keep it until `start`.
    """

    FAULTS = {
        1: "the semaphore changes at dispatch, not at the end",
        2: "a done that comes while an update waits is lost",
        3: "no update for an instruction without an engine",
    }

    def __init__(self, queue: int, plant: ValueLike = 0):
        self.queue = Queue(queue)
        self.plant = plant
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(OUTSTANDING)),
                "done": In(1),
                "update": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "retired": Out(RetireSignature()),
                "count": Out(COUNT_BITS),  # retired without fault
                "cause": Out(CAUSE_BITS),
                "sequence": Out(SEQUENCE_BITS),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fifo = fifo = Fifo(OUTSTANDING, OUTSTANDING_MAX)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        ended = Signal(range(OUTSTANDING_MAX + 1))  # done by the engine, not retired
        head = fifo.o.payload
        faulty = Signal()
        ready = Signal()  # the head has committed
        updates = Signal()
        pop = Signal()
        by_engine = Signal()

        m.d.comb += [
            faulty.eq(head.cause != 0),
            by_engine.eq(~head.local & ~faulty),
            ready.eq(fifo.o.valid & (~by_engine | (ended != 0) | self.done | planted(self.plant, 1))),
            updates.eq((head.update != Update.NONE) & ~faulty & ~(planted(self.plant, 3) & head.local)),
            self.update.valid.eq(ready & updates),
            self.update.payload.index.eq(head.semaphore),
            self.update.payload.update.eq(head.update),
            self.update.payload.value.eq(head.value),
            pop.eq(ready & (~updates | self.update.ready)),
            fifo.o.ready.eq(pop),
            self.retired.valid.eq(pop),
            self.retired.queue.eq(self.queue),
            self.retired.sequence.eq(head.sequence),
            self.retired.cause.eq(head.cause),
            self.empty.eq(~fifo.o.valid),
        ]
        kept = self.done & ~(planted(self.plant, 2) & fifo.o.valid & ~pop)
        used = pop & by_engine
        with m.If(kept & ~used):
            m.d.sync += ended.eq(ended + 1)
        with m.Elif(used & ~kept & (ended != 0)):
            m.d.sync += ended.eq(ended - 1)

        with m.If(pop):
            with m.If(faulty):
                m.d.sync += [self.cause.eq(head.cause), self.sequence.eq(head.sequence)]
            with m.Else():
                m.d.sync += self.count.eq(self.count + 1)
        with m.If(self.start):
            m.d.sync += [self.cause.eq(0), self.sequence.eq(0), self.count.eq(0)]
        return m
