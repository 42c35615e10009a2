"""Any number format to FP32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import CANONICAL_NAN_FP32, FORMATS, INFINITY_FP32
from rtl.numeric.fp32.view import Fp32, normalise

__all__ = ["ToFp32"]

_SMALL = ("fp16", "e4m3fn", "e4m3", "e5m2", "e2m1")  # floats with fewer exponents than FP32
_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")


class ToFp32(wiring.Component):
    """`out` is the FP32 code of `x`, a code of format `src` (formats.Format.code) in the low bits; combinational.

    Bits above the code are ignored. Exact, but for 32-bit integers, which round to nearest even. NaNs become
    the canonical one; FP32 passes as it is. With `raw`, integers come out as 32 bits, extended by their sign
    if they have one, and the bits of all others unchanged.
    """

    x: In(32)
    src: In(4)
    raw: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x = self.x
        sign = Signal()
        magnitude = Signal(32)  # value = magnitude * 2^(scale - 31), for all that has to be normalised
        scale = Signal(9)  # exponent field of a number whose magnitude has its leading 1 at bit 31
        special = Signal()
        nan = Signal()
        direct = Signal(32)  # what passes by
        passes = Signal()
        with m.Switch(self.src):
            with m.Case(FORMATS["bf16"].code):
                m.d.comb += [passes.eq(1), direct.eq(Cat(Const(0, 16), x[:16]))]
            with m.Case(FORMATS["tf32"].code):
                m.d.comb += [passes.eq(1), direct.eq(Cat(Const(0, 13), x[13:]))]
            with m.Case(FORMATS["e8m0"].code):
                m.d.comb += [passes.eq(1), direct.eq(x[:8] << 23)]
                with m.If(x[:8] == 0):
                    m.d.comb += direct.eq(1 << 22)
                with m.Elif(x[:8] == 0xFF):
                    m.d.comb += direct.eq(CANONICAL_NAN_FP32)
            for name in _SMALL:
                fmt = FORMATS[name]
                field = x[fmt.mantissa : fmt.mantissa + fmt.exponent]
                fraction = x[: fmt.mantissa]
                top = field.all() if fmt.infinities else Const(0, 1)
                hidden = field.any()
                significand = Cat(fraction, hidden)
                with m.Case(fmt.code):
                    m.d.comb += [
                        sign.eq(x[fmt.mantissa + fmt.exponent]),
                        magnitude.eq(
                            Mux(
                                hidden | ~fault("subnormal numbers count as zero in a conversion"),
                                significand << (31 - fmt.mantissa),
                                0,
                            )
                        ),
                        scale.eq(Mux(hidden, field, 1) + (127 - fmt.bias)),
                        special.eq(top),
                        nan.eq(top & fraction.any()),
                    ]
                    if name == "e4m3fn":
                        m.d.comb += nan.eq(x[:7].all())
            for name in _INTEGERS:
                fmt = FORMATS[name]
                code = x[: fmt.bits]
                with m.Case(fmt.code):
                    negative = (
                        code[-1] & ~fault("signed integers are read as unsigned ones") if fmt.signed else Const(0, 1)
                    )
                    m.d.comb += [
                        sign.eq(negative),
                        magnitude.eq(Mux(negative, -code, code)[: fmt.bits]),
                        scale.eq(127 + 31),
                    ]
            with m.Default():
                m.d.comb += [passes.eq(1), direct.eq(x)]

        number = Signal(32)
        m.d.comb += number.eq(Cat(self._rounded(m, magnitude, scale), sign))
        direct_nan = (self.src != FORMATS["fp32"].code) & Fp32(direct).is_nan & ~fault("NaN payloads survive in FP32")
        with m.If(self.raw):
            m.d.comb += self.out.eq(self._extended(m))
        with m.Elif((passes & direct_nan) | nan):
            m.d.comb += self.out.eq(CANONICAL_NAN_FP32)
        with m.Elif(passes):
            m.d.comb += self.out.eq(direct)
        with m.Elif(special):
            m.d.comb += self.out.eq(INFINITY_FP32 | sign << 31)
        with m.Else():
            m.d.comb += self.out.eq(number)
        return m

    def _rounded(self, m: Module, magnitude: Value, scale: Value) -> Value:
        """The FP32 code without sign, rounded to nearest even. All values here are normal in FP32, or zero."""
        x, zeros = normalise(m, magnitude)
        up = x[7] & (x[:7].any() | x[8]) & ~fault("32-bit integers are cut instead of rounded")
        code = Signal(32)
        m.d.comb += code.eq(((scale - zeros - 1) << 23) + x[8:] + up)  # the hidden bit adds one
        return Mux(x[31], code[:31], 0)

    def _extended(self, m: Module) -> Value:
        out = Signal(32)
        m.d.comb += out.eq(self.x)
        with m.Switch(self.src):
            for fmt in FORMATS.values():
                if fmt.bits == 32:
                    continue
                extend = fmt.integer and fmt.signed
                code = self.x[: fmt.bits]
                with m.Case(fmt.code):
                    m.d.comb += out.eq(code.as_signed() if extend else code)
        return out
