"""The scales of two blocks, together: an exponent, a factor and a sign for the dot product of their elements."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import FORMATS

__all__ = ["BlockScale"]

_E8M0 = FORMATS["e8m0"]
_E4M3FN = FORMATS["e4m3fn"]


class BlockScale(wiring.Component):
    """scale_a * scale_b = (-1)^sign * factor * 2^exponent, or `nan`. Combinational.

    E8M0 codes: factor 1, sign 0, NaN 0xff. With `nvfp4` and `e4m3` = 1 E4M3FN codes: factor up to 225, 0 if one is a
    zero; subnormals count; NaN 0x7f and 0xff. Source: OCP MX 1.0 section 5.4, OCP OFP8 1.0 section 5.
    """

    a: In(8)
    b: In(8)
    e4m3: In(1)
    exponent: Out(signed(10))
    factor: Out(8)
    sign: Out(1)
    nan: Out(1)

    def __init__(self, *, nvfp4: bool = False):
        self.nvfp4 = nvfp4
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [
            self.exponent.eq(self.a + self.b - 2 * _E8M0.bias),
            self.factor.eq(1),
            self.nan.eq((self.a.all() | self.b.all()) & ~fault("a scale of 0xff is a number")),
        ]
        if self.nvfp4:
            fields = []
            significands = []
            for name, code in (("a", self.a), ("b", self.b)):
                hidden = Signal(name=f"hidden_{name}")
                m.d.comb += hidden.eq(code[3:7].any())
                fraction = Mux(hidden | ~fault("a subnormal E4M3FN scale is a zero"), code[:3], 0)
                fields.append(Mux(hidden, code[3:7], 1))
                significands.append(Cat(fraction, hidden))
            with m.If(self.e4m3):
                m.d.comb += [
                    self.exponent.eq(fields[0] + fields[1] - 2 * (_E4M3FN.bias + _E4M3FN.mantissa)),
                    self.factor.eq(significands[0] * significands[1]),
                    self.sign.eq((self.a[7] ^ self.b[7]) & ~fault("the sign of an E4M3FN scale does not count")),
                    self.nan.eq((self.a[:7].all() | self.b[:7].all()) & ~fault("a NaN as an E4M3FN scale is a number")),
                ]
        return m
