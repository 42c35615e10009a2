"""The operators of the vector engine on FP32 numbers and on bits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.contract.isa import AluOp
from rtl.numeric.mul import Fp32Product
from rtl.numeric.sum import Fp32Sum

__all__ = ["Alu"]

ONE = 0x3F800000
INFINITY = 0x7F800000


class Alu(wiring.Component):
    """out = x op y, or y op x with `reverse`; op is of isa.AluOp, an unknown one passes x. Combinational.

    FP32 codes, but for operators from 32 on, which work on 32 bits. docs/numerics.md has the rules.
    """

    FAULTS = {
        1: "the larger of two negative numbers is the smaller",
        2: "a NaN does not reach max and min",
        3: "operands are never exchanged",
        4: "zeros of both signs are different",
        5: "subtraction adds",
    }

    x: In(32)
    y: In(32)
    op: In(6)
    reverse: In(1)
    out: Out(32)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.total = total = Fp32Sum()
        m.submodules.product = product = Fp32Product()
        exchange = self.reverse & ~planted(self.plant, 3)
        a = Signal(32)
        b = Signal(32)
        m.d.comb += [
            a.eq(Mux(exchange, self.y, self.x)),
            b.eq(Mux(exchange, self.x, self.y)),
            total.a.eq(a),
            total.b.eq(b),
            total.subtract.eq((self.op == AluOp.SUBTRACT) & ~planted(self.plant, 5)),
            product.a.eq(a),
            product.b.eq(Mux(self.op == AluOp.SQUARE, a, b)),
        ]
        sizes = (self.op == AluOp.ABSMAX) | (self.op == AluOp.ABSMIN)
        p = Signal(32)
        q = Signal(32)
        m.d.comb += [p.eq(a & Cat(Const(-1, 31), ~sizes)), q.eq(b & Cat(Const(-1, 31), ~sizes))]
        with m.If(self.op == AluOp.RELU):
            m.d.comb += q.eq(0)
        less, nan, same = self._compare(m, p, q)
        either = Signal(32)
        largest = (self.op == AluOp.MAX) | (self.op == AluOp.ABSMAX) | (self.op == AluOp.RELU)
        m.d.comb += either.eq(Mux(less == largest, q, p))
        with m.If(nan & ~planted(self.plant, 2)):
            m.d.comb += either.eq(CANONICAL_NAN_FP32)
        zeros = ~a[:31].any(), ~b[:31].any()
        truth: dict[AluOp, Value] = {
            AluOp.EQ: same & ~nan,
            AluOp.NE: ~same | nan,
            AluOp.GT: ~less & ~same & ~nan,
            AluOp.GE: (~less | same) & ~nan,
            AluOp.LT: less & ~same & ~nan,
            AluOp.LE: (less | same) & ~nan,
            AluOp.AND: ~zeros[0] & ~zeros[1],
            AluOp.OR: ~zeros[0] | ~zeros[1],
            AluOp.XOR: zeros[0] ^ zeros[1],
        }
        a_nan = a[:31] > INFINITY
        results: dict[AluOp, Value] = {
            AluOp.ADD: total.out,
            AluOp.SUBTRACT: total.out,
            AluOp.MULTIPLY: product.out,
            AluOp.SQUARE: product.out,
            AluOp.MAX: either,
            AluOp.MIN: either,
            AluOp.ABSMAX: either,
            AluOp.ABSMIN: either,
            AluOp.RELU: either,
            AluOp.ABS: Mux(a_nan, CANONICAL_NAN_FP32, a[:31]),
            AluOp.BIT_AND: a & b,
            AluOp.BIT_OR: a | b,
            AluOp.BIT_XOR: a ^ b,
            AluOp.BIT_NOT: ~a,
            AluOp.SHIFT_LEFT: (a << b[:5])[:32],
            AluOp.SHIFT_RIGHT: a >> b[:5],
            **{op: Mux(value, ONE, 0) for op, value in truth.items()},
        }
        m.d.comb += self.out.eq(a)
        with m.Switch(self.op):
            for op, value in results.items():
                with m.Case(op):
                    m.d.comb += self.out.eq(value)
        return m

    def _compare(self, m: Module, p: Value, q: Value) -> tuple[Value, Value, Value]:
        """p < q in the order with -0 below +0, whether one is NaN, p == q."""
        less = Signal()
        same = Signal()
        keys = []
        for value in (p, q):
            negative = value[31] & ~planted(self.plant, 1)
            keys.append(Cat(value[:31] ^ Mux(negative, 0x7FFFFFFF, 0), ~value[31]))
        zeros = ~(p[:31] | q[:31]).any() & ~planted(self.plant, 4)
        m.d.comb += [less.eq(keys[0] < keys[1]), same.eq((p == q) | zeros)]
        return less, (p[:31] > INFINITY) | (q[:31] > INFINITY), same
