"""The arithmetic of a processing element in all its modes: fused multiply-add, or a dot product of four and an add."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.numeric.pe.accumulate import Accumulate
from rtl.numeric.pe.dot import Dot
from rtl.numeric.pe.exact_product import ExactProduct
from rtl.numeric.pe.pe_operand import pe_operand

__all__ = ["PeMac"]


class PeMac(wiring.Component):
    """out = RN32(a * b + acc); with `dot` RN32(RN32(sum of four scaled products) + acc); acc if not enabled.

    a, b: pe_operand(mx): operands, or elements with the scale of their block; acc, out: FP32 codes. `scale_e4m3`
    (read with `nvfp4`): the scales are E4M3FN, not E8M0. FP8 at double rate: elements 2 and 3 zero, scales 127.
    Timing: that of Mac, whatever the mode: one result a cycle, LATENCY cycles after its inputs; first cycle the
    product or the rounded dot product, second the addition. Without `mx` it is exactly Mac.
    """

    LATENCY = Accumulate.LATENCY

    def __init__(self, *, mx: bool = True, nvfp4: bool = True):
        self.mx = mx
        self.nvfp4 = nvfp4
        ports = {"a": In(pe_operand(mx)), "b": In(pe_operand(mx)), "acc": In(32), "enable": In(1), "out": Out(32)}
        if mx:
            ports |= {"dot": In(1), "scale_e4m3": In(1)}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.product = product = ExactProduct()
        m.submodules.accumulate = accumulate = Accumulate()
        m.d.comb += [
            product.a.eq(self.a.operand),
            product.b.eq(self.b.operand),
            accumulate.addend.eq(product.product),
            accumulate.acc.eq(self.acc),
            accumulate.enable.eq(self.enable),
            self.out.eq(accumulate.out),
        ]
        if self.mx:
            m.submodules.dots = dots = Dot(nvfp4=self.nvfp4)
            m.d.comb += [
                dots.a.eq(self.a.elements),
                dots.b.eq(self.b.elements),
                dots.scale_a.eq(self.a.scale),
                dots.scale_b.eq(self.b.scale),
                dots.scale_e4m3.eq(self.scale_e4m3 & ~fault("scales of a PE are always E8M0")),
            ]
            with m.If(self.dot & ~fault("a dot product adds the product of operands")):
                m.d.comb += accumulate.addend.eq(dots.product)
        return m
