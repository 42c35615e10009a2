"""A check whose clock runs only in cycles with `wake`, or when its word comes, says what one with a free clock says.

Words, when they come and when what is said of them is taken: free. Issue gates the clocks of its checks by this. The
rules are left out: what the header says depends on the word, what the operands say on it and on four steps before.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cover, EnableInserter, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import CAUSE_BITS
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.contract.config import Config, named
from rtl.contract.isa import Queue
from rtl.issue.check import Check
from verif.formal.free import StandIn
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "CheckClockProof"]


class SomeHeader(wiring.Component):
    """Stands in for HeaderCheck."""

    def __init__(self, cfg: Config, rules: object):
        super().__init__(
            {"word": In(INSTRUCTION_LAYOUT), "loaded": In(32), "cause": Out(CAUSE_BITS), "address": Out(64)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.cause.eq(self.word.imm0 & self.loaded), self.address.eq(self.word.imm1)]
        return m


class SomeOperands(wiring.Component):
    """Stands in for OperandsCheck: a sum over the steps, so that each counts."""

    def __init__(self, cfg: Config, rules: object):
        super().__init__(
            {
                "word": In(INSTRUCTION_LAYOUT),
                "step": In(3),
                "used": Out(1),
                "cause": Out(CAUSE_BITS),
                "address": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal(CAUSE_BITS)
        part = self.word.as_value().word_select(self.step, CAUSE_BITS)
        m.d.sync += total.eq(part + Mux(self.step == 0, 0, total))
        m.d.comb += [self.used.eq(self.word.opcode[0]), self.cause.eq(total), self.address.eq(total)]
        return m


class CheckClockProof(wiring.Component):
    """The two side by side."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        without_reset(m)
        always, gated = (Check(named("tiny"), Queue.SCALAR) for _ in range(2))
        word, valid = Signal(INSTRUCTION_LAYOUT), Signal()
        comes, start, taken = Signal(), Signal(), Signal()
        ready = AnySeq(1)
        parts = {"HeaderCheck": SomeHeader, "OperandsCheck": SomeOperands}
        m.submodules.always = StandIn(always, **parts)
        m.submodules.gated = EnableInserter(gated.wake | comes)(StandIn(gated, **parts).elaborate(platform))
        m.d.comb += [taken.eq(valid & always.i.ready), start.eq(AnySeq(1) & ~valid), comes.eq(AnySeq(1) & ~valid)]
        with m.If(comes):
            m.d.sync += [word.eq(AnySeq(len(word.as_value()))), valid.eq(1)]
        with m.Elif(taken):
            m.d.sync += valid.eq(0)
        for check in (always, gated):
            m.d.comb += [
                check.start.eq(start),
                check.i.payload.eq(word),
                check.i.valid.eq(valid),
                check.o.ready.eq(ready),
            ]
        said, same = always.o.payload, gated.o.payload
        m.d.comb += [
            Assert(always.o.valid == gated.o.valid),
            Assert(always.i.ready == gated.i.ready),
            Assert(~always.o.valid | ((said.cause == same.cause) & (said.address == same.address))),
            # for the induction
            Assert((always.step == gated.step) & (always.loaded == gated.loaded)),
            Assert(valid | (always.step == 0) & ~always.o.valid),
            Cover(taken & (said.cause == 0)),
            Cover(taken & (said.cause != 0)),
        ]
        return m


PROOFS = (
    Proof(
        name="issue_check_clock",
        make=CheckClockProof,
        depth=8,
        cover_depth=10,
        short=True,
        faults=("the clock of a check stops too early",),
    ),
)
