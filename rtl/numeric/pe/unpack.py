"""Codes of float formats to the operand of a processing element."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import FORMATS
from rtl.numeric.fp32.view import Fp32, normalise
from rtl.numeric.pe.operand import EXPONENT_BIAS, EXPONENT_SPECIAL, INFINITY, NAN, OPERAND

__all__ = ["Unpack"]

FRACTION_BITS = 11
_EXACT = ("bf16", "fp16", "e4m3fn", "e4m3", "e5m2")
_TF32 = FORMATS["tf32"]
_DROPPED = FORMATS["fp32"].mantissa - _TF32.mantissa


class Unpack(wiring.Component):
    """A code of a float format to operand; the dtype code is an input, any that is not offered means BF16.

    BF16 and FP16 take the low 16 bits, E4M3FN, E4M3 and E5M2 the low 8, all exact. TF32 takes an FP32 and rounds it to
    nearest even first, as a conversion to the format does. Combinational. Subnormals come out normalised. A further
    format adds one row to the selection of fields in `elaborate`; the rest does not know formats.
    """

    bits: In(32)
    dtype: In(4)
    operand: Out(OPERAND)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        field = Signal(8)
        fraction = Signal(FRACTION_BITS)
        offset = Signal(9)
        special = Signal()
        sign = Signal()
        half = Signal()
        m.d.comb += half.eq(self.dtype == FORMATS["fp16"].code)

        def take(name: str) -> None:
            fmt = FORMATS[name]
            top = fmt.mantissa + fmt.exponent
            m.d.comb += [
                field.eq(self.bits[fmt.mantissa : top]),
                fraction.eq(Cat(Const(0, FRACTION_BITS - fmt.mantissa), self.bits[: fmt.mantissa])),
                offset.eq(EXPONENT_BIAS - fmt.bias),
                special.eq(self.bits[fmt.mantissa : top].all()),
                sign.eq(self.bits[top]),
            ]
            if name == "e4m3fn":
                m.d.comb += special.eq(
                    self.bits[:top].all() | (self.bits[3:top].all() & fault("E4M3FN has the infinities of E4M3"))
                )

        with m.Switch(self.dtype):
            for name in _EXACT[1:]:
                with m.Case(FORMATS[name].code):
                    take(name)
            with m.Case(_TF32.code):
                whole = Fp32(self.bits)
                endless = Signal()
                rounded = Signal(31)
                half_place = (1 << (_DROPPED - 1)) - 1 + self.bits[_DROPPED]
                m.d.comb += [
                    endless.eq(whole.is_special),
                    rounded.eq(whole.magnitude + Mux(endless | fault("TF32 is cut off, not rounded"), 0, half_place)),
                    field.eq(rounded[23:]),
                    # below a NaN's fraction: that there was something in the bits that go
                    fraction.eq(
                        Cat(
                            endless
                            & self.bits[:_DROPPED].any()
                            & ~fault("a NaN with nothing in the bits of TF32 is infinite"),
                            rounded[_DROPPED:23],
                        )
                    ),
                    offset.eq(EXPONENT_BIAS - _TF32.bias),
                    special.eq(rounded[23:].all()),
                    sign.eq(whole.sign),
                ]
            with m.Default():
                take("bf16")

        # Subnormal: shift the first 1 into the hidden place.
        shifted, zeros = normalise(m, Cat(fraction, Const(0, 1)))

        with m.If(special):
            m.d.comb += self.operand.exponent.eq(EXPONENT_SPECIAL)
            m.d.comb += self.operand.significand.eq(Mux(fraction.any(), NAN, INFINITY))
        with m.Elif(field.any()):
            m.d.comb += self.operand.exponent.eq(field + offset)
            m.d.comb += self.operand.significand.eq(Cat(fraction, Const(1, 1)))
        with m.Elif(fraction.any() & ~fault("a subnormal code of an operand is taken for zero")):
            wrong = fault("the exponent of an FP16 subnormal is one too small") & half
            m.d.comb += self.operand.exponent.eq(offset + 1 - zeros - wrong)
            m.d.comb += self.operand.significand.eq(shifted)
        m.d.comb += self.operand.sign.eq(sign)
        return m
