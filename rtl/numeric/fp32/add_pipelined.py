"""FP32 addition with a register in the middle and one behind."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.numeric.fp32.align import ADDEND, EXCESS, SUM, AlignAdd
from rtl.numeric.fp32.round import NormaliseRound
from rtl.numeric.fp32.view import Fp32

__all__ = ["Fp32AddPipelined"]


class Fp32AddPipelined(wiring.Component):
    """out = RN32(a + b) of FP32 codes, gradual underflow, canonical NaN.

    Timing: one sum a cycle; operands of cycle t give the sum in cycle t + LATENCY. The cycle between
    holds the unnormalised sum. Data registers are not reset.
    """

    LATENCY = 2

    a: In(32)
    b: In(32)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.align = align = AlignAdd()
        m.submodules.round = last = NormaliseRound()

        first = Signal(ADDEND)
        a = Fp32(self.a)
        m.d.comb += [
            first.sign.eq(a.sign),
            first.exponent.eq(a.exponent + (EXCESS + ~a.is_normal_or_special)),
            first.significand.eq(
                Cat(a.fraction, a.is_normal_or_special | fault("a subnormal `a` is read with a hidden 1"))
            ),
            first.infinity.eq(a.is_infinity),
            first.nan.eq(a.is_nan),
            align.addend.eq(first),
            align.acc.eq(self.b),
        ]
        middle = Signal(SUM, reset_less=True)
        rounded = Signal(32, reset_less=True)
        m.d.comb += last.sum.eq(middle)
        m.d.sync += middle.eq(align.sum)
        m.d.sync += rounded.eq(last.out)
        m.d.comb += self.out.eq(rounded)
        return m
