"""Codes of a 16-bit float format to the operand of a processing element."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.formats import FORMATS
from rtl.numeric.operand import EXPONENT_BIAS, EXPONENT_SPECIAL, INFINITY, NAN, OPERAND

__all__ = ["Unpack"]

FRACTION_BITS = 11
_BF16 = FORMATS["bf16"]
_FP16 = FORMATS["fp16"]


class Unpack(wiring.Component):
    """BF16 or FP16 code to operand, exact; the dtype code is an input, any but FP16's means BF16.

    Combinational. Subnormals come out normalised. A further format adds one row to the selection of
    fields in `elaborate`; the rest does not know formats.
    """

    FAULTS = {
        1: "a subnormal code is taken for zero",
        2: "the exponent of an FP16 subnormal is one too small",
    }

    bits: In(16)
    dtype: In(4)
    operand: Out(OPERAND)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        half = Signal()
        field = Signal(8)
        fraction = Signal(FRACTION_BITS)
        offset = Signal(9)
        special = Signal()
        m.d.comb += half.eq(self.dtype == _FP16.code)
        with m.If(half):
            m.d.comb += [
                field.eq(self.bits[10:15]),
                fraction.eq(Cat(Const(0, FRACTION_BITS - _FP16.mantissa), self.bits[0 : _FP16.mantissa])),
                offset.eq(EXPONENT_BIAS - _FP16.bias),
                special.eq(self.bits[10:15].all()),
            ]
        with m.Else():
            m.d.comb += [
                field.eq(self.bits[7:15]),
                fraction.eq(Cat(Const(0, FRACTION_BITS - _BF16.mantissa), self.bits[0 : _BF16.mantissa])),
                offset.eq(EXPONENT_BIAS - _BF16.bias),
                special.eq(self.bits[7:15].all()),
            ]

        # Subnormal: shift the first 1 into the hidden place, in steps of 8, 4, 2, 1.
        shifted = Signal(FRACTION_BITS + 1)
        zeros = Signal(4)
        x = Cat(fraction, Const(0, 1))
        steps = []
        for i, step in ((3, 8), (2, 4), (1, 2), (0, 1)):
            empty = Signal(name=f"empty{step}")
            after = Signal(FRACTION_BITS + 1, name=f"after{step}")
            m.d.comb += empty.eq(~x[FRACTION_BITS + 1 - step :].any())
            m.d.comb += after.eq(Mux(empty, x << step, x))
            steps.append((i, empty))
            x = after
        m.d.comb += shifted.eq(x)
        m.d.comb += [zeros[i].eq(empty) for i, empty in steps]

        with m.If(special):
            m.d.comb += self.operand.exponent.eq(EXPONENT_SPECIAL)
            m.d.comb += self.operand.significand.eq(Mux(fraction.any(), NAN, INFINITY))
        with m.Elif(field.any()):
            m.d.comb += self.operand.exponent.eq(field + offset)
            m.d.comb += self.operand.significand.eq(Cat(fraction, Const(1, 1)))
        with m.Elif(fraction.any() & ~planted(self.plant, 1)):
            wrong = planted(self.plant, 2) & half
            m.d.comb += self.operand.exponent.eq(offset + 1 - zeros - wrong)
            m.d.comb += self.operand.significand.eq(shifted)
        m.d.comb += self.operand.sign.eq(self.bits[15])
        return m
