"""Fused multiply-add: the arithmetic of a processing element."""

from amaranth.hdl import Module, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import passed_on
from rtl.numeric.pe.accumulate import Accumulate
from rtl.numeric.pe.exact_product import ExactProduct
from rtl.numeric.pe.operand import OPERAND

__all__ = ["Mac"]


class Mac(wiring.Component):
    """out = RN32(a * b + acc) with one rounding; with `enable` = 0, out = acc unchanged.

    a, b: operands of up to 12 significant bits; acc, out: FP32 codes.
    Timing: one result a cycle; inputs of cycle t give `out` in cycle t + LATENCY. First cycle: the
    exact 24-bit product; second: align, add, normalise, round. Data registers are not reset.
    """

    LATENCY = Accumulate.LATENCY
    FAULTS = {
        1: "bits shifted out by alignment are forgotten",
        2: "a difference of zero has a sign",
        3: "ties are rounded up, not to even",
        4: "a subnormal result becomes zero",
        5: "infinity times zero is infinity",
        6: "an unused element adds its product",
    }

    a: In(OPERAND)
    b: In(OPERAND)
    acc: In(32)
    enable: In(1)
    out: Out(32)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.product = product = ExactProduct(passed_on(self.plant, 5))
        m.submodules.accumulate = accumulate = Accumulate(passed_on(self.plant, 1, 2, 3, 4, 6))
        m.d.comb += [
            product.a.eq(self.a),
            product.b.eq(self.b),
            accumulate.addend.eq(product.product),
            accumulate.acc.eq(self.acc),
            accumulate.enable.eq(self.enable),
            self.out.eq(accumulate.out),
        ]
        return m
