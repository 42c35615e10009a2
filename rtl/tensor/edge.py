"""West edge of the array: eight rows of codes become lanes, each row two cycles later than the one above."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Placed
from rtl.contract.config import TensorConfig
from rtl.contract.timing import PE_ROW_CYCLES
from rtl.tensor.ports import MODE_BITS
from rtl.tensor.tile import TILE
from rtl.tensor.unpack_lane import CODE_BITS, UnpackLane

__all__ = ["Edge"]


class Edge(wiring.Component):
    """Codes, modes, scales and `tag_bits` tags a row in, lanes of `lane_bits` bits and tags out, for a tile's rows.

    Row k at bits k * its size in every port. Timing: row k leaves 1 + 2k cycles after it entered. Reset:
    tags are 0.
    """

    def __init__(self, tensor: TensorConfig, lane_bits: int, tag_bits: int):
        self.tensor = tensor
        self.lane_bits = lane_bits
        self.tag_bits = tag_bits
        super().__init__(
            {
                "codes": In(CODE_BITS * TILE),
                "modes": In(MODE_BITS * TILE),
                "scales": In(8 * TILE),
                "tags": In(tag_bits * TILE),
                "lanes": Out((lane_bits + tag_bits) * TILE),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes: list[Value] = []
        for k in range(TILE):
            unpack = Placed("plexus_unpack_lane", lambda: UnpackLane(self.tensor), clocked=False)
            m.submodules[f"unpack_{k}"] = unpack
            mode = self.modes.word_select(k, MODE_BITS)
            m.d.comb += [
                unpack.bits.eq(self.codes.word_select(k, CODE_BITS)),
                unpack.dtype.eq(mode[:4]),
                unpack.kind.eq(mode[4:7]),
                unpack.scale.eq(self.scales.word_select(k, 8)),
            ]
            lane: Value = Cat(unpack.lane[: self.lane_bits], self.tags.word_select(k, self.tag_bits))
            for stage in range(1 + PE_ROW_CYCLES * k):
                late = Signal(len(lane), name=f"row{k}_stage{stage}")
                m.d.sync += late.eq(lane)
                lane = late
            lanes.append(lane)
        m.d.comb += self.lanes.eq(Cat(*lanes))
        return m
