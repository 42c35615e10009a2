"""FP32 addition with a register in the middle and one behind."""

from amaranth.hdl import Cat, Module, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import passed_on, planted
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
    FAULTS = {
        1: "bits shifted out by alignment are forgotten",
        2: "a difference of zero has a sign",
        3: "ties are rounded up, not to even",
        4: "a subnormal sum becomes zero",
        5: "a subnormal `a` is read with a hidden 1",
    }

    a: In(32)
    b: In(32)
    out: Out(32)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chosen = self.plant
        m.submodules.align = align = AlignAdd(passed_on(chosen, 1, 2))
        m.submodules.round = last = NormaliseRound(passed_on(chosen, 3, 4))

        first = Signal(ADDEND)
        a = Fp32(self.a)
        m.d.comb += [
            first.sign.eq(a.sign),
            first.exponent.eq(a.exponent + (EXCESS + ~a.is_normal_or_special)),
            first.significand.eq(Cat(a.fraction, a.is_normal_or_special | planted(chosen, 5))),
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
