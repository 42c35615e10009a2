"""One in-order instruction queue: check, dispatch, retire."""

from amaranth.hdl import DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.dispatch import SEQUENCE_BITS, EngineSignature, RetireSignature
from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, RELEASE, SEMAPHORE_INDEX_BITS, SEMAPHORE_UPDATE
from rtl.base.fault import fault
from rtl.base.layouts import DESCRIPTOR_LAYOUT
from rtl.base.trace import IssueSignature
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, OPCODE_QUEUE, Queue
from rtl.issue.check import Check
from rtl.issue.dispatch import Dispatch
from rtl.issue.retire import Retire
from rtl.issue.sequencer import SHOWN

__all__ = ["QUEUE_STATUS", "IssueQueue", "has_engine"]

QUEUE_STATUS = data.StructLayout(
    {
        "issued": COUNT_BITS,
        "retired": COUNT_BITS,
        "cause": CAUSE_BITS,
        "sequence": SEQUENCE_BITS,
        "address": 64,
        "finished": 1,  # all instructions of the program have retired
        "halted": 1,  # from the fault on; those before it may still run
        "semaphore": 1,  # the next instruction waits for a semaphore
        "fetch": 1,  # the next instruction has not come from HBM, or is being checked
    }
)
"""What the registers and the counters want to know of a queue."""


def has_engine(cfg: Config, queue: Queue) -> bool:
    """Whether the queue has instructions of its own; the others take those of all queues only."""
    return queue in OPCODE_QUEUE.values() and (queue != Queue.GPSIMD or cfg.gpsimd.enabled)


class IssueQueue(wiring.Component):
    """Instructions come in as the sequencer shows them and leave as commands, releases, updates and records.

    `sent`: how many have come since `start`; `ended`: no more will. `drained`: all that came have been dispatched.
    `engine` is there for queues that have one, `copy` for those with DMA_COPY. `index` and `value` look at
    semaphores; `update` changes them. `front` is the clock domain of the
    word in front and of its check; it must run in cycles with `wake`.
    """

    def __init__(self, cfg: Config, queue: int, front: str = "sync"):
        self.cfg = cfg
        self.queue = Queue(queue)
        self.front = front
        # seen by proofs too
        self.dispatch = Dispatch(copies=self.queue in COPY_QUEUES)
        self.retire = Retire(self.queue)
        engine = {"engine": Out(EngineSignature())} if has_engine(cfg, self.queue) else {}
        copy = {"copy": Out(stream.Signature(DESCRIPTOR_LAYOUT))} if self.queue in COPY_QUEUES else {}
        super().__init__(
            {
                "start": In(1),
                "sent": In(COUNT_BITS),
                "ended": In(1),
                "drained": Out(1),
                "words": In(stream.Signature(SHOWN)),
                "fetch_cause": In(CAUSE_BITS),
                "fetch_address": In(64),
                "index": Out(SEMAPHORE_INDEX_BITS).array(2),
                "value": In(32).array(2),
                "update": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "release": Out(stream.Signature(RELEASE)),
                "refused": In(1),
                **copy,
                "retired": Out(RetireSignature()),
                "issue": Out(IssueSignature()),
                "status": Out(QUEUE_STATUS),
                "wake": Out(1),
                **engine,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        check = Check(self.cfg, self.queue)
        m.submodules.check = check if self.front == "sync" else DomainRenamer(self.front)(check)
        m.submodules.dispatch = dispatch = self.dispatch
        m.submodules.retire = retire = self.retire

        connect(m, check.o, dispatch.i)
        connect(m, dispatch.outstanding, retire.i)
        connect(m, dispatch.release, flipped(self.release))
        connect(m, retire.update, flipped(self.update))
        connect(m, retire.retired, flipped(self.retired))
        status = self.status
        m.d.comb += [
            check.start.eq(self.start),
            self.wake.eq(check.wake),
            check.i.payload.eq(Value.cast(self.words.payload.word)),
            check.refuse.eq(self.words.payload.cause),
            check.i.valid.eq(self.words.valid),
            self.words.ready.eq(check.i.ready),
            dispatch.start.eq(self.start),
            dispatch.fetch_cause.eq(self.fetch_cause),
            dispatch.fetch_address.eq(self.fetch_address),
            dispatch.refused.eq(self.refused),
            retire.start.eq(self.start),
            status.issued.eq(dispatch.issued),
            status.retired.eq(retire.count),
            status.cause.eq(retire.cause),
            status.sequence.eq(retire.sequence),
            status.address.eq(Mux(retire.cause == 0, 0, Mux(retire.failed, retire.address, dispatch.fault_address))),
            dispatch.halt.eq(retire.failed),
            status.finished.eq(self.ended & (retire.count == self.sent)),
            status.halted.eq(dispatch.halted),
            status.semaphore.eq(dispatch.waiting),
            self.drained.eq(dispatch.issued == self.sent),
            status.fetch.eq(dispatch.empty & ~dispatch.halted & ~(self.ended & self.drained)),
        ]
        late = Signal()
        m.d.sync += late.eq(dispatch.issues)
        m.d.comb += [
            self.issue.valid.eq(Mux(fault("an issue is told one cycle late"), late, dispatch.issues)),
            self.issue.sequence.eq(dispatch.issued[:SEQUENCE_BITS]),
        ]
        for number in range(2):
            m.d.comb += [
                self.index[number].eq(dispatch.index[number]),
                dispatch.value[number].eq(self.value[number]),
            ]
        if self.queue in COPY_QUEUES:
            connect(m, dispatch.copy, flipped(self.copy))
        if has_engine(self.cfg, self.queue):
            connect(m, dispatch.command, flipped(self.engine.command))
            m.d.comb += [
                retire.done.eq(self.engine.done),
                retire.failure.eq(self.engine.cause),
                retire.failure_address.eq(self.engine.address),
            ]
        return m
