"""Codes of the 8-bit and 4-bit float formats to elements of a dot product."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import FORMATS
from rtl.numeric.pe.element import ELEMENT, ELEMENT_BIAS, ELEMENT_INFINITY, ELEMENT_NAN

__all__ = ["UnpackElement"]


class UnpackElement(wiring.Component):
    """E4M3FN, E4M3, E5M2 or E2M1 code to ELEMENT, exact; the dtype code is an input, any other means E4M3FN.

    Combinational. E2M1 stands in the low four bits; those above are ignored.
    Source: OCP OFP8 1.0 section 5, OCP MX 1.0 section 5.3; E4M3 is IEEE-like, with infinities.
    """

    bits: In(8)
    dtype: In(4)
    element: Out(ELEMENT)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x = self.bits
        fields = Signal(5)
        fraction = Signal(3)
        sign = Signal()
        lowest = Signal(5)  # exponent of the element when the field is 0 or 1
        special = Signal()
        nan = Signal()
        m.d.comb += sign.eq(x[7])
        with m.Switch(self.dtype):
            with m.Case(FORMATS["e5m2"].code):
                m.d.comb += [
                    fields.eq(x[2:7]),
                    fraction.eq(Cat(Const(0, 1), x[:2])),
                    lowest.eq(ELEMENT_BIAS + 1 - FORMATS["e5m2"].bias),
                    special.eq(x[2:7].all()),
                    nan.eq(x[:2].any()),
                ]
            with m.Case(FORMATS["e2m1"].code):
                above = fault("the bits above an E2M1 code count") & x[4:].any()
                m.d.comb += [
                    fields.eq(x[1:3]),
                    fraction.eq(Cat(Const(0, 2), x[0])),
                    lowest.eq(ELEMENT_BIAS + 1 - FORMATS["e2m1"].bias),
                    sign.eq(x[3] ^ above),
                ]
            with m.Default():
                ieee = (self.dtype == FORMATS["e4m3"].code) | fault("E4M3FN has the infinities and NaNs of E4M3")
                m.d.comb += [
                    fields.eq(x[3:7]),
                    fraction.eq(x[:3]),
                    lowest.eq(ELEMENT_BIAS + 1 - FORMATS["e4m3"].bias),
                    special.eq(Mux(ieee, x[3:7].all(), x[:7].all())),
                    nan.eq(x[:3].any()),
                ]
        hidden = Signal()
        exponent = Signal(5)
        m.d.comb += [
            hidden.eq(fields.any()),
            exponent.eq(lowest + fields - hidden),
            self.element.sign.eq(sign),
            self.element.significand.eq(Cat(fraction, hidden)),
            self.element.exponent.eq(exponent),
        ]
        with m.If(special):
            m.d.comb += [
                self.element.significand.eq(8),
                self.element.exponent.eq(
                    Mux(nan | fault("an infinity of E5M2 is a NaN"), ELEMENT_NAN, ELEMENT_INFINITY)
                ),
            ]
        with m.Elif(~hidden & fault("a subnormal code of an element is taken for zero")):
            m.d.comb += self.element.significand.eq(0)
        return m
