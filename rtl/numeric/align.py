"""First half of every FP32 addition: align the smaller addend and add, with nothing lost."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, ValueLike, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted

__all__ = ["ADDEND", "GUARD_BITS", "SUM", "AlignAdd"]

ADDEND = data.StructLayout(
    {
        "significand": 24,  # at least 2^22, or an FP32 subnormal with exponent 1, or 0 with exponent 0
        "exponent": signed(10),  # of FP32: value = significand * 2^(exponent - 150)
        "sign": 1,
        "infinity": 1,
        "nan": 1,
    }
)
"""What is added to an FP32: an exact product or another FP32."""

GUARD_BITS = 4

SUM = data.StructLayout(
    {
        "magnitude": 25 + GUARD_BITS,  # value = magnitude * 2^(exponent - 150 - GUARD_BITS)
        "exponent": 9,  # 1 to 382: never below that of the FP32 subnormals
        "sign": 1,
        "infinity": 1,
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

    FAULTS = {
        1: "bits shifted out are forgotten",
        2: "a sum of zero keeps the sign of the first addend",
    }

    addend: In(ADDEND)
    acc: In(32)
    sum: Out(SUM)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        field = self.acc[23:31]
        normal = Signal()
        acc_exponent = Signal(8)
        acc_significand = Signal(24)
        acc_sign = Signal()
        m.d.comb += [
            normal.eq(field.any()),
            acc_exponent.eq(Mux(normal, field, 1)),
            acc_significand.eq(Cat(self.acc[:23], normal)),
            acc_sign.eq(self.acc[31]),
        ]

        # The addend with the smaller exponent is shifted right.
        difference = Signal(signed(11))
        below = Signal()
        distance = Signal(11)
        larger = Signal(24)
        smaller = Signal(24 + GUARD_BITS)
        m.d.comb += [
            difference.eq(self.addend.exponent - acc_exponent),
            below.eq(difference < 0),
            distance.eq(Mux(below, -difference, difference)),
            larger.eq(Mux(below, acc_significand, self.addend.significand)),
            smaller.eq(Cat(Const(0, GUARD_BITS), Mux(below, self.addend.significand, acc_significand))),
        ]
        shift = Signal(5)
        kept = Signal(24 + GUARD_BITS)
        lost = Signal()
        aligned = Signal(24 + GUARD_BITS)
        m.d.comb += [
            shift.eq(Mux(distance >= 24 + GUARD_BITS, 24 + GUARD_BITS, distance)),
            kept.eq(smaller >> shift),
            lost.eq((smaller != (kept << shift)[: 24 + GUARD_BITS]) & ~planted(self.plant, 1)),
            aligned.eq(kept | lost),
        ]

        subtract = Signal()
        total = Signal(26 + GUARD_BITS)
        negative = Signal()
        scaled = Cat(Const(0, GUARD_BITS), larger)
        m.d.comb += [
            subtract.eq(self.addend.sign ^ acc_sign),
            total.eq(Mux(subtract, scaled - aligned, scaled + aligned)),
            negative.eq(total[-1]),  # only a difference sets it
            self.sum.magnitude.eq(Mux(negative, -total, total)),
            self.sum.exponent.eq(Mux(below, acc_exponent, self.addend.exponent)),
        ]

        acc_top = field.all()
        acc_infinity = Signal()
        acc_nan = Signal()
        m.d.comb += [
            acc_infinity.eq(acc_top & ~self.acc[:23].any()),
            acc_nan.eq(acc_top & self.acc[:23].any()),
            self.sum.nan.eq(self.addend.nan | acc_nan | (self.addend.infinity & acc_infinity & subtract)),
            self.sum.infinity.eq(self.addend.infinity | acc_infinity),
        ]
        with m.If(self.addend.infinity):
            m.d.comb += self.sum.sign.eq(self.addend.sign)
        with m.Elif(acc_infinity):
            m.d.comb += self.sum.sign.eq(acc_sign)
        with m.Elif(~total.any()):
            both = self.addend.sign & acc_sign
            m.d.comb += self.sum.sign.eq(Mux(planted(self.plant, 2), self.addend.sign, both))
        with m.Else():
            m.d.comb += self.sum.sign.eq(Mux(below, acc_sign, self.addend.sign) ^ negative)
        return m
