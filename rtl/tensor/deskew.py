"""South edge of the array: eight columns that leave one after the other, made to leave together."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.tensor.tile import TILE

__all__ = ["Deskew"]


class Deskew(wiring.Component):
    """FP32 columns of one tile, column k at bits 32k. Timing: column k is delayed by 7 - k cycles."""

    skewed: In(32 * TILE)
    aligned: Out(32 * TILE)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        columns: list[Value] = []
        for k in range(TILE):
            column: Value = self.skewed.word_select(k, 32)
            for stage in range(TILE - 1 - k):
                late = Signal(32, name=f"column{k}_stage{stage}", reset_less=True)
                m.d.sync += late.eq(column)
                column = late
            columns.append(column)
        m.d.comb += self.aligned.eq(Cat(*columns))
        return m
