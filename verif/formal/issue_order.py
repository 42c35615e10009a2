"""An instruction queue: instructions leave in the order of the program when their semaphores allow it, and retire so.

The check of instructions is left out: it takes its time, and any instruction may be found faulty. What enters, what
the semaphores hold, when engine, rings and semaphores take what they are offered, what fails: all free. From the start
of a program on; a second start is left to the benches.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.contract.config import Config, named
from rtl.contract.isa import COPY_AT, INSTRUCTION, Opcode, Queue, Update, Wait
from rtl.issue.check import CHECKED
from rtl.issue.queue import IssueQueue
from verif.formal.arbiter import ones
from verif.formal.free import StandIn, fifo_sound
from verif.formal.proof import Proof, without_reset
from verif.formal.stream_rules import StreamRules, surround

__all__ = ["PROOFS", "DispatchProof", "RetireProof"]


class AnyCheck(wiring.Component):
    """Stands in for Check: the word in its turn, with any cause, after any time."""

    def __init__(self, cfg: Config, queue: int):
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(INSTRUCTION_LAYOUT)),
                "refuse": In(8),
                "o": Out(stream.Signature(CHECKED)),
                "wake": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        done = Signal()
        cause = Signal(8)
        m.d.comb += [
            self.o.valid.eq(done & self.i.valid),
            self.o.payload.word.eq(self.i.payload),
            self.o.payload.cause.eq(cause),
            self.i.ready.eq(self.o.valid & self.o.ready),
        ]
        m.d.sync += done.eq(Mux(done, ~(self.o.valid & self.o.ready), self.i.valid & AnySeq(1)))
        with m.If(~done):
            m.d.sync += cause.eq(AnySeq(8))
        return m


class QueueUnderProof(wiring.Component):
    """A queue, what surrounds it, and counts beside it; numbers are sequence numbers."""

    def __init__(self):
        self.queue = IssueQueue(named("tiny"), Queue.SCALAR)  # that has commands, releases and copies
        self.pending = Signal(6)  # commands that the engine has and has not ended
        self.done = Signal()
        self.failure = Signal(8)
        super().__init__({})

    def surrounded(self, *, retires: bool) -> Module:
        """The queue among free inputs. What it offers stays, unless the engine has failed; one half is looked at."""
        m = Module()
        queue, command = self.queue, self.queue.engine.command
        m.submodules.queue = StandIn(queue, Check=AnyCheck)
        without_reset(m)
        rules = surround(m, queue, unchecked=("release", "copy") if retires else ("update",), start=0)
        failed = queue.retire.failed
        if not retires:
            rules["release"].void = rules["copy"].void = failed
            rule = StreamRules(command.valid, command.ready, command.payload, void=failed)
            m.submodules.rules_command = rule
        m.d.comb += [
            self.done.eq(AnySeq(1) & (self.pending != 0)),
            self.failure.eq(AnySeq(8)),
            queue.engine.done.eq(self.done),
            queue.engine.cause.eq(self.failure),
            command.ready.eq(AnySeq(1)),
        ]
        m.d.sync += self.pending.eq(self.pending + (command.valid & command.ready) - self.done)
        return m


class DispatchProof(QueueUnderProof):
    """One instruction at a time, in order, once, and only after its conditions have held in one cycle."""

    def elaborate(self, platform: object) -> Module:
        m = self.surrounded(retires=False)
        queue, dispatch, command = self.queue, self.queue.dispatch, self.queue.engine.command
        words, ring, copy, push = queue.words, queue.release, queue.copy, dispatch.outstanding
        word = Signal(INSTRUCTION_LAYOUT)  # that entered last
        entered = Signal(32)
        inside = Signal()  # it has not left
        held = Signal()  # its conditions
        stopped = Signal()  # something has failed in an earlier cycle
        faulted = Signal()  # the fault of an instruction is on its way to be told
        enters, pushes, leaves, fails, local = Signal(), Signal(), Signal(), Signal(), Signal()
        holds = [
            (word[f"wait{n}"] == Wait.NONE)
            | ((word[f"wait{n}"] == Wait.GE) & (queue.value[n].as_signed() >= word[f"wait{n}_value"]))
            | ((word[f"wait{n}"] == Wait.EQ) & (queue.value[n].as_signed() == word[f"wait{n}_value"]))
            for n in range(2)
        ]
        incoming = data.View(INSTRUCTION_LAYOUT, words.payload.word)
        m.d.comb += [
            enters.eq(words.valid & words.ready),
            pushes.eq(push.valid & push.ready),
            leaves.eq(pushes & inside),
            fails.eq(pushes & (push.payload.cause != 0)),
            local.eq(word.opcode < 16),
            Assume((word.wait0 <= Wait.EQ) & (word.wait1 <= Wait.EQ)),
        ]
        with m.If(enters):
            m.d.sync += [word.eq(incoming), entered.eq(entered + 1), inside.eq(1)]
            m.d.sync += held.eq((incoming.wait0 == Wait.NONE) & (incoming.wait1 == Wait.NONE))
        with m.Else():
            m.d.sync += [inside.eq(inside & ~leaves), held.eq(held | (inside & holds[0] & holds[1]))]
        m.d.sync += [stopped.eq(stopped | fails | queue.retire.failed), faulted.eq(faulted | fails)]

        goes = command.valid | ring.valid | copy.valid | (push.valid & (push.payload.cause == 0))
        sound = push.payload.cause == 0
        m.d.comb += [
            Assert(~(enters & inside)),
            Assert(~goes | (inside & held & ~stopped & (dispatch.current.cause == 0))),
            Assert(ones(Cat(command.valid, ring.valid, copy.valid)) <= 1),
            Assert((command.valid & command.ready) == (leaves & ~local & sound)),
            Assert(~ring.valid | (word.opcode == Opcode.DMA_TRIGGER)),
            Assert(
                (ring.valid & ring.ready & ~queue.refused) == (leaves & (word.opcode == Opcode.DMA_TRIGGER) & sound)
            ),
            Assert(~copy.valid | (word.opcode == Opcode.DMA_COPY)),
            Assert((copy.valid & copy.ready) == (leaves & (word.opcode == Opcode.DMA_COPY) & sound)),
            Assert(~copy.valid | (Value.cast(copy.payload) == Value.cast(word)[COPY_AT : INSTRUCTION.offset("imm2")])),
            Assert(~push.valid | (push.payload.sequence == (entered - inside)[:16])),
            Assert(~leaves | (push.payload.update == word.update[:2])),
            Assert(~leaves | (push.payload.semaphore == word.update_semaphore[:8])),
            Assert(~leaves | (push.payload.value == word.update_value)),
            Assert(~command.valid | (command.payload.word == word)),
            Assert(~command.valid | (command.payload.sequence == (entered - 1)[:16])),
            # for the induction
            Assert(fifo_sound(queue.retire.fifo)),
            Assert(dispatch.full == inside),
            Assert(faulted | ((dispatch.issued + inside)[:32] == entered)),
            Assert(~stopped | queue.status.halted),
            Assert(~faulted | (~inside & stopped)),
            Assert(~stopped | faulted | queue.retire.failed),
        ]
        with m.If(inside):
            m.d.comb += [
                Assert(dispatch.current.word == word),
                Assert(dispatch.cleared == held),
                Assert(dispatch.local == local),
                Assert(dispatch.trigger == (word.opcode == Opcode.DMA_TRIGGER)),
                Assert(dispatch.copying == (word.opcode == Opcode.DMA_COPY)),
                Assert(dispatch.faulty == (dispatch.current.cause != 0)),
            ]
        waits = (word.wait0 == Wait.GE) & (word.wait1 == Wait.EQ)
        m.d.comb += [
            Cover(command.valid & command.ready & waits & (entered == 2)),
            Cover(ring.valid & ring.ready & (entered == 2)),
            Cover(copy.valid & copy.ready & (entered == 2)),
            Cover(stopped & inside & (entered == 2)),
        ]
        return m


class RetireProof(QueueUnderProof):
    """Each instruction retires once, in order, its update with it; one of the engine after its `done`.

    With a failure of the engine the queue ends: what failed is the last that retires.
    """

    def elaborate(self, platform: object) -> Module:
        m = self.surrounded(retires=True)
        queue, retire, update = self.queue, self.queue.retire, self.queue.update
        dispatch, fifo, ended = queue.dispatch, retire.fifo, Signal(6)
        retired = Signal(16)
        failed, over = Signal(), Signal()  # the engine has failed; a record with a cause was the last
        head = fifo.o.payload
        by_engine, good, counts = Signal(), Signal(), Signal()
        m.d.comb += [
            by_engine.eq(~head.local & (head.cause == 0)),
            good.eq(queue.retired.valid & (queue.retired.cause == 0)),
            counts.eq(self.done & ~failed & (self.failure == 0)),
        ]
        m.d.sync += [
            failed.eq(failed | (self.done & (self.failure != 0))),
            ended.eq(ended + counts - (good & by_engine)),
            retired.eq(retired + queue.retired.valid),
            over.eq(over | (queue.retired.valid & (queue.retired.cause != 0))),
        ]
        takes = update.valid & update.ready
        due = queue.retired.valid & (queue.retired.cause == 0) & (head.update != Update.NONE)
        m.d.comb += [
            Assert(~queue.retired.valid | (queue.retired.sequence == retired)),
            Assert(~(queue.retired.valid & over)),
            Assert(~(good & by_engine) | (ended != 0) | counts),
            Assert(takes == due),
            Assert(~update.valid | ((update.payload.index == head.semaphore) & (update.payload.value == head.value))),
            Assert(~update.valid | (update.payload.update == head.update)),
        ]

        # for the induction: the FIFO holds what is numbered from `retired` on; its commands are ended or pending
        places = [((n - fifo.read)[:4], entry) for n, entry in enumerate(fifo.entries)]
        commands = Cat((k < fifo.level) & ~entry.local & (entry.cause == 0) for k, entry in places)
        faults = Cat((k < fifo.level) & (entry.cause != 0) for k, entry in places)
        last, closed = Signal(16), Signal()  # closed: no more instructions come
        m.d.comb += closed.eq(queue.status.halted & ~dispatch.full)
        m.d.comb += last.eq(retired + fifo.level)
        for k, entry in places:
            m.d.comb += Assert((k >= fifo.level) | (entry.sequence == (retired + k)[:16]))
            m.d.comb += Assert((k >= fifo.level) | (entry.cause == 0) | (k == fifo.level - 1))
        m.d.comb += [
            Assert(fifo_sound(fifo)),
            Assert(failed | (ones(commands) == ended + self.pending)),
            Assert(ended <= ones(commands)),
            Assert(over | (retire.ended == ended)),
            Assert(~failed | (retire.first_failure != 0)),
            Assert((retire.failed == failed) & (~retire.over | (over & failed))),
            Assert(~over | retire.over | ((fifo.level == 0) & closed)),
            Assert(closed | (dispatch.issued[:16] == last)),
            Assert(~faults.any() | closed),
            Assert(~dispatch.full | (dispatch.faulty == (dispatch.current.cause != 0))),
            Assert(~dispatch.full | dispatch.local | ~(dispatch.trigger | dispatch.copying)),
        ]
        m.d.comb += [
            Cover(takes & (retired == 2) & by_engine),
            Cover(over & failed & (retired == 2)),
            Cover(fifo.level == 3),
        ]
        return m


PROOFS = (
    Proof(
        name="issue_dispatch",
        make=DispatchProof,
        depth=3,
        cover_depth=12,
        fault_depth=12,
        faults=(
            "GE compares with greater",
            "only one of two conditions has to hold",
            "a fault does not halt the queue",
            "the faulty instruction is dispatched to the engine too",
            "a copy does not wait",
        ),
    ),
    Proof(
        name="issue_retire",
        make=RetireProof,
        depth=3,
        cover_depth=16,
        fault_depth=16,
        faults=(
            "the semaphore changes at dispatch, not at the end",
            "a done that comes while an update waits is lost",
            "no update for an instruction without an engine",
            "a command that failed retires like others",
            "instructions behind one that failed retire",
        ),
    ),
)
