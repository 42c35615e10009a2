"""Ends instructions in order: semaphore update after the last write, then the record."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import SEQUENCE_BITS, RetireSignature
from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, SEMAPHORE_UPDATE
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.isa import Queue, Update
from rtl.issue.dispatch import OUTSTANDING

__all__ = ["OUTSTANDING_MAX", "Retire"]

OUTSTANDING_MAX = 16
"""Instructions of one queue that may be dispatched and not retired."""


class Retire(wiring.Component):
    """`done` says that the engine's oldest instruction has committed; it may come before the update of
    an older one was accepted. With a `failure` it halts the queue as an instruction that fails its check does, and
    what is behind it leaves no trace here. `retired` is outputs only: a cycle each, in order; the update is visible in
    the cycle after. A fault record is the last; `cause` and `sequence` keep it until `start`.
    """

    def __init__(self, queue: int):
        self.queue = Queue(queue)
        # seen by proofs too
        self.fifo = Fifo(OUTSTANDING, OUTSTANDING_MAX)
        self.ended = Signal(range(OUTSTANDING_MAX + 1))  # done by the engine, not retired
        self.over = Signal()  # what failed has retired
        self.first_failure = Signal(CAUSE_BITS)
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(OUTSTANDING)),
                "done": In(1),
                "failure": In(CAUSE_BITS),  # with done
                "failure_address": In(64),
                "update": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "retired": Out(RetireSignature()),
                "count": Out(COUNT_BITS),  # retired without fault
                "cause": Out(CAUSE_BITS),
                "address": Out(64),  # of what the engine failed at
                "sequence": Out(SEQUENCE_BITS),
                "failed": Out(1),  # the engine, in an earlier cycle; until `start`
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        ended, over = self.ended, self.over
        broken = Signal()  # what the engine does after `ended` has failed
        fails, done, kept, used = Signal(), Signal(), Signal(), Signal()
        head = fifo.o.payload
        faulty = Signal()
        failing = Signal()  # the head is what failed
        ready = Signal()  # the head has committed
        updates = Signal()
        pop = Signal()
        by_engine = Signal()

        m.d.comb += [
            fails.eq(self.done & (self.failure != 0) & ~broken & ~fault("a command that failed retires like others")),
            done.eq(self.done & ~fails & ~broken),
            kept.eq(done & ~(fault("a done that comes while an update waits is lost") & fifo.o.valid & ~pop)),
            used.eq(pop & by_engine & ~failing),
            faulty.eq((head.cause != 0) | failing),
            by_engine.eq(~head.local & (head.cause == 0)),
            failing.eq(by_engine & broken & (ended == 0)),
            self.failed.eq(broken),
            ready.eq(
                fifo.o.valid
                & ~over
                & (
                    ~by_engine
                    | (ended != 0)
                    | done
                    | failing
                    | fault("the semaphore changes at dispatch, not at the end")
                )
            ),
            updates.eq(
                (head.update != Update.NONE)
                & ~faulty
                & ~(fault("no update for an instruction without an engine") & head.local)
            ),
            self.update.valid.eq(ready & updates),
            self.update.payload.index.eq(head.semaphore),
            self.update.payload.update.eq(head.update),
            self.update.payload.value.eq(head.value),
            pop.eq(ready & (~updates | self.update.ready)),
            fifo.o.ready.eq(pop),
            self.retired.valid.eq(pop),
            self.retired.queue.eq(self.queue),
            self.retired.sequence.eq(head.sequence),
            self.retired.cause.eq(Mux(failing, self.first_failure, head.cause)),
            self.empty.eq(~fifo.o.valid),
        ]
        with m.If(fails):
            m.d.sync += [broken.eq(1), self.first_failure.eq(self.failure), self.address.eq(self.failure_address)]
        with m.If(pop & failing & ~fault("instructions behind one that failed retire")):
            m.d.sync += over.eq(1)
        with m.If(kept & ~used):
            m.d.sync += ended.eq(ended + 1)
        with m.Elif(used & ~kept & (ended != 0)):
            m.d.sync += ended.eq(ended - 1)

        with m.If(pop):
            with m.If(faulty):
                m.d.sync += [self.cause.eq(self.retired.cause), self.sequence.eq(head.sequence)]
            with m.Else():
                m.d.sync += self.count.eq(self.count + 1)
        with m.If(self.start):
            m.d.sync += [self.cause.eq(0), self.sequence.eq(0), self.count.eq(0), broken.eq(0), over.eq(0)]
        return m
