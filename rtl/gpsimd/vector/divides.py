"""Division of one element of each word at a time."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.divide import Divide

__all__ = ["Divides"]


class Divides(wiring.Component):
    """Quotients or remainders of the elements `step` of all words of `first` and `second`, 1 << size bytes each.

    Timing: `start` until `done`, 17 cycles later, with `result` in all places of a word, of which `bytes` are meant;
    `go` ends it.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        super().__init__(
            {
                "start": In(1),
                "go": In(1),
                "signed": In(1),
                "remainder": In(1),
                "size": In(2),
                "step": In(2),
                "first": In(32 * lanes),
                "second": In(32 * lanes),
                "done": Out(1),
                "result": Out(32 * lanes),
                "bytes": Out(4 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, step = self.size, self.step
        halves = Cat((~step[0]).replicate(2), step[0].replicate(2))
        enable = Mux(size == 2, 0b1111, Mux(size == 1, halves, (1 << step)[:4]))

        def element(word: Value) -> Value:
            half, byte = word.word_select(step[0], 16), word.word_select(step, 8)
            wide_half = Cat(half, (half[-1] & self.signed).replicate(16))
            wide_byte = Cat(byte, (byte[-1] & self.signed).replicate(24))
            return Mux(size == 2, word, Mux(size == 1, wide_half, wide_byte))

        units = [Divide() for _ in range(self.lanes)]
        results: list[Value] = []
        for n, unit in enumerate(units):
            m.submodules[f"divide_{n}"] = unit
            m.d.comb += [
                unit.start.eq(self.start),
                unit.end.eq(self.start & self.done & self.go),
                unit.signed.eq(self.signed),
                unit.remainder.eq(self.remainder),
                unit.first.eq(element(self.first.word_select(n, 32))),
                unit.second.eq(element(self.second.word_select(n, 32))),
            ]
            value = unit.result
            whole = Mux(size == 1, value[:16].replicate(2), value[:8].replicate(4))
            results.append(Mux(size == 2, value, whole))
        m.d.comb += [
            self.done.eq(units[0].done),
            self.result.eq(Cat(*results)),
            self.bytes.eq(enable.replicate(self.lanes)),
        ]
        return m
