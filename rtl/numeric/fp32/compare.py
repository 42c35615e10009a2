"""Comparison, maximum and minimum of two FP32 numbers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.numeric.fp32.view import Fp32

__all__ = ["Fp32Compare"]


def _key(x: Fp32) -> Value:
    """A signed integer in the order of the numbers, -0 just below +0."""
    return Cat(x.magnitude ^ x.sign.replicate(31), x.sign).as_signed()


class Fp32Compare(wiring.Component):
    """out = the larger of a and b, or the smaller with `smaller`; of their magnitudes with `absolute`. Combinational.

    The canonical NaN if either is NaN; -0 is below +0. `less` and `equal` compare like IEEE 754 (zeros are equal)
    and are both 0 if `unordered`, which says that either is NaN.
    """

    a: In(32)
    b: In(32)
    absolute: In(1)
    smaller: In(1)
    out: Out(32)
    less: Out(1)
    equal: Out(1)
    unordered: Out(1)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a = Signal(32)
        b = Signal(32)
        below = Signal()
        zeros = Signal()
        keep = ~self.absolute
        by_size = fault("negative numbers are compared by their magnitudes") & a[31] & b[31]
        m.d.comb += [
            a.eq(Cat(self.a[:31], self.a[31] & keep)),
            b.eq(Cat(self.b[:31], self.b[31] & keep)),
            below.eq((_key(Fp32(a)) < _key(Fp32(b))) ^ by_size),
            zeros.eq(Fp32(a | b).is_zero),
            self.unordered.eq(Fp32(a).is_nan | Fp32(b).is_nan),
            self.less.eq(below & ~(zeros & ~fault("zeros of different signs differ")) & ~self.unordered),
            self.equal.eq(((a == b) | (zeros & ~fault("zeros of different signs differ"))) & ~self.unordered),
        ]
        first = fault("the larger of two zeros is the first") & zeros
        nan = self.unordered & ~fault("a NaN loses against a number")
        chosen = Mux((below ^ self.smaller) & ~first, b, a)
        m.d.comb += self.out.eq(Mux(nan, Const(CANONICAL_NAN_FP32, 32), chosen))
        return m
