"""Second half of every FP32 addition: normalise, round to nearest even, pack."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import CANONICAL_NAN_FP32, INFINITY_FP32
from rtl.numeric.fp32.align import GUARD_BITS, SUM
from rtl.numeric.fp32.view import normalise

__all__ = ["NormaliseRound"]

WIDTH = 25 + GUARD_BITS
INFINITY_BITS = INFINITY_FP32 >> 23


class NormaliseRound(wiring.Component):
    """SUM to an FP32 code: one rounding to nearest even, gradual underflow, canonical NaN. Combinational."""

    sum: In(SUM)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x, zeros = normalise(m, self.sum.magnitude)

        # The exponent may not fall below that of the subnormals: shift by at most `exponent`.
        normal = Signal()
        shifted = Signal(WIDTH)
        exponent = Signal(9)
        m.d.comb += normal.eq(x[-1] & (zeros <= self.sum.exponent))
        with m.If(normal):
            m.d.comb += [shifted.eq(x), exponent.eq(self.sum.exponent - zeros)]
        with m.Elif(~fault("a subnormal sum becomes zero")):
            m.d.comb += shifted.eq(self.sum.magnitude << self.sum.exponent[:5])

        # The hidden 1 and a carry out of rounding both add 1 to the exponent by themselves. To nearest: add
        # half a last place; to even: one less of the bits below if the last place is 0.
        below = WIDTH - 24
        packed = Signal(9 + WIDTH - 1)
        rounded = Signal(9 + WIDTH - 1)
        infinite = Signal()
        even = (1 << (below - 1)) - 1
        m.d.comb += [
            packed.eq(Cat(Const(0, WIDTH - 1), exponent) + shifted),
            rounded.eq(packed + (even + (packed[below] | fault("a sum rounds ties up, not to even")))),
            infinite.eq(self.sum.special | (rounded[WIDTH - 1 :] >= INFINITY_BITS)),
        ]
        with m.If(infinite):
            with m.If(self.sum.nan):
                sign = fault("a NaN of a sum keeps its sign") & self.sum.sign
                m.d.comb += self.out.eq(CANONICAL_NAN_FP32 | sign << 31)
            with m.Else():
                m.d.comb += self.out.eq(Cat(Const(INFINITY_BITS << 23, 31), self.sum.sign))
        with m.Else():
            m.d.comb += self.out.eq(Cat(rounded[below : below + 31], self.sum.sign))
        return m
