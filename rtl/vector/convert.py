"""The ways into and out of one of the elements that a lane of the vector engine handles at once."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.numeric.formats.from_fp32 import FromFp32
from rtl.numeric.formats.to_fp32 import ToFp32

__all__ = ["Convert"]


class Convert(wiring.Component):
    """`word` is registered; in the next cycle the element at its byte `at`, of format `src`, becomes `value`, FP32.

    `out` shows in the cycle after, in format `dst`, `value` or, with `computed`, what `result` is. `raw` and `raw_out`:
    bits pass. Its clock stands still while nothing is converted, so all inputs but `word` come from registers on it.
    """

    word: In(64)
    at: In(3)
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
        word = Signal(64, reset_less=True)
        value = Signal(32, reset_less=True)
        m.d.comb += [
            enter.x.eq(word >> (self.at << 3)),
            enter.src.eq(self.src),
            enter.raw.eq(self.raw),
            self.value.eq(value),
            leave.x.eq(Mux(self.computed, self.result, value)),
            leave.dst.eq(self.dst),
            leave.raw.eq(self.raw_out),
            leave.saturate.eq(0),
        ]
        m.d.sync += [word.eq(self.word), value.eq(enter.out), self.out.eq(leave.out)]
        return m
