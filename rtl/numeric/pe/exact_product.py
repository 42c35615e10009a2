"""Exact product of two operands of a processing element, as an addend."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.numeric.fp32.align import ADDEND, EXCESS
from rtl.numeric.pe.operand import EXPONENT_BIAS, EXPONENT_SPECIAL, OPERAND

__all__ = ["ExactProduct"]


class ExactProduct(wiring.Component):
    """product = a * b, exact: 24 bits and their exponent. Infinity times zero is NaN. Combinational."""

    a: In(OPERAND)
    b: In(OPERAND)
    product: Out(ADDEND)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        assert EXCESS == 2 * EXPONENT_BIAS + 22 - 150  # else the product's exponent needs an adder
        m = Module()
        a_special = Signal()
        b_special = Signal()
        a_nan = Signal()
        b_nan = Signal()
        zero = Signal()
        m.d.comb += [
            a_special.eq(self.a.exponent == EXPONENT_SPECIAL),
            b_special.eq(self.b.exponent == EXPONENT_SPECIAL),
            a_nan.eq(a_special & self.a.significand[-2]),
            b_nan.eq(b_special & self.b.significand[-2]),
            zero.eq(~(self.a.significand[-1] & self.b.significand[-1])),
            self.product.significand.eq(self.a.significand * self.b.significand),
            # A significand counts in units of 2^-11, so that EXCESS is all that lies between the exponents.
            self.product.exponent.eq(Mux(zero, 0, self.a.exponent + self.b.exponent)),
            self.product.sign.eq(self.a.sign ^ self.b.sign),
            self.product.infinity.eq(a_special | b_special),
            self.product.nan.eq(
                a_nan | b_nan | ((a_special | b_special) & zero & ~fault("infinity times zero is infinity in a PE"))
            ),
        ]
        return m
