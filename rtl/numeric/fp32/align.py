"""First half of every FP32 addition: align the smaller addend and add, with nothing lost."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.numeric.fp32.view import Fp32

__all__ = ["ADDEND", "EXCESS", "GUARD_BITS", "SUM", "AlignAdd"]

ADDEND = data.StructLayout(
    {
        "significand": 24,  # at least 2^22, or an FP32 subnormal with its exponent, or 0
        "exponent": 10,  # value = significand * 2^(exponent - EXCESS - 150)
        "sign": 1,
        "infinity": 1,
        "nan": 1,
    }
)
"""What is added to an FP32: an exact product or another FP32."""

EXCESS = 384
"""Makes the exponent of a product the sum of its operands' fields, and never negative."""

GUARD_BITS = 4

SUM = data.StructLayout(
    {
        "magnitude": 25 + GUARD_BITS,  # value = magnitude * 2^(exponent - 150 - GUARD_BITS)
        "exponent": 9,  # 1 to 382: never below that of the FP32 subnormals
        "sign": 1,
        "special": 1,  # infinity, or
        "nan": 1,
    }
)
"""A sum before normalisation; the last bit of `magnitude` is also set if anything below it was lost."""


class AlignAdd(wiring.Component):
    """`addend` + the FP32 code `acc`, to a SUM that rounds like the exact sum. Combinational.

    Four guard bits are enough. Shifts of up to 4 lose nothing. A longer shift leaves the smaller addend
    below 2^19 units of the larger one's last place; if that is normal or a product (at least 2^22), the
    sum keeps its leading 1 at 2^21 or above, so half a unit of its 24 bits is at 2^-3 or above and the
    sticky bit at 2^-4 lies below it. If it is an FP32 subnormal, nothing below 2^0 is kept anyway.
    """

    addend: In(ADDEND)
    acc: In(32)
    sum: Out(SUM)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = 24 + GUARD_BITS
        acc = Fp32(self.acc)
        normal = Signal()
        acc_exponent = Signal(10)
        acc_significand = Signal(24)
        m.d.comb += [
            normal.eq(acc.is_normal_or_special),
            acc_exponent.eq(acc.exponent + (EXCESS + ~normal)),
            acc_significand.eq(Cat(acc.fraction, normal)),
        ]

        # The addend with the smaller exponent is shifted right.
        below = Signal()
        distance = Signal(10)
        exponent = Signal(10)
        larger = Signal(width)
        smaller = Signal(width)
        guard = Const(0, GUARD_BITS)
        m.d.comb += below.eq(self.addend.exponent < acc_exponent)
        with m.If(below):
            m.d.comb += [
                distance.eq(acc_exponent - self.addend.exponent),
                exponent.eq(acc_exponent),
                larger.eq(Cat(guard, acc_significand)),
                smaller.eq(Cat(guard, self.addend.significand)),
            ]
        with m.Else():
            m.d.comb += [
                distance.eq(self.addend.exponent - acc_exponent),
                exponent.eq(self.addend.exponent),
                larger.eq(Cat(guard, self.addend.significand)),
                smaller.eq(Cat(guard, acc_significand)),
            ]
        shift = Signal(5)
        kept = Signal(width)
        lost = Signal()
        aligned = Signal(width)
        m.d.comb += [
            shift.eq(Mux(distance >= width, width, distance)),
            kept.eq(smaller >> shift),
            lost.eq((smaller != (kept << shift)[:width]) & ~fault("bits shifted out by alignment are forgotten")),
            aligned.eq(kept | lost),
        ]

        subtract = Signal()
        total = Signal(width + 2)
        negative = Signal()
        m.d.comb += [
            subtract.eq(self.addend.sign ^ acc.sign),
            total.eq(Mux(subtract, larger - aligned, larger + aligned)),
            negative.eq(total[-1]),  # only a difference sets it
            self.sum.magnitude.eq(Mux(negative, -total, total)),
            self.sum.exponent.eq(exponent - EXCESS),
        ]

        cancelled = Signal()
        special = Signal()
        m.d.comb += [
            cancelled.eq(subtract & ~total.any() & ~fault("a difference of zero has a sign")),
            special.eq(self.addend.infinity | self.addend.nan | acc.is_special),
            self.sum.special.eq(special),
        ]
        with m.If(special):
            clash = self.addend.infinity & acc.is_infinity & subtract
            m.d.comb += [
                self.sum.nan.eq(self.addend.nan | acc.is_nan | clash),
                self.sum.sign.eq(Mux(self.addend.infinity, self.addend.sign, acc.sign)),
            ]
        with m.Else():
            # A difference has the sign of the addend, unless the other one turned out larger.
            other = subtract & (below ^ negative)
            m.d.comb += self.sum.sign.eq((self.addend.sign ^ other) & ~cancelled)
        return m
