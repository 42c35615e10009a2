"""A sequencer executes the words of a program in the order that its branches say: none twice, none left out, none else.

The prover chooses a program's length, one of its words with its number, which branches are taken, what is wrong, and
when words come and are taken. Other words may hold anything, another thing each time. What operations make of
registers and registers of fields is left out; the benches look at that.
"""

from typing import Any

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.dma_port import COUNT_BITS
from rtl.base.layouts import layout
from rtl.contract.config import named
from rtl.contract.sequence import FILL, FILL_AT, FILLS, OPERATION, OPERATIONS, OPERATIONS_AT, SEQUENCE, SeqOp
from rtl.issue.held_word import HeldWord
from rtl.issue.sequence_alu import SequenceAlu
from rtl.issue.sequencer import Sequencer
from verif.formal.free import FollowedRam, StandIn, drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "SequencerOrderProof"]

_WINDOW = 2
_LOOK, _KEPT, _OPERATE, _FILL, _SHOW, _STOP = range(6)
_PAD = ((1 << FILLS * FILL.width) - 1) << FILL_AT


class AnyAlu(SequenceAlu):
    """Any operation may branch, or be none."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for port in (self.result, self.jumps, self.branch, self.known):
            drive(m, port)
        return m


class UnfilledWord(HeldWord):
    """Keeps a word; sums fit or do not."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        drive(m, self.fits)
        with m.If(self.load):
            m.d.sync += self.word.eq(self.loaded)
        with m.Elif(self.wipe):
            m.d.sync += self.word[FILL_AT : FILL_AT + FILLS * FILL.width].eq(0)
        return m


class SequencerOrderProof(wiring.Component):
    """`expected`: the number of the word that is to be executed, worked out from what has been executed."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        s = Sequencer(named("tiny"), _WINDOW, 4)
        number, word, count = Signal(COUNT_BITS), Signal(1024), Signal(COUNT_BITS)
        for fixed in (number, word, count):
            m.d.comb += fixed.eq(AnyConst(len(fixed)))
        parts: dict[str, Any] = {}

        def ram(width: int, depth: int) -> FollowedRam:
            parts["ram"] = FollowedRam(width, depth, followed=number[:1])
            return parts["ram"]

        def held_word() -> UnfilledWord:
            parts["held"] = UnfilledWord()
            return parts["held"]

        def alu() -> AnyAlu:
            parts["alu"] = AnyAlu()
            return parts["alu"]

        m.submodules.sequencer = StandIn(
            s, Ram=ram, HeldWord=held_word, **{"rtl.issue.sequence_executor.SequenceAlu": alu}
        ).elaborate(platform)
        without_reset(m)
        kept, held, operation = parts["ram"], parts["held"], parts["alu"]
        for free in (
            s.words.valid,
            s.words.payload,
            s.seek.ready,
            s.o.ready,
            s.drained,
            s.value,
            s.peek.ready,
            s.peek_failed,
        ):
            drive(m, free)
        # A program begins in the first cycle; its words are those of their numbers.
        first = Signal(init=1)
        at = Signal(COUNT_BITS)  # the number of the word that is given next
        m.d.sync += first.eq(0)
        given, sought = s.words.valid & s.words.ready, s.seek.valid & s.seek.ready
        m.d.comb += [
            s.start.eq(first),
            s.count.eq(count),
            Assume((at != number) | (s.words.payload == word)),
            Assume(count < 1 << 31),
            Assume(number < count),
            Assert(~given | (at < count)),
            Assert(~sought | (s.seek.payload < count)),
            Assert(~(given & sought)),
        ]
        m.d.sync += at.eq(Mux(sought, s.seek.payload, at + given))
        self._order(m, s, held, operation, number, word, count, first)
        # For the induction: what the window holds.
        near = (s.since <= number) & (number < s.come) & (s.come - number <= _WINDOW)
        m.d.comb += [
            Assert((at == s.come) & (s.since <= s.come) & (s.come <= count)),
            Assert(~near | (kept.kept == word)),
            Assert((s.state != _KEPT) | (s.next != number) | (kept.read_data == word)),
            Assert((s.state == _LOOK) | (s.state == _STOP) | ((s.next < s.come) & (s.next < count))),
            Assert(s.state <= _STOP),
        ]
        return m

    @staticmethod
    def _order(
        m: Module,
        s: Sequencer,
        held: HeldWord,
        operation: SequenceAlu,
        number: Signal,
        word: Signal,
        count: Signal,
        first: Signal,
    ) -> None:
        before, expected, target, shown = (Signal(COUNT_BITS) for _ in range(4))
        over, stopped = Signal(), Signal()
        taken = s.o.valid & s.o.ready
        step = Signal(layout(OPERATION))
        whole = Value.cast(held.word)
        steps = [whole[OPERATIONS_AT + n * OPERATION.width :][: OPERATION.width] for n in range(OPERATIONS)]
        m.d.comb += step.eq(Array(steps)[s.executor.turn])
        loading = s.peek.valid & ~s.peek.ready
        executes = (s.state == _OPERATE) & ~((s.executor.turn == 0) & whole[8] & ~s.drained) & ~loading
        ends = (step.op == SeqOp.NONE) | (s.executor.turn == OPERATIONS - 1) | operation.jumps
        # Whether a word of operations was refused is seen in the cycle after its last: then it is shown, or left.
        left = over & ((s.state == _LOOK) | (s.state == _KEPT))
        m.d.sync += [
            over.eq(executes & ends),
            target.eq(Mux(operation.jumps, step.immediate.as_unsigned(), expected + 1)),
            before.eq(expected + (taken & (s.o.payload.cause == 0))),
            shown.eq(shown + taken),
            stopped.eq(stopped | (taken & (s.o.payload.cause != 0))),
        ]
        same = Mux(s.state == _SHOW, (whole == word & ~_PAD) | (s.o.payload.cause != 0), whole == word)
        m.d.comb += [
            expected.eq(Mux(left, target, before)),
            Assert(first | stopped | (expected == s.next)),
            Assert(expected <= count),
            Assert(~taken | ((s.o.payload.index == expected) & (expected < count) & ~stopped)),
            Assert(~taken | (expected != number) | (s.o.payload.cause != 0) | (s.o.payload.word == word & ~_PAD)),
            Assert(~s.ended | first | (expected == count)),
            Assert(s.sent == shown),
            # for the induction
            Assert((s.state == _STOP) == stopped),
            Assert(((s.state != _OPERATE) & (s.state != _FILL) & (s.state != _SHOW)) | (s.next != number) | same),
            Assert((s.state != _OPERATE) | (whole[:8] == SEQUENCE)),
            Cover(taken & (expected == number) & (shown > count)),
            Cover(left & (target < s.come) & (expected == number)),
            Cover(s.seek.valid & s.seek.ready),
            Cover(stopped),
        ]


PROOFS = (
    Proof(
        name="sequencer_order",
        make=SequencerOrderProof,
        depth=3,
        cover_depth=14,
        fault_depth=12,
        faults=(
            "a branch goes one word too far",
            "a window serves a word that is gone",
            "a refused word does not stop its queue",
        ),
    ),
)
