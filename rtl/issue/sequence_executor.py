"""The registers of a queue: operations of a word change them, fields of another are filled by them."""

from amaranth.hdl import Array, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, PEEK_BITS, SEMAPHORE_INDEX_BITS
from rtl.base.fault import fault
from rtl.base.layouts import layout
from rtl.contract.config import Config
from rtl.contract.isa import Cause
from rtl.contract.sequence import (
    FILL,
    FILL_AT,
    FILLS,
    OPERATION,
    OPERATIONS,
    OPERATIONS_AT,
    REGISTERS,
    SEQUENCE_HEADER,
    SeqOp,
)
from rtl.issue.sequence_alu import SequenceAlu

__all__ = ["SequenceExecutor"]

_FENCE = SEQUENCE_HEADER.offset("fence")


class SequenceExecutor(wiring.Component):
    """Works at `word`, which stays, an operation or a register a cycle: `operate` while it is one of operations, `fill`
    while fields are filled; `load` with the cycle before the first.

    `over`: this operation is the last; then `jumps` says that a branch to word `target` is taken. `cause`, if not 0:
    the word is refused, now, and nothing is `over`. `waits`: this operation cannot be executed yet, for a fence or a
    word of HBM. `code`, `amount`, `fills`: what is added to which field (HeldWord) in this cycle; its answer is `fits`.
    `filled`: no field is left. `index`, `value`, `peek`, `peeked`, `peek_failed`, `drained`, `count`: see Sequencer.
    All registers are 0 after `start`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        # seen by proofs too
        self.known = Signal(REGISTERS)  # others are 0: a start takes one cycle
        self.turn = Signal(range(OPERATIONS))  # which operation or register of the word
        super().__init__(
            {
                "start": In(1),
                "count": In(COUNT_BITS),
                "word": In(1024),
                "load": In(1),
                "operate": In(1),
                "fill": In(1),
                "drained": In(1),
                "index": Out(SEMAPHORE_INDEX_BITS),
                "value": In(signed(32)),
                "peek": Out(stream.Signature(PEEK_BITS)),
                "peeked": In(32),
                "peek_failed": In(1),
                "code": Out(FILL.fields[0].width),
                "amount": Out(signed(32)),
                "fills": Out(1),
                "fits": In(1),
                "filled": Out(1),
                "waits": Out(1),
                "over": Out(1),
                "jumps": Out(1),
                "target": Out(COUNT_BITS),
                "cause": Out(CAUSE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turn, known, word = self.turn, self.known, self.word
        m.submodules.alu = alu = SequenceAlu()
        m.submodules.registers = registers = Memory(shape=signed(32), depth=REGISTERS, init=[])
        step, fill = Signal(layout(OPERATION)), Signal(layout(FILL))
        values = [Signal(signed(32), name=f"value_{name}") for name in "ab"]
        for number, value in zip((Mux(self.fill, fill.register, step.a), step.b), values, strict=True):
            read = registers.read_port(domain="comb")
            m.d.comb += [read.addr.eq(number), value.eq(Mux(known.bit_select(read.addr, 1), read.data, 0))]
        write = registers.write_port()
        b = Signal(signed(32))
        width = OPERATION.width
        steps = Array(word[OPERATIONS_AT + n * width :][:width] for n in range(OPERATIONS))
        fills = Array(word[FILL_AT + n * FILL.width :][: FILL.width] for n in range(FILLS))
        m.d.comb += [
            step.eq(steps[turn]),
            fill.eq(fills[turn[: exact_log2(FILLS)]]),
            b.eq(Mux(step.immediate_b, step.immediate, values[1])),
            alu.op.eq(step.op),
            alu.a.eq(values[0]),
            alu.b.eq(b),
            alu.semaphore.eq(self.value),
            alu.loaded.eq(self.peeked),
            self.index.eq(b[:SEMAPHORE_INDEX_BITS]),
            self.code.eq(fill.field),
            self.amount.eq(values[0]),
            self.jumps.eq(alu.jumps),
            self.target.eq(step.immediate + fault("a branch goes one word too far")),
            write.addr.eq(step.d),
            write.data.eq(alu.result),
        ]
        self._operate(m, alu, step, b, values[0])
        ends = (step.op == SeqOp.NONE) | (turn == OPERATIONS - 1) | alu.jumps
        done = self.operate & ~self.waits & (self.cause == 0)
        good = self.fits & (fill.reserved == 0) & ((fill.field != 0) | (fill.register == 0))
        m.d.comb += [
            self.over.eq(done & ends),
            write.en.eq(done & (step.op != SeqOp.NONE) & ~alu.branch),
            self.filled.eq(self.fill & (turn == FILLS)),
            self.fills.eq(self.fill & good & ~self.filled),
        ]
        with m.If(self.fill & ~good & ~self.filled):
            m.d.comb += self.cause.eq(Cause.BAD_SEQUENCE)
        with m.If(self.load):
            m.d.sync += turn.eq(0)
        with m.Elif(done | self.fill):
            m.d.sync += turn.eq(turn + 1)
        with m.If(write.en):
            m.d.sync += known.bit_select(step.d, 1).eq(1)
        with m.If(self.start):
            m.d.sync += known.eq(0)
        return m

    def _operate(self, m: Module, alu: SequenceAlu, step: Signal, b: Signal, a: Signal) -> None:
        """Whether an operation is one, and whether it can be executed."""
        word, loads = self.word, step.op == SeqOp.LOAD
        fence = word[_FENCE]
        rest = word[_FENCE + 1 : OPERATIONS_AT].any() | word[OPERATIONS_AT + OPERATIONS * OPERATION.width :].any()
        nowhere = (step.op == SeqOp.SEMAPHORE) & ((b.as_unsigned() >= self.cfg.issue.semaphores) | ~fence)
        beyond = alu.jumps & (step.immediate.as_unsigned() > self.count)
        wrong, outside = Signal(), Signal()
        place = Signal(signed(PEEK_BITS))  # of a word of HBM
        words = self.cfg.hbm.capacity_mib << 18
        most = min(words, 1 << PEEK_BITS - 1)
        fenced = fence & ~self.drained & (self.turn == 0) & ~fault("a fence does not wait")
        asks = self.operate & ~fenced & loads & ~wrong & ~outside
        early = fault("a register is loaded before its word is there")
        m.d.comb += [
            place.eq(a + b),
            outside.eq((place < 0) | (place >= most)),
            wrong.eq(
                ~alu.known
                | (step.reserved != 0)
                | (alu.branch & step.immediate_b)
                | (loads & ~fence)
                | ((nowhere | beyond | rest) & ~fault("an operation reaches what is not there"))
            ),
            self.peek.payload.eq(place),
            self.peek.valid.eq(asks & ~self.start),
            self.waits.eq(fenced | (asks & ~self.peek.ready & ~early)),
        ]
        with m.If(self.operate & ~self.waits):
            with m.If(wrong):
                m.d.comb += self.cause.eq(Cause.BAD_SEQUENCE)
            with m.Elif(loads & outside):
                m.d.comb += self.cause.eq(Cause.OUT_OF_RANGE)
            with m.Elif(loads & self.peek_failed):
                m.d.comb += self.cause.eq(Cause.BUS_ERROR)
            with m.Elif((step.op == SeqOp.BOUND) & ~alu.within & ~fault("a size may be above its maximum")):
                m.d.comb += self.cause.eq(Cause.BAD_SIZE)
