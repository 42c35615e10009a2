"""Executes what a queue works out by itself, in front of its check."""

from enum import IntEnum

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, PEEK_BITS, SEMAPHORE_INDEX_BITS
from rtl.base.fault import fault
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.isa import Cause
from rtl.contract.sequence import FILL, FILL_AT, FILLS, SEQUENCE
from rtl.issue.held_word import HeldWord
from rtl.issue.sequence_executor import SequenceExecutor

__all__ = ["SHOWN", "Sequencer"]

SHOWN = data.StructLayout({"word": 1024, "index": COUNT_BITS, "cause": CAUSE_BITS})
"""What the check sees: a word, its number in the program, and, if not 0, why it is refused whatever it says."""

_FILL_END = FILL_AT + FILLS * FILL.width


class _State(IntEnum):
    LOOK = 0  # which word is next, and where is it
    KEPT = 1  # it comes from the window
    OPERATE = 2
    FILL = 3
    SHOW = 4
    STOP = 5  # a word has been refused


class Sequencer(wiring.Component):
    """`words`, in the order of a program of `count`, become what `o` shows: instructions whose fields are filled.

    A word without registers goes through in the same cycle. Of the last `window` words each is kept, so a loop of so
    many is fetched once; another word that is not next is asked for by `seek`, its number: from when that is taken,
    `words` go on with it, and those that were on their way do not come. `index`, `value`: a look at a semaphore,
    combinational. `drained`: all that was shown has been dispatched, for which a fence waits. `sent`: words shown;
    `peek`: the number of a word of 32 bits of HBM, which stays until its value is there, `peeked`; or `peek_failed`.
    `ended`: no more will be. `fetches`: nothing goes on unless `words` does.
    A program that executes `limit` words of operations without showing another is refused, with the last of them.
    Timing: a word of n operations takes 1 + n cycles, and one more if it has less than OPERATIONS and no branch is
    taken; a word with registers 1 + FILLS + 1 before it is shown; a word from the window one more. A word is shown
    until it is taken; `start` forgets all, and nothing is given or taken in its cycle.
    Without `wake` no register here would take another value: its clock may stop.
    """

    def __init__(self, cfg: Config, window: int = 32, limit: int = 1 << 12):
        self.cfg = cfg
        self.window = window
        self.limit = limit
        exact_log2(window)
        # seen by proofs too
        self.state = Signal(_State)
        self.next = Signal(COUNT_BITS)  # number of the word that is next
        self.come = Signal(COUNT_BITS)  # of the one that `words` gives next
        self.since = Signal(COUNT_BITS)  # the first word in the window is not before this
        self.alone = Signal(range(limit + 1))  # words of operations since one was shown
        self.executor = SequenceExecutor(cfg)
        super().__init__(
            {
                "start": In(1),
                "count": In(COUNT_BITS),
                "words": In(stream.Signature(1024)),
                "seek": Out(stream.Signature(COUNT_BITS)),
                "o": Out(stream.Signature(SHOWN)),
                "index": Out(SEMAPHORE_INDEX_BITS),
                "value": In(signed(32)),
                "peek": Out(stream.Signature(PEEK_BITS)),
                "peeked": In(32),  # with its ready
                "peek_failed": In(1),
                "drained": In(1),
                "sent": Out(COUNT_BITS),
                "ended": Out(1),
                "fetches": Out(1),
                "wake": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.held = held = HeldWord()
        m.submodules.executor = executor = self.executor
        m.submodules.kept = kept = Ram(1024, self.window)
        state, ahead, come, since = self.state, self.next, self.come, self.since
        slot = exact_log2(self.window)
        ended = Signal()
        cause = Signal(CAUSE_BITS)
        stays = Signal()
        payload = self.words.payload
        word = Value.cast(held.word)

        plain, came, in_window, near = Signal(), Signal(), Signal(), Signal()
        moves = Signal()  # `then` becomes next, and is read at once if it is in the window
        then, wanted = Signal(COUNT_BITS), Signal(COUNT_BITS)
        m.d.comb += [
            plain.eq((payload[:8] != SEQUENCE) & ~payload[FILL_AT:_FILL_END].any()),
            wanted.eq(Mux(moves, then, ahead)),
            in_window.eq(
                (wanted >= since)
                & (wanted < come)
                & ((come - wanted <= self.window) | fault("a window serves a word that is gone"))
            ),
            near.eq((ahead > come) & (ahead - come <= self.window)),
            ended.eq(ahead == self.count),
            self.ended.eq(ended & (state == _State.LOOK)),
            self.fetches.eq((state == _State.LOOK) & ~ended & ((ahead == come) | near)),
            self.o.payload.index.eq(ahead),
            came.eq(self.words.valid & self.words.ready),
            kept.write_en.eq(came),
            kept.write_address.eq(come[:slot]),
            kept.write_mask.eq(1),
            kept.write_data.eq(payload),
            kept.read_address.eq(wanted[:slot]),
            self.seek.payload.eq(ahead),
        ]
        with m.If(came):
            m.d.sync += come.eq(come + 1)

        connect(m, executor.peek, flipped(self.peek))
        m.d.comb += [
            executor.start.eq(self.start),
            executor.count.eq(self.count),
            executor.word.eq(word),
            executor.load.eq(held.load),
            executor.operate.eq(state == _State.OPERATE),
            executor.fill.eq(state == _State.FILL),
            executor.drained.eq(self.drained),
            self.index.eq(executor.index),
            executor.value.eq(self.value),
            executor.peeked.eq(self.peeked),
            executor.peek_failed.eq(self.peek_failed),
            executor.fits.eq(held.fits),
            held.code.eq(executor.code),
            held.value.eq(executor.amount),
            held.fill.eq(executor.fills),
            held.wipe.eq(executor.filled),
        ]
        with m.If(held.load):
            m.d.sync += cause.eq(0)
        with m.Switch(state):
            with m.Case(_State.LOOK):
                with m.If(ended | self.start):
                    pass
                with m.Elif(ahead == come):
                    m.d.comb += [
                        self.o.valid.eq(self.words.valid & plain),
                        self.words.ready.eq(self.o.ready | ~plain),
                        self.o.payload.word.eq(payload),
                        held.load.eq(self.words.valid & ~plain),
                        held.loaded.eq(payload),
                    ]
                with m.Elif(near):
                    m.d.comb += self.words.ready.eq(1)
                with m.Elif(in_window):
                    m.d.comb += kept.read_en.eq(1)
                    m.d.sync += state.eq(_State.KEPT)
                with m.Else():
                    m.d.comb += self.seek.valid.eq(1)
                    with m.If(self.seek.ready):
                        m.d.sync += [come.eq(ahead), since.eq(ahead)]
            with m.Case(_State.KEPT):
                m.d.comb += [held.load.eq(1), held.loaded.eq(kept.read_data)]
            with m.Case(_State.SHOW):
                m.d.comb += [self.o.valid.eq(~self.start), self.o.payload.word.eq(word), self.o.payload.cause.eq(cause)]
                m.d.comb += then.eq(ahead + 1)
                with m.If(self.o.ready):
                    with m.If((cause != 0) & ~fault("a refused word does not stop its queue")):
                        m.d.sync += state.eq(_State.STOP)
                    with m.Else():
                        m.d.comb += moves.eq(1)
        with m.If(held.load):
            with m.If(held.loaded[:8] == SEQUENCE):
                m.d.sync += state.eq(_State.OPERATE)
            with m.Elif(held.loaded[FILL_AT:_FILL_END].any()):
                m.d.sync += state.eq(_State.FILL)
            with m.Else():
                m.d.sync += state.eq(_State.SHOW)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [ahead.eq(ahead + 1), self.sent.eq(self.sent + 1), self.alone.eq(0)]
        with m.If(executor.cause != 0):
            m.d.sync += [cause.eq(executor.cause), state.eq(_State.SHOW)]
        with m.If(executor.filled):
            m.d.sync += state.eq(_State.SHOW)
        with m.If(executor.over):
            m.d.comb += then.eq(Mux(executor.jumps, executor.target, ahead + 1))
            m.d.sync += self.alone.eq(self.alone + 1)
            with m.If(self.alone == self.limit - 1):
                m.d.sync += [cause.eq(Cause.ENDLESS_LOOP), state.eq(_State.SHOW)]
            with m.Else():
                m.d.comb += moves.eq(1)
        with m.If(moves):
            m.d.comb += kept.read_en.eq(in_window)
            m.d.sync += [ahead.eq(then), state.eq(Mux(in_window, _State.KEPT, _State.LOOK))]

        with m.Switch(state):
            with m.Case(_State.LOOK):
                sought = self.seek.valid & self.seek.ready & ~fault("the clock of a sequencer stops too early")
                m.d.comb += stays.eq(~kept.read_en & ~came & ~sought)
            with m.Case(_State.OPERATE):
                m.d.comb += stays.eq(executor.waits)
            with m.Case(_State.SHOW):
                m.d.comb += stays.eq(~self.o.ready)
            with m.Case(_State.STOP):
                m.d.comb += stays.eq(1)
        m.d.comb += self.wake.eq(self.start | ~stays)
        with m.If(self.start):
            m.d.sync += [state.eq(0), ahead.eq(0), come.eq(0), since.eq(0), self.sent.eq(0), self.alone.eq(0)]
        return m
