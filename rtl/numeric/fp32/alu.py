"""The operators of the vector engine on two values: FP32 arithmetic, comparisons, logic, bits of integers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.contract.isa import AluOp
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.compare import Fp32Compare
from rtl.numeric.fp32.multiply_comb import Fp32MultiplyComb
from rtl.numeric.fp32.view import ONE, Fp32

__all__ = ["Alu"]


class Alu(wiring.Component):
    """out = x op y, or y op x with `reverse`; `op` is an isa.AluOp, x and y are FP32 codes.

    One rounding; the canonical NaN from all but BYPASS and the bit operators, which take 32 raw bits. Operators of
    one operand take the first: with `reverse` that is y. A code that is no operator passes the first operand.
    Timing: one result a cycle; inputs of a cycle with `enable` give `out` in the next (LATENCY = 1), which stays
    until the next `enable`. The register is not reset.
    """

    LATENCY = 1

    x: In(32)
    y: In(32)
    op: In(6)
    reverse: In(1)
    enable: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sum = sums = Fp32AddComb()
        m.submodules.product = product = Fp32MultiplyComb()
        m.submodules.compare = compare = Fp32Compare()

        a = Signal(32)  # first operand
        b = Signal(32)
        turned = self.reverse & ~fault("the ALU ignores `reverse`")
        m.d.comb += [a.eq(Mux(turned, self.y, self.x)), b.eq(Mux(turned, self.x, self.y))]
        relu = self.op == AluOp.RELU
        square = (self.op == AluOp.SQUARE) & ~fault("a square is a product in the ALU")
        m.d.comb += [
            sums.a.eq(a),
            sums.b.eq(b),
            sums.subtract.eq((self.op == AluOp.SUBTRACT) & ~fault("a difference is a sum in the ALU")),
            product.a.eq(a),
            product.b.eq(Mux(square, a, b)),
            compare.a.eq(a),
            compare.b.eq(Mux(relu, fault("relu of the ALU keeps -0") << 31, b)),
            compare.absolute.eq((self.op == AluOp.ABSMAX) | (self.op == AluOp.ABSMIN)),
            compare.smaller.eq((self.op == AluOp.MIN) | (self.op == AluOp.ABSMIN)),
        ]
        result = Signal(32)
        true = Signal()  # of comparisons and logic
        a_true = ~Fp32(a).is_zero | (fault("-0 counts as true in logic") & Fp32(a).sign)
        b_true = ~Fp32(b).is_zero
        less, equal, unordered = compare.less, compare.equal, compare.unordered
        nan_true = unordered & fault("GE and LE of the ALU are true for NaN")
        by = Signal(6)
        m.d.comb += [by.eq(Mux(fault("shifts are not by y mod 32"), b[:6], b[:5])), result.eq(a)]
        with m.Switch(self.op):
            with m.Case(AluOp.ADD, AluOp.SUBTRACT):
                m.d.comb += result.eq(sums.out)
            with m.Case(AluOp.MULTIPLY, AluOp.SQUARE):
                m.d.comb += result.eq(product.out)
            with m.Case(AluOp.MAX, AluOp.MIN, AluOp.ABSMAX, AluOp.ABSMIN, AluOp.RELU):
                m.d.comb += result.eq(compare.out)
            with m.Case(AluOp.EQ):
                m.d.comb += true.eq(equal)
            with m.Case(AluOp.NE):
                m.d.comb += true.eq(~equal & ~(fault("NE of the ALU is false for NaN") & unordered))
            with m.Case(AluOp.GT):
                m.d.comb += true.eq(~less & ~equal & ~unordered)
            with m.Case(AluOp.GE):
                m.d.comb += true.eq(~less & (~unordered | nan_true))
            with m.Case(AluOp.LT):
                m.d.comb += true.eq(less)
            with m.Case(AluOp.LE):
                m.d.comb += true.eq(less | equal | nan_true)
            with m.Case(AluOp.AND):
                m.d.comb += true.eq(a_true & b_true)
            with m.Case(AluOp.OR):
                m.d.comb += true.eq(a_true | b_true)
            with m.Case(AluOp.XOR):
                m.d.comb += true.eq(a_true ^ b_true)
            with m.Case(AluOp.ABS):
                nan = Fp32(a).is_nan & ~fault("abs of the ALU keeps a NaN's payload")
                m.d.comb += result.eq(Mux(nan, CANONICAL_NAN_FP32, Fp32(a).magnitude))
            with m.Case(AluOp.BIT_AND):
                m.d.comb += result.eq(a & b)
            with m.Case(AluOp.BIT_OR):
                m.d.comb += result.eq(a | b)
            with m.Case(AluOp.BIT_XOR):
                m.d.comb += result.eq(a ^ b)
            with m.Case(AluOp.BIT_NOT):
                m.d.comb += result.eq(~a)
            with m.Case(AluOp.SHIFT_LEFT):
                m.d.comb += result.eq(a << by)
            with m.Case(AluOp.SHIFT_RIGHT):
                m.d.comb += result.eq(Mux(fault("a shift to the right copies the sign"), a.as_signed() >> by, a >> by))
        held = Signal(32, reset_less=True)
        logic = (self.op >= AluOp.EQ) & (self.op <= AluOp.XOR)
        with m.If(self.enable | fault("the ALU ignores `enable`")):
            m.d.sync += held.eq(Mux(logic, Mux(true, ONE, 0), result))
        m.d.comb += self.out.eq(held)
        return m
