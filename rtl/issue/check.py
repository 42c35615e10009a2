"""Decides whether an instruction may run, before anything of it does."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import CAUSE_BITS
from rtl.base.fault import fault
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.contract.config import Config
from rtl.contract.isa import Function, Opcode, Queue, is_opcode_of
from rtl.contract.rule import OpcodeRule
from rtl.contract.rules import RULES
from rtl.issue.header import HeaderCheck
from rtl.issue.operands import OperandsCheck
from rtl.issue.weights import WeightsCheck

__all__ = ["CHECKED", "Check"]

CHECKED = data.StructLayout({"word": INSTRUCTION_LAYOUT, "cause": CAUSE_BITS, "address": 64})
"""An instruction and what is wrong with it: cause 0 if nothing. The address belongs to the cause."""

_LAST_STEP = 4
_GPSIMD = 96  # opcodes from here on


class Check(wiring.Component):
    """Checks the instructions of one queue against rtl.contract.rules.

    Timing: the word at `i` is looked at in place and taken when `o` is taken; `o` is valid one cycle
    after the word if it has no operands, else 5 cycles after, so a queue does 1 in 7 cycles.
    `refuse`, with the word, is a cause that comes before all others.
    The fault address of an operand is its first byte; of a semaphore, its address; else 0.
    `start` forgets which functions the table loaded last holds, and of which kind weights are.
    Without `wake` no register here would take another value that is ever looked at: its clock may stop.
    """

    def __init__(self, cfg: Config, queue: int):
        self.cfg = cfg
        self.queue = Queue(queue)
        self.rules: dict[Opcode, OpcodeRule] = {
            opcode: rule
            for opcode, rule in RULES.items()
            if is_opcode_of(opcode, self.queue) and (opcode < _GPSIMD or cfg.gpsimd.enabled)
        }
        # seen by proofs too
        self.step = Signal(3)  # 0: header and innermost dimension
        self.loaded = Signal(max(Function) + 1)
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(INSTRUCTION_LAYOUT)),
                "refuse": In(CAUSE_BITS),
                "o": Out(stream.Signature(CHECKED)),
                "wake": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step, loaded = self.step, self.loaded
        done = Signal()
        cause = Signal(CAUSE_BITS)
        address = Signal(64)
        word = self.i.payload
        m.submodules.header = header = HeaderCheck(self.cfg, self.rules)
        operands: OperandsCheck | None = None
        if any(rule.operands for rule in self.rules.values()):
            operands = OperandsCheck(self.cfg, self.rules)
            m.submodules.operands = operands
            m.d.comb += [operands.word.eq(word), operands.step.eq(step)]

        m.d.comb += [
            header.word.eq(word),
            self.o.valid.eq(done),
            self.o.payload.word.eq(word),
            self.o.payload.cause.eq(cause),
            self.o.payload.address.eq(address),
            self.i.ready.eq(done & self.o.ready),
            self.wake.eq(
                self.start | (self.i.valid & ~(done & (~self.o.ready | fault("the clock of a check stops too early"))))
            ),
        ]
        with m.If(done):
            with m.If(self.o.ready):
                m.d.sync += [done.eq(0), step.eq(0)]
        with m.Elif(self.i.valid):
            m.d.sync += step.eq(step + 1)
            with m.If(step == 0):
                refused = (self.refuse != 0) & ~fault("a word that the sequencer refuses is checked like others")
                m.d.sync += [
                    cause.eq(Mux(refused, self.refuse, header.cause)),
                    address.eq(Mux(refused, 0, header.address)),
                    done.eq(refused | (header.cause != 0) | (~operands.used if operands else 1)),
                ]
            if operands:
                with m.If(step == _LAST_STEP):
                    m.d.sync += [cause.eq(operands.cause), address.eq(operands.address), done.eq(1)]
        if operands and Opcode.LOAD_STATIONARY in self.rules:
            m.submodules.weights = weights = WeightsCheck(self.cfg)
            m.d.comb += [
                weights.word.eq(word),
                weights.start.eq(self.start),
                weights.columns.eq(operands.columns[: len(weights.columns)]),
                weights.passes.eq(done & self.o.ready & (cause == 0)),
            ]
            with m.If(~done & self.i.valid & (step == _LAST_STEP) & (operands.cause == 0) & (weights.cause != 0)):
                m.d.sync += [cause.eq(weights.cause), address.eq(operands.first_byte)]
        if Opcode.LOAD_TABLE in self.rules:
            m.d.comb += header.loaded.eq(loaded)
            with m.If(self.start & ~fault("a program finds the table of the one before")):
                m.d.sync += loaded.eq(0)
            with m.Elif(done & self.o.ready & (cause == 0) & (word.opcode == Opcode.LOAD_TABLE)):
                m.d.sync += loaded.eq(word.imm0)
        return m
