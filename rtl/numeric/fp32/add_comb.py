"""FP32 addition without a register."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.numeric.fp32.align import ADDEND, EXCESS, AlignAdd
from rtl.numeric.fp32.round import NormaliseRound
from rtl.numeric.fp32.view import Fp32

__all__ = ["Fp32AddComb"]


class Fp32AddComb(wiring.Component):
    """out = RN32(a + b), or RN32(a - b) with `subtract`; FP32 codes, gradual underflow, canonical NaN.

    Combinational: engines that run at half the array's clock do an addition a cycle.
    """

    a: In(32)
    b: In(32)
    subtract: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.align = align = AlignAdd()
        m.submodules.round = last = NormaliseRound()
        a, b = Fp32(self.a), Fp32(self.b)
        first = Signal(ADDEND)
        m.d.comb += [
            first.sign.eq(a.sign),
            first.exponent.eq(a.exponent + (EXCESS + ~a.is_normal_or_special)),
            first.significand.eq(a.significand),
            first.infinity.eq(a.is_infinity),
            first.nan.eq(a.is_nan),
            align.addend.eq(first),
            align.acc.eq(Cat(b.magnitude, b.sign ^ self.subtract)),
            last.sum.eq(align.sum),
            self.out.eq(last.out),
        ]
        return m
