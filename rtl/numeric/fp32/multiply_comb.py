"""FP32 multiplication without a register."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import CANONICAL_NAN_FP32, INFINITY_FP32
from rtl.numeric.fp32.view import Fp32, normalise

__all__ = ["Fp32MultiplyComb"]

_WIDTH = 48


class Fp32MultiplyComb(wiring.Component):
    """out = RN32(a * b); FP32 codes, gradual underflow, canonical NaN (0 times infinity too). Combinational."""

    a: In(32)
    b: In(32)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sign = Signal()
        product = Signal(_WIDTH)
        exponent = Signal(signed(11))  # field of a product whose leading 1 is at the top
        special = Signal()
        zero = Signal()
        nan = Signal()
        factors = []
        for x in (Fp32(self.a), Fp32(self.b)):
            kept = x.is_normal_or_special | ~fault("a subnormal factor counts as zero")
            factors.append(
                {
                    "field": x.scale,
                    "significand": Mux(kept, x.significand, 0),
                    "zero": x.is_zero,
                    "special": x.is_special,
                    "nan": x.is_nan,
                }
            )
        a, b = factors
        m.d.comb += [
            sign.eq(self.a[31] ^ self.b[31]),
            product.eq(a["significand"] * b["significand"]),
            special.eq(a["special"] | b["special"]),
            zero.eq(a["zero"] | b["zero"]),
            nan.eq(a["nan"] | b["nan"] | (special & zero & ~fault("zero times infinity is infinity in a product"))),
        ]
        x, zeros = normalise(m, product)
        small = Signal()
        shift = Signal(5)
        shifted = Signal(_WIDTH)
        lost = Signal()
        m.d.comb += [
            exponent.eq(a["field"] + b["field"] - 126 - zeros),
            small.eq(exponent < 1),
        ]
        with m.If(small):
            m.d.comb += shift.eq(Mux(exponent < -25, 26, 1 - exponent))
        m.d.comb += [
            shifted.eq(Mux(small & fault("a subnormal product becomes zero"), 0, x >> shift)),
            lost.eq((shifted << shift)[:_WIDTH] != x),
        ]
        below = _WIDTH - 24
        up = shifted[below - 1] & (
            shifted[: below - 1].any() | lost | shifted[below] | fault("a product rounds ties up, not to even")
        )
        code = Signal(33)
        base = Signal(9)  # the hidden bit adds one
        m.d.comb += [
            base.eq(Mux(small, 0, exponent - 1)),
            code.eq((base << 23) + shifted[below:] + up),
        ]
        with m.If(nan):
            m.d.comb += self.out.eq(CANONICAL_NAN_FP32)
        with m.Elif(special | ((code >= INFINITY_FP32) & x[-1])):
            m.d.comb += self.out.eq(Cat(Const(INFINITY_FP32, 31), sign))
        with m.Elif(x[-1]):
            m.d.comb += self.out.eq(Cat(code[:31], sign))
        with m.Else():
            m.d.comb += self.out.eq(sign << 31)
        return m
