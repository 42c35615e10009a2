"""FP32 sums rounded to BF16, to the nearest even or at random."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.isa import Rounding
from rtl.numeric.fp32.round_bits import BITS, of_lane
from rtl.numeric.fp32.view import Fp32

__all__ = ["Bf16Round"]


class Bf16Round(wiring.Component):
    """`out` = x as `mode` (isa.Rounding) says, an FP32 word whose lower half is 0 unless it is FP32. Combinational.

    Rounding adds to the magnitude and cuts: half a place, less one bit if the place is even; or the 16 random bits of
    partition `lane` and row `word` (`round_bits.py`), so that x goes up with the probability of what is cut.
    Subnormals alike; what passes the largest BF16 is infinite. x is no NaN but the canonical one.
    """

    def __init__(self, lane: int = 0):
        self.lane = lane
        super().__init__({"x": In(32), "mode": In(2), "word": In(BITS), "out": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        more = Signal(16)
        random = (self.mode == Rounding.STOCHASTIC) & ~fault("a random rounding to BF16 is to the nearest")
        nearest: Value = 0x7FFF + (self.x[16] | fault("rounding to BF16 takes ties up"))
        rounded = (Fp32(self.x).magnitude + more)[16:31]
        m.d.comb += self.out.eq(self.x)
        with m.If(self.mode != Rounding.FP32):
            m.d.comb += [
                more.eq(Mux(random, of_lane(m, self.word, self.lane), nearest)),
                self.out.eq(Cat(Const(0, 16), rounded, Fp32(self.x).sign)),
            ]
            with m.If(fault("the lower half stays in rounding to BF16")):
                m.d.comb += self.out[:16].eq(self.x[:16])
        return m
