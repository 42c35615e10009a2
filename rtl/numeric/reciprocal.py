"""1 / x, four bits of the quotient a cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.formats import CANONICAL_NAN_FP32

__all__ = ["Reciprocal"]

INFINITY = 0x7F800000
_DIGIT = 4  # bits a cycle
_STEPS = 7
_BITS = _DIGIT * _STEPS


class Reciprocal(wiring.Component):
    """out = RN32(1 / x) of an FP32 code, gradual underflow; 1/+-0 is +-infinity, 1/+-infinity +-0, NaN canonical.

    Timing: `x` in the cycle with `start`; LATENCY cycles later `out` is right and stays until the next start,
    which may come then. The remainder and 28 bits of the quotient of 2^23 / significand grow by four bits a cycle.
    """

    LATENCY = _STEPS + 1
    FAULTS = {
        1: "the remainder is not looked at when rounding",
        2: "a subnormal number counts as zero",
        3: "a subnormal result becomes zero",
    }

    x: In(32)
    start: In(1)
    out: Out(32)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        field = self.x[23:31]
        raw = Signal(24)
        zeros = Signal(5)
        m.d.comb += raw.eq(Cat(self.x[:23], field.any()))
        with m.Switch(raw):
            for n in range(24):
                with m.Case("0" * n + "1" + "-" * (23 - n)):
                    m.d.comb += zeros.eq(n)
        divisor = Signal(24, reset_less=True)
        remainder = Signal(25, reset_less=True)
        quotient = Signal(_BITS, reset_less=True)
        exponent = Signal(signed(10), reset_less=True)  # of the result, if the quotient starts with a 1
        sign = Signal(reset_less=True)
        special = Signal(2, reset_less=True)  # 1 zero, 2 infinity, 3 NaN: what the result is
        left = Signal(range(_STEPS + 1))
        with m.If(self.start):
            empty = ~raw.any() | (~field.any() & planted(self.plant, 2))
            m.d.sync += [
                divisor.eq((raw << zeros)[:24]),
                remainder.eq(1 << 23),
                quotient.eq(0),
                exponent.eq(254 - Mux(field.any(), field, 1) + zeros),
                sign.eq(self.x[31]),
                special.eq(Mux(field.all(), Mux(self.x[:23].any(), 3, 1), Mux(empty, 2, 0))),
                left.eq(_STEPS),
            ]
        with m.Elif(left != 0):
            rest: Value = remainder
            digits: list[Value] = []
            for n in range(_DIGIT):
                enough = Signal(name=f"enough{n}")
                after = Signal(25, name=f"after{n}")
                m.d.comb += enough.eq(rest >= divisor)
                m.d.comb += after.eq(Mux(enough, rest - divisor, rest) << 1)
                digits.append(enough)
                rest = after
            m.d.sync += [
                remainder.eq(rest),
                quotient.eq(Cat(*reversed(digits), quotient[: _BITS - _DIGIT])),
                left.eq(left - 1),
            ]
        m.d.comb += self.out.eq(self._round(m, quotient, remainder, exponent, sign, special))
        return m

    def _round(
        self, m: Module, quotient: Value, remainder: Value, exponent: Value, sign: Value, special: Value
    ) -> Value:
        """The quotient lies in (1/2, 1]: its first bit is set only for powers of two."""
        top = quotient[-1]
        normal = Signal(_BITS)
        field = Signal(signed(10))
        small = Signal()
        shift = Signal(5)
        shifted = Signal(_BITS)
        lost = Signal()
        code = Signal(33)
        m.d.comb += [
            normal.eq(Mux(top, quotient, quotient << 1)),
            field.eq(exponent - ~top),
            small.eq(field < 1),
        ]
        with m.If(small):
            m.d.comb += shift.eq(Mux(field < -25, 26, 1 - field))
        m.d.comb += [
            shifted.eq(Mux(small & planted(self.plant, 3), 0, normal >> shift)),
            lost.eq((shifted << shift)[:_BITS] != normal),
        ]
        below = _BITS - 24
        sticky = (remainder.any() & ~planted(self.plant, 1)) | lost | shifted[: below - 1].any()
        up = shifted[below - 1] & (sticky | shifted[below])
        m.d.comb += code.eq((Mux(small, 0, field - 1) << 23) + shifted[below:] + up)
        result = Signal(32)
        with m.Switch(special):
            with m.Case(0):
                m.d.comb += result.eq(Cat(Mux(code >= INFINITY, INFINITY, code)[:31], sign))
            with m.Case(1):
                m.d.comb += result.eq(Cat(Const(0, 31), sign))
            with m.Case(2):
                m.d.comb += result.eq(Cat(Const(INFINITY, 31), sign))
            with m.Case(3):
                m.d.comb += result.eq(CANONICAL_NAN_FP32)
        return result
