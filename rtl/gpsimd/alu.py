"""The ALU of a scalar core, and its comparison for branches."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.layouts import Operator

__all__ = ["ScalarAlu"]


class ScalarAlu(wiring.Component):
    """`result` of two operands; `taken`: whether the branch `funct3` of `left` and `right` is.

    Timing: combinational.
    """

    operator: In(Operator)
    first: In(32)
    second: In(32)
    left: In(32)
    right: In(32)
    funct3: In(3)
    result: Out(32)
    taken: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, amount = self.first, self.second, Signal(5)
        m.d.comb += amount.eq(b[:5])
        with m.Switch(self.operator):
            for operator, value in (
                (Operator.ADD, a + b),
                (Operator.SUB, a - b),
                (Operator.SLL, a << amount),
                (Operator.SLT, a.as_signed() < b.as_signed()),
                (Operator.SLTU, Mux(fault("sltu compares signed numbers"), a.as_signed() < b.as_signed(), a < b)),
                (Operator.XOR, a ^ b),
                (Operator.SRL, a >> amount),
                (Operator.SRA, Mux(fault("sra fills with zeros"), a >> amount, a.as_signed() >> amount)),
                (Operator.OR, a | b),
                (Operator.AND, a & b),
                (Operator.SECOND, b),
            ):
                with m.Case(operator):
                    m.d.comb += self.result.eq(value)
        equal, below = Signal(), Signal()
        unsigned = self.funct3[1] & ~fault("a branch compares signed numbers only")
        m.d.comb += [
            equal.eq(self.left == self.right),
            below.eq((self.left ^ (~unsigned << 31)) < (self.right ^ (~unsigned << 31))),
            self.taken.eq((equal & ~self.funct3[2] | below & self.funct3[2]) ^ self.funct3[0]),
        ]
        return m
