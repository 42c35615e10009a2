"""West edge of the array: eight rows of codes become operands, each row two cycles later than the one above."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Placed
from rtl.contract.timing import PE_ROW_CYCLES
from rtl.numeric.operand import OPERAND
from rtl.numeric.unpack import Unpack
from rtl.tensor.tile import TILE

__all__ = ["Edge"]


class Edge(wiring.Component):
    """Codes, dtype codes and `tag_bits` tags a row in, lanes of operand and tags out, for the rows of one tile.

    Row k at bits k * its size in every port. Timing: row k leaves 1 + 2k cycles after it entered. Reset:
    tags are 0.
    """

    def __init__(self, tag_bits: int):
        self.tag_bits = tag_bits
        super().__init__(
            {
                "codes": In(16 * TILE),
                "dtypes": In(4 * TILE),
                "tags": In(tag_bits * TILE),
                "lanes": Out((OPERAND.size + tag_bits) * TILE),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes: list[Value] = []
        for k in range(TILE):
            m.submodules[f"unpack_{k}"] = unpack = Placed("plexus_unpack", Unpack, clocked=False)
            m.d.comb += [
                unpack.bits.eq(self.codes.word_select(k, 16)),
                unpack.dtype.eq(self.dtypes.word_select(k, 4)),
            ]
            lane: Value = Cat(unpack.operand, self.tags.word_select(k, self.tag_bits))
            for stage in range(1 + PE_ROW_CYCLES * k):
                late = Signal(len(lane), name=f"row{k}_stage{stage}")
                m.d.sync += late.eq(lane)
                lane = late
            lanes.append(lane)
        m.d.comb += self.lanes.eq(Cat(*lanes))
        return m
