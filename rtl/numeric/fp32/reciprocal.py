"""Reciprocal of an FP32 number, correctly rounded, by long division."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import CANONICAL_NAN_FP32, INFINITY_FP32
from rtl.numeric.fp32.view import Fp32, normalise

__all__ = ["Reciprocal"]

_BITS_A_CYCLE = 4
_CYCLES = 7
_QUOTIENT = _BITS_A_CYCLE * _CYCLES  # bits: 24, a half, and what a subnormal result shifts out
_SPARE = _QUOTIENT - 25  # bits below the last place of a normal result that is no power of two


class Reciprocal(wiring.Component):
    """out = RN32(1 / x): subnormals in and out, 1/+-0 = +-infinity, 1/+-infinity = +-0, canonical NaN.

    Timing: `start` takes x; LATENCY cycles later `done` is 1 and `out` is the result, which stays until after the
    next `start`. From the cycle of `done` on the next may start; `busy` is 1 in the cycles between.
    A quotient is never half way between two numbers: 1/x of a power of two is exact, of others it has no end. So the
    bit below the last place decides the rounding alone.
    """

    LATENCY = _CYCLES + 1

    x: In(32)
    start: In(1)
    busy: Out(1)
    done: Out(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x = Fp32(self.x)
        nothing = x.is_zero | (fault("a subnormal x has the reciprocal of zero") & ~x.is_normal_or_special)
        significand, zeros = normalise(m, x.significand)

        # x = divisor * 2^(e - 150), its leading 1 at bit 23; a quotient of leading 1 at bit 26 has the field 253 - e.
        divisor = Signal(24, reset_less=True)
        rest = Signal(24, reset_less=True)
        quotient = Signal(_QUOTIENT, reset_less=True)
        exponent = Signal(signed(10), reset_less=True)
        sign = Signal(reset_less=True)
        special = Signal(reset_less=True)
        limit = Signal(32, reset_less=True)  # the result if it is special
        left = Signal(range(_CYCLES + 1))
        done = Signal()
        m.d.comb += [self.busy.eq(left != 0), self.done.eq(done), self.out.eq(limit)]
        m.d.sync += done.eq(left == 1)
        with m.If(self.start & (~self.busy | fault("a reciprocal is started while one is busy"))):
            m.d.sync += [
                divisor.eq(significand),
                rest.eq(1 << 22),
                exponent.eq(253 - x.scale + zeros),
                sign.eq(x.sign),
                special.eq(x.is_special | nothing),
                limit.eq(Mux(nothing, INFINITY_FP32, 0) | x.sign << 31),
                left.eq(_CYCLES),
            ]
            with m.If(x.is_nan):
                m.d.sync += limit.eq(CANONICAL_NAN_FP32)
            with m.If(nothing & fault("the reciprocal of -0 is +infinity")):
                m.d.sync += limit.eq(INFINITY_FP32)
        with m.Elif(self.busy):
            digits, remainder = self._digits(m, rest, divisor)
            m.d.sync += [
                rest.eq(remainder),
                quotient.eq(Cat(digits, quotient[: _QUOTIENT - _BITS_A_CYCLE])),
                left.eq(left - 1),
            ]

        # The hidden bit adds one to the exponent field, that of a power of two two, a carry of rounding one more.
        small = Signal()
        shift = Signal(2)
        kept = Signal(26)  # the last bit is the half
        code = Signal(33)
        m.d.comb += small.eq(exponent < 1)
        with m.If(small):
            m.d.comb += shift.eq((1 - exponent)[:2])
        power = (quotient[-1] & fault("the reciprocal of a power of two is the number below")) << _SPARE
        m.d.comb += [
            kept.eq(
                Mux(small & fault("subnormal reciprocals become zero"), 0, (quotient - power) >> (_SPARE - 1)) >> shift
            ),
            code.eq(
                (Mux(small, 0, exponent - 1) << 23) + kept[1:] + (kept[0] & ~fault("results of a reciprocal are cut"))
            ),
        ]
        with m.If(~special):
            m.d.comb += self.out.eq(Cat(Mux(code >= INFINITY_FP32, Const(INFINITY_FP32, 31), code[:31]), sign))
        return m

    def _digits(self, m: Module, rest: Value, divisor: Value) -> tuple[Value, Value]:
        """The next digits of the quotient, last one first, and what is left."""
        digits: list[Value] = []
        for n in range(_BITS_A_CYCLE):
            double = Signal(25, name=f"double{n}")
            less = Signal(26, name=f"less{n}")
            after = Signal(24, name=f"after{n}")
            digit = Signal(name=f"digit{n}")
            m.d.comb += [
                double.eq(rest << 1),
                less.eq(double - divisor),
                digit.eq(
                    ~less[-1]
                    & ~(
                        fault("the first digit of each cycle of a reciprocal is taken for 0") if n == 0 else Const(0, 1)
                    )
                ),
                after.eq(Mux(digit, less[:24], double[:24])),
            ]
            digits.insert(0, digit)
            rest = after
        return Cat(*digits), rest
