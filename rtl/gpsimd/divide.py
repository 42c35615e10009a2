"""Division of 32 bits, two bits of the quotient a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Divide"]

_STEPS = 16


class Divide(wiring.Component):
    """Quotient or (`remainder`) remainder of `first` by `second`, both signed or not, rounded towards 0.

    Timing: `start` in a cycle, operands and `remainder` kept; `done` with `result` from 17 cycles later on until `end`,
    which ends what runs too. By 0: all ones, and the first operand. Overflow: the first operand, and 0.
    """

    start: In(1)
    end: In(1)
    signed: In(1)
    remainder: In(1)
    first: In(32)
    second: In(32)
    busy: Out(1)
    done: Out(1)
    result: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        steps = Signal(range(_STEPS + 1))
        rest, quotient, divisor = Signal(32), Signal(32), Signal(32)

        def magnitude(value: Signal):
            return Mux(self.signed & value[31], -value, value)[:32]

        values = Signal(34), Signal(34)
        after, digits = rest, []
        for n, value in enumerate(values):
            m.d.comb += value.eq(Cat(quotient[31 - n], after))
            fits = Signal(name=f"fits_{n}")
            m.d.comb += fits.eq(value >= divisor)
            left = Signal(32, name=f"left_{n}")
            m.d.comb += left.eq(Mux(fits, value - divisor, value))
            after = left
            digits.append(fits)
        with m.If(self.end):
            m.d.sync += self.busy.eq(0)
        with m.Elif(self.start & ~self.busy):
            m.d.sync += [
                self.busy.eq(1),
                steps.eq(_STEPS),
                rest.eq(0),
                quotient.eq(magnitude(self.first)),
                divisor.eq(magnitude(self.second)),
            ]
        with m.Elif(self.busy & (steps != 0)):
            m.d.sync += [steps.eq(steps - 1), rest.eq(after), quotient.eq(Cat(digits[1], digits[0], quotient[:30]))]
        m.d.comb += self.done.eq(self.busy & (steps == 0))
        # by 0 every digit is 1
        any_divisor = (self.second != 0) | fault("a quotient by 0 has a sign")
        negative = self.signed & (self.first[31] ^ self.second[31]) & any_divisor
        sign = self.signed & self.first[31]
        with m.If(self.remainder):
            m.d.comb += self.result.eq(Mux(sign & ~fault("a remainder is never negative"), -rest, rest))
        with m.Else():
            m.d.comb += self.result.eq(Mux(negative, -quotient, quotient))
        return m
