"""Fused multiply-add: the arithmetic of a processing element."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

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

    a: In(OPERAND)
    b: In(OPERAND)
    acc: In(32)
    enable: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.product = product = ExactProduct()
        m.submodules.accumulate = accumulate = Accumulate()
        m.d.comb += [
            product.a.eq(self.a),
            product.b.eq(self.b),
            accumulate.addend.eq(product.product),
            accumulate.acc.eq(self.acc),
            accumulate.enable.eq(self.enable),
            self.out.eq(accumulate.out),
        ]
        return m
