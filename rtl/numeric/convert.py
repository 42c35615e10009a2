"""Conversion between floating-point formats chosen at run time: fp32, bf16, fp16, any to any."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.formats import CANONICAL_NAN_FP32, FORMATS

__all__ = ["Convert"]

FP32 = FORMATS["fp32"].code
BF16 = FORMATS["bf16"].code
FP16 = FORMATS["fp16"].code
INFINITY = 0x7F800000  # FP32; in every format the code below infinity is the largest finite number


class Convert(wiring.Component):
    """`out` is `x` of format `src` in format `dst` (formats.Format.code), LATENCY cycles later.

    A 16-bit code stands in the low bits; those above are ignored, and 0 in the result. Equal formats:
    the bits pass unchanged, NaN payloads too. Else by way of FP32, which is exact, with one rounding to
    nearest even; overflow gives infinity, subnormals are kept, NaN becomes the canonical NaN of `dst`.
    With `saturate` the largest finite number stands for infinity, whether it came in or overflowed.
    A conversion a cycle. Source: rules of IEEE 754-2019 section 4.3.1.
    """

    LATENCY = 2

    FAULTS = {
        1: "ties go up instead of to even",
        2: "subnormal FP16 sources count as zero",
        3: "FP16 results below the normal range lose their lowest bit",
        4: "NaN payloads survive a conversion",
        5: "FP16 results saturate although nobody asked for it",
        6: "infinities that come in do not saturate",
    }

    x: In(32)
    src: In(4)
    dst: In(4)
    saturate: In(1)
    out: Out(32)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        half = self.x[:16]
        single = Signal(32)
        m.d.comb += single.eq(self.x)
        with m.Switch(self.src):
            with m.Case(BF16):
                m.d.comb += single.eq(Cat(Const(0, 16), half))
            with m.Case(FP16):
                m.d.comb += single.eq(self._from_fp16(m, half))

        raw = Signal()
        value = Signal(32)
        target = Signal(4)
        saturate = Signal()
        same = Signal()
        m.d.comb += same.eq(self.src == self.dst)
        m.d.sync += [
            raw.eq(same),
            value.eq(Mux(same, Mux(self.src == FP32, self.x, half), single)),
            target.eq(self.dst),
            saturate.eq(self.saturate),
        ]

        nan = Signal()
        result = Signal(32)
        is_nan = (value[23:31] == 0xFF) & (value[:23] != 0)
        m.d.comb += [nan.eq(is_nan & ~planted(self.plant, 4)), result.eq(value)]
        held = saturate & ~(planted(self.plant, 6) & (value[:31] == INFINITY))
        with m.If(~raw):
            with m.Switch(target):
                with m.Case(FP32):
                    with m.If(nan):
                        m.d.comb += result.eq(CANONICAL_NAN_FP32)
                    with m.Elif(held & (value[:31] == INFINITY)):
                        m.d.comb += result[:31].eq(INFINITY - 1)
                with m.Case(BF16):
                    m.d.comb += result.eq(Mux(nan, 0x7FC0, self._to_bf16(m, value, held)))
                with m.Case(FP16):
                    m.d.comb += result.eq(Mux(nan, 0x7E00, self._to_fp16(m, value, held | planted(self.plant, 5))))
        m.d.sync += self.out.eq(result)
        return m

    def _from_fp16(self, m: Module, half: Value) -> Value:
        """Exact: FP32 has every FP16 value as a normal number."""
        exponent = Signal(8)
        fraction = Signal(10)
        m.d.comb += [exponent.eq(half[10:15] + (127 - 15)), fraction.eq(half[:10])]
        with m.If(half[10:15] == 31):
            m.d.comb += exponent.eq(255)
        with m.Elif((half[10:15] == 0) & ((half[:10] == 0) | planted(self.plant, 2))):
            m.d.comb += [exponent.eq(0), fraction.eq(0)]
        with m.Elif(half[10:15] == 0):
            for leading in range(10):  # the last assignment, of the highest set bit, holds
                with m.If(half[leading]):
                    m.d.comb += [
                        exponent.eq(leading + 127 - 24),
                        fraction.eq(half[:10] << (10 - leading)),  # its leading bit falls off
                    ]
        return Cat(Const(0, 13), fraction, exponent, half[15])

    def _to_bf16(self, m: Module, value: Value, saturate: Value) -> Value:
        """A carry out of the fraction enters the exponent, and out of the largest one gives infinity."""
        odd = value[16] | planted(self.plant, 1)
        code = Signal(16)
        m.d.comb += code.eq((value + 0x7FFF + odd)[16:32])
        return (code - (saturate & (code[:15] == INFINITY >> 16)))[:16]

    def _to_fp16(self, m: Module, value: Value, saturate: Value) -> Value:
        exponent = value[23:31]
        small = Signal()  # below 2^-14: the result is subnormal, or rounds up to the smallest normal
        shift = Signal(5)
        m.d.comb += small.eq(exponent < 127 - 14)
        with m.If(small):
            # from 25 places on nothing is left to round up; FP32 subnormals end there too
            m.d.comb += shift.eq(Mux(exponent < 127 - 14 - 25, 25, (127 - 14) - exponent))
        significand = Cat(value[:23], Const(1, 1))
        # 25 more places below keep every bit that is shifted out
        wide = Signal(24 + 25)
        m.d.comb += wide.eq(Cat(Const(0, 25), significand) >> shift)
        kept = wide[38:49]
        guard = wide[37]
        sticky = wide[:37].any()
        up = guard & (sticky | kept[0] | planted(self.plant, 1))
        base = Mux(small, 0, exponent - (127 - 14))  # exponent field less one: the hidden bit adds it
        code = Signal(20)
        m.d.comb += code.eq((base[:8] << 10) + kept + up)
        with m.If(small & planted(self.plant, 3)):
            m.d.comb += code[0].eq(0)
        # infinities too: their exponent is too large; the code below is the largest finite number
        magnitude = Mux(code >= 0x7C00, 0x7C00 - saturate, code[:15])
        return Cat(magnitude[:15], value[31])
