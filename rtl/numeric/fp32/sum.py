"""FP32 addition without a register."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.numeric.fp32.align import ADDEND, EXCESS, AlignAdd
from rtl.numeric.fp32.round import NormaliseRound

__all__ = ["Fp32Sum"]


class Fp32Sum(wiring.Component):
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
        field = self.a[23:31]
        first = Signal(ADDEND)
        m.d.comb += [
            first.sign.eq(self.a[31]),
            first.exponent.eq(field + (EXCESS + ~field.any())),
            first.significand.eq(Cat(self.a[:23], field.any())),
            first.infinity.eq(field.all() & ~self.a[:23].any()),
            first.nan.eq(field.all() & self.a[:23].any()),
            align.addend.eq(first),
            align.acc.eq(Cat(self.b[:31], self.b[31] ^ self.subtract)),
            last.sum.eq(align.sum),
            self.out.eq(last.out),
        ]
        return m
