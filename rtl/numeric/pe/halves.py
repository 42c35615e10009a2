"""An FP32 number as the sum of two operands of a processing element."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault, plants_faults
from rtl.numeric.fp32.view import Fp32, normalise
from rtl.numeric.pe.operand import EXPONENT_BIAS, EXPONENT_SPECIAL, INFINITY, NAN, OPERAND, SIGNIFICAND_BITS

__all__ = ["Halves"]


class Halves(wiring.Component):
    """`operand` = x rounded to 12 significant bits, nearest even, or with `low` x less that. Combinational, exact.

    x + 0 = high + low. What would round to 2^128 is infinite. `low` is +0 if the high half is not finite, or is x.
    Subnormals are normalised first: their 12 bits begin at their first 1. Source: semantics of FP32 matmuls in
    docs/numerics.md.
    """

    bits: In(32)
    low: In(1)
    operand: Out(OPERAND)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        half = SIGNIFICAND_BITS
        code = Fp32(self.bits)
        normal = code.is_normal_or_special
        x, zeros = normalise(m, code.significand, "whole")
        exponent = Signal(9)  # OPERAND's, of the first 1; of the high half before it may round up
        m.d.comb += exponent.eq(code.scale + (EXPONENT_BIAS - 127) - zeros)
        if plants_faults():
            fixed = fault("a subnormal keeps its place, not 12 bits from its first 1") & ~normal
            x = Mux(fixed, Cat(code.fraction, Const(0, 1)), x)

        up = Signal()
        rest = Signal(half)  # what the high half lacks, in units of x's last place
        rounded = Signal(half + 1)
        m.d.comb += [
            up.eq(
                (x[:half] > 1 << (half - 1))
                | ((x[:half] == 1 << (half - 1)) & (x[half] | fault("ties are rounded away, not to even")))
            ),
            rounded.eq(x[half:] + up),
            rest.eq(Mux(up, -x[:half], x[:half])),
        ]
        endless = Signal()
        carried = Signal()
        overflow = Signal()
        m.d.comb += [
            endless.eq(code.is_special),
            carried.eq(rounded[half]),
            overflow.eq(carried & (exponent == EXPONENT_BIAS + 127) & ~fault("what rounds to 2^128 is finite")),
        ]
        remainder, less = normalise(m, rest, "rest")
        with m.If(endless | overflow):
            with m.If(~self.low | fault("the rest beside an infinity is infinite")):
                nan = endless & code.fraction.any()
                m.d.comb += [
                    self.operand.exponent.eq(EXPONENT_SPECIAL),
                    self.operand.significand.eq(Mux(nan, NAN, INFINITY)),
                    self.operand.sign.eq(code.sign),
                ]
        with m.Elif(self.low):
            with m.If(rest.any()):
                m.d.comb += [
                    self.operand.significand.eq(remainder),
                    self.operand.exponent.eq(exponent - half - less),
                    self.operand.sign.eq(
                        code.sign ^ (up & ~fault("the rest of a number that was rounded up keeps its sign"))
                    ),
                ]
        with m.Else():
            m.d.comb += self.operand.sign.eq(code.sign)
            with m.If(rounded.any()):
                m.d.comb += [
                    self.operand.significand.eq(Mux(carried, 1 << (half - 1), rounded[:half])),
                    self.operand.exponent.eq(exponent + carried),
                ]
        return m
