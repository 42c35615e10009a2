"""What an operation of a sequencer makes of two registers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.sequence import BRANCHES, OPERATION, SeqOp

__all__ = ["SequenceAlu"]


class SequenceAlu(wiring.Component):
    """Combinational. `result` is what register d takes, `jumps` whether a branch is taken; `known` is 0 for a code that
    is no operation; `within`: a is from 0 to b. SEMAPHORE gives `semaphore`, LOAD `loaded`."""

    def __init__(self):
        super().__init__(
            {
                "op": In(OPERATION.fields[0].width),
                "a": In(32),
                "b": In(32),
                "semaphore": In(32),
                "loaded": In(32),
                "result": Out(32),
                "jumps": Out(1),
                "branch": Out(1),
                "known": Out(1),
                "within": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, shift = self.a.as_signed(), self.b.as_signed(), self.b[:5]
        equal, less = Signal(), Signal()
        m.d.comb += [
            equal.eq(a == b),
            less.eq(Mux(fault("registers are compared as unsigned"), self.a < self.b, a < b)),
            self.known.eq(1),
            self.within.eq(~a[-1] & (less | equal)),
        ]
        results = {
            SeqOp.ADD: a + b,
            SeqOp.SUBTRACT: a - b,
            SeqOp.MULTIPLY: (a * b)[:32],
            SeqOp.SHIFT_LEFT: (a << shift)[:32],
            SeqOp.SHIFT_RIGHT: Mux(fault("zeros come in from the left"), self.a >> shift, a >> shift),
            SeqOp.AND: a & b,
            SeqOp.OR: a | b,
            SeqOp.MIN: Mux(less, a, b),
            SeqOp.MAX: Mux(less, b, a),
            SeqOp.EQUAL: equal,
            SeqOp.LESS: less,
            SeqOp.SEMAPHORE: self.semaphore,
            SeqOp.LOAD: self.loaded,
            SeqOp.BOUND: self.a,
        }
        taken = {
            SeqOp.BRANCH_EQUAL: equal,
            SeqOp.BRANCH_UNLIKE: ~equal,
            SeqOp.BRANCH_LESS: less,
            SeqOp.BRANCH_NOT_LESS: ~less,
        }
        with m.Switch(self.op):
            with m.Case(SeqOp.NONE):
                pass
            for op, value in results.items():
                with m.Case(op):
                    m.d.comb += self.result.eq(value)
            for op in BRANCHES:
                with m.Case(op):
                    m.d.comb += [self.branch.eq(1), self.jumps.eq(taken[op])]
            with m.Default():
                m.d.comb += self.known.eq(0)
        return m
