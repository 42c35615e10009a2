"""One lane of the vector engine: conversion in, the choice of a result, conversion out."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.numeric.from_fp32 import FromFp32
from rtl.numeric.to_fp32 import ToFp32

__all__ = ["Lane"]


class Lane(wiring.Component):
    """`x` is the code of an element of format `src`; `value` is it as FP32 a cycle later.

    `out` shows in the next cycle, in format `dst`, `value` or, with `computed`, what `result` is. `raw` and `raw_out`:
    bits pass.
    """

    x: In(32)
    src: In(4)
    raw: In(1)
    value: Out(32)
    result: In(32)
    computed: In(1)
    dst: In(4)
    raw_out: In(1)
    out: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.enter = enter = ToFp32()
        m.submodules.leave = leave = FromFp32()
        value = Signal(32, reset_less=True)
        m.d.comb += [
            enter.x.eq(self.x),
            enter.src.eq(self.src),
            enter.raw.eq(self.raw),
            self.value.eq(value),
            leave.x.eq(Mux(self.computed, self.result, value)),
            leave.dst.eq(self.dst),
            leave.raw.eq(self.raw_out),
            leave.saturate.eq(0),
        ]
        m.d.sync += [value.eq(enter.out), self.out.eq(leave.out)]
        return m
