"""Multiplication of 32 bits by 32."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Multiply"]


class Multiply(wiring.Component):
    """`result`: the low half of the product for mul, the high half for mulh, mulhsu and mulhu, by `funct3`.

    Timing: `result` in the cycle after `en`, kept until the next.
    """

    en: In(1)
    funct3: In(3)
    first: In(32)
    second: In(32)
    result: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, high = Signal(33), Signal(33), Signal()
        kind = self.funct3[:2]
        unsigned = fault("mulhsu takes its second operand as signed") & (kind == 2)
        with m.If(self.en):
            m.d.sync += [
                a.eq(Cat(self.first, self.first[31] & (kind != 3))),
                b.eq(Cat(self.second, self.second[31] & (~kind[1] | unsigned))),
                high.eq(kind != 0),
            ]
        product = Signal(66)
        m.d.comb += [
            product.eq(a.as_signed() * b.as_signed()),
            self.result.eq(Mux(high, product[32:64], product[:32])),
        ]
        return m
