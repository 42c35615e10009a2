"""Dot product of four pairs of elements with the scales of both blocks, rounded once to FP32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import FORMATS
from rtl.numeric.fp32.align import ADDEND, EXCESS
from rtl.numeric.fp32.view import normalise
from rtl.numeric.pe.block_scale import BlockScale
from rtl.numeric.pe.element import ELEMENT, ELEMENT_INFINITY, ELEMENT_NAN, ELEMENTS

__all__ = ["Dot"]

LOW_BITS = 30  # of the low limb, which counts in units of 2^-32; the high limb counts in units of 2^-2
HIGH_BITS = 34  # of the high limb that fit into 64 bits beside the low one
TOP_FIELD = 31 + FORMATS["fp32"].bias  # exponent field of a sum whose first 1 is the last of those 64 bits


class Dot(wiring.Component):
    """product = RN32((a0 b0 + a1 b1 + a2 b2 + a3 b3) * scale_a * scale_b), as an ADDEND. Combinational.

    Scales are E8M0 codes, or with `nvfp4` and `scale_e4m3` = 1 E4M3FN codes. One rounding to nearest even of the exact
    value, gradual underflow, overflow to infinity; an exact zero is +0. NaN: a NaN among elements and scales,
    infinity times zero, infinities of both signs.
    The sum stands in two limbs, for 66 bits (74 with E4M3FN scales) are more than a word of the simulator: a product
    goes into one limb as a whole, bit 5 of its exponent says into which. Source: OCP MX 1.0 section 6.1.
    """

    a: In(data.ArrayLayout(ELEMENT, ELEMENTS))
    b: In(data.ArrayLayout(ELEMENT, ELEMENTS))
    scale_a: In(8)
    scale_b: In(8)
    scale_e4m3: In(1)
    product: Out(ADDEND)

    def __init__(self, *, nvfp4: bool = False):
        self.nvfp4 = nvfp4
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low, high, nan, minus, plus = self._sums(m)
        m.submodules.scale = scale = BlockScale(nvfp4=self.nvfp4)
        m.d.comb += [scale.a.eq(self.scale_a), scale.b.eq(self.scale_b), scale.e4m3.eq(self.scale_e4m3)]

        # Times the significands of the scales; still exact, and a limb stays below 64 bits.
        extra = 8 if self.nvfp4 else 0
        low_sum = Signal(signed(40 + extra))
        high_sum = Signal(signed(37 + extra))
        m.d.comb += [
            low_sum.eq(low * scale.factor if self.nvfp4 else low),
            high_sum.eq(high * scale.factor if self.nvfp4 else high),
        ]

        # Sign and magnitude: what the low limb has above its 30 bits goes into the high one.
        total = Signal(signed(37 + extra))
        below = Signal(LOW_BITS)
        negative = Signal()
        magnitude = Signal(36 + extra)
        rest = Signal(LOW_BITS)
        borrow = below.any() & ~fault("the low limb borrows nothing from the high one")
        m.d.comb += [
            total.eq(high_sum + (low_sum >> LOW_BITS)),
            below.eq(low_sum),
            negative.eq(total < 0),
            magnitude.eq(Mux(negative, ~total + ~borrow, total)),
            rest.eq(Mux(negative, -below, below)),
        ]

        # 64 bits of the magnitude: all of it, or all but bits that only matter as being there.
        spare = magnitude.shape().width - HIGH_BITS
        beyond = Signal()
        sticky = Signal()
        window = Signal(64)
        m.d.comb += [
            beyond.eq(magnitude[HIGH_BITS:].any()),
            sticky.eq(beyond & rest[:spare].any() & ~fault("bits beyond 64 are forgotten")),
            window.eq(Mux(beyond, Cat(rest[spare:], magnitude), Cat(rest, magnitude[:HIGH_BITS]))),
        ]
        x, zeros = normalise(m, window)

        field = Signal(signed(12))  # exponent field of the FP32 result; below 1 it is subnormal
        m.d.comb += field.eq(scale.exponent + TOP_FIELD + Mux(beyond, spare, 0) - zeros)
        self._round(m, x, sticky, field)

        # A sum of zero is +0, an infinite one has the sign of its infinities; a scale may turn both but zero.
        infinite = minus | plus
        clash = minus & plus & ~fault("infinities of both signs make an infinity")
        of_zero = (self.a[0].sign ^ self.b[0].sign) & fault("a sum of zero has the sign of the first product")
        with m.If(infinite):
            m.d.comb += [self.product.infinity.eq(1), self.product.sign.eq(minus ^ scale.sign)]
        with m.Else():
            m.d.comb += self.product.sign.eq(Mux(x[63], negative ^ scale.sign, of_zero))
        m.d.comb += self.product.nan.eq(nan | scale.nan | clash | (infinite & (scale.factor == 0)))
        return m

    def _sums(self, m: Module) -> tuple[Value, Value, Value, Value, Value]:
        """Sums of the limbs; whether there is a NaN, an infinite negative product, an infinite positive one."""
        low = Signal(signed(40))
        high = Signal(signed(37))
        lows: list[Value] = []
        highs: list[Value] = []
        nans: list[Value] = []
        infinities: list[list[Value]] = [[], []]
        for k in range(ELEMENTS):
            a, b = self.a[k], self.b[k]
            exponent = Signal(6, name=f"exponent{k}")
            shifted = Signal(39, name=f"shifted{k}")
            sign = Signal(name=f"sign{k}")
            special = Signal(2, name=f"special{k}")
            zero = Signal(name=f"zero{k}")
            omitted = fault("the fourth product is left out") if k == ELEMENTS - 1 else Const(0, 1)
            m.d.comb += [
                exponent.eq(a.exponent + b.exponent),
                shifted.eq(Mux(omitted, 0, a.significand * b.significand) << exponent[:5]),
                sign.eq(a.sign ^ b.sign),
                special.eq(Cat(a.exponent >= ELEMENT_INFINITY, b.exponent >= ELEMENT_INFINITY)),
                zero.eq(~(a.significand.any() & b.significand.any())),
            ]
            is_nan = (a.exponent == ELEMENT_NAN) | (b.exponent == ELEMENT_NAN)
            nans.append(is_nan | (special.any() & zero & ~fault("infinity times zero is infinity in a dot product")))
            for s, those in enumerate(infinities):
                those.append(special.any() & (sign if s else ~sign))
            # The low limb drops two bits, which are 0: see rtl/numeric/pe/element.py.
            for limb, terms, here in ((shifted[2:], lows, ~exponent[5]), (shifted[:34], highs, exponent[5])):
                part = Signal(len(limb), name=f"part{k}_{len(limb)}")
                m.d.comb += part.eq(Mux(here, limb, 0))
                terms.append(Mux(sign, -part, part))
        m.d.comb += [
            low.eq((lows[0] + lows[1]) + (lows[2] + lows[3])),
            high.eq((highs[0] + highs[1]) + (highs[2] + highs[3])),
        ]
        plus, minus = (Cat(*those).any() for those in infinities)
        return low, high, Cat(*nans).any(), minus, plus

    def _round(self, m: Module, x: Value, sticky: Value, field: Value) -> None:
        """The product's significand, exponent and overflow, of a window with its first 1 at bit 63."""
        significand = Signal(26)  # 24 bits, one of guard, one that says whether there is more
        far = Signal(5)
        kept = Signal(26)
        lost = Signal()
        result = Signal(25)
        base = Signal(signed(12))
        exact = fault("bits below the guard bit are forgotten")
        early = Cat(Const(0, 2), (x[40:] + (x[39] & (x[:39].any() | sticky | x[40])))[:24])
        plain = Cat((x[:39].any() | sticky) & ~exact, x[39:])
        subnormal = field < 1
        m.d.comb += [
            significand.eq(
                Mux(
                    fault("the sum is rounded before it becomes subnormal, and once more then") & subnormal,
                    early,
                    plain,
                )
            ),
            far.eq(Mux(field >= 1, 0, Mux(field < -25, 26, 1 - field))),
            kept.eq(significand >> far),
            lost.eq((significand != (kept << far)[:26]) & ~exact),
            base.eq(Mux(subnormal, 1, field)),
        ]
        tie = kept[2] | fault("a dot product rounds ties up, not to even")
        m.d.comb += result.eq(kept[2:] + (kept[1] & (kept[0] | lost | tie)))
        flushed = fault("a subnormal dot product becomes zero") & subnormal
        final = Signal(signed(12))
        m.d.comb += [
            final.eq(base + result[24]),
            self.product.significand.eq(Mux(flushed, 0, Mux(result[24], 1 << 23, result[:24]))),
            # A zero must not have an exponent above that of what it is added to.
            self.product.exponent.eq(Mux(x[63], final + EXCESS, 0)),
            self.product.infinity.eq(x[63] & (final >= 255)),
        ]
