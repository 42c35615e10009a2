"""Conversion between number formats chosen at run time, any to any, by way of FP32."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.numeric.formats.from_fp32 import FromFp32
from rtl.numeric.formats.to_fp32 import ToFp32

__all__ = ["Convert"]


class Convert(wiring.Component):
    """`out` is `x` of format `src` in format `dst` (formats.Format.code), LATENCY cycles later.

    A code stands in the low bits; those above are ignored, and 0 in the result. Equal formats: the bits pass
    unchanged, NaN payloads too. Else the rules of ToFp32 and FromFp32. A conversion a cycle.
    Source: rules of IEEE 754-2019 section 4.3.1.
    """

    LATENCY = 2

    x: In(32)
    src: In(4)
    dst: In(4)
    saturate: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = ToFp32()
        m.submodules.last = last = FromFp32()
        same = Signal()
        m.d.comb += [
            same.eq(self.src == self.dst),
            first.x.eq(self.x),
            first.src.eq(self.src),
            first.raw.eq(same),
        ]
        m.d.sync += [
            last.x.eq(first.out),
            last.dst.eq(self.dst),
            last.saturate.eq(self.saturate),
            last.raw.eq(same),
            self.out.eq(last.out),
        ]
        return m
