"""Tile of 8 x 8 processing elements: what Verilator compiles once for the whole array."""

from amaranth.hdl import Cat, Module, Mux, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Placed
from rtl.base.plant import planted
from rtl.tensor.lanes import MOVING_LANE, WEIGHT_LANE
from rtl.tensor.pe import PE

__all__ = ["TILE", "Tile"]

TILE = 8
MOVING_BITS = MOVING_LANE.size
WEIGHT_BITS = WEIGHT_LANE.size


class Tile(wiring.Component):
    """Moving lanes and weights enter west and leave east, partial sums enter north and leave south.

    Ports are plain vectors, lane or column i at bits i * its size: a struct would be written out field
    by field at every placement.

    Timing: as its PEs: east 8 cycles after west, row r of the tile 2r cycles and column c c cycles
    after the first; lanes enter skewed accordingly.
    """

    FAULTS = {
        1: "the weights of the last two rows are exchanged on entry",
        2: "the sums of two columns are exchanged on entry",
    }

    west: In(MOVING_BITS * TILE)
    east: Out(MOVING_BITS * TILE)
    west_weight: In(WEIGHT_BITS * TILE)
    east_weight: Out(WEIGHT_BITS * TILE)
    north: In(32 * TILE)
    south: Out(32 * TILE)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        weights = [self.west_weight.word_select(r, WEIGHT_BITS) for r in range(TILE)]
        south = [self.north.word_select(c, 32) for c in range(TILE)]
        exchange = planted(self.plant, 1)
        weights[-1], weights[-2] = (
            Mux(exchange, weights[-2], weights[-1]),
            Mux(exchange, weights[-1], weights[-2]),
        )
        exchange = planted(self.plant, 2)
        south[0], south[1] = Mux(exchange, south[1], south[0]), Mux(exchange, south[0], south[1])

        east: list[Value] = []
        east_weight: list[Value] = []
        for r in range(TILE):
            lane: Value = self.west.word_select(r, MOVING_BITS)
            weight: Value = weights[r]
            for c in range(TILE):
                m.submodules[f"pe_{r}_{c}"] = pe = Placed("plexus_pe", PE)
                m.d.comb += [
                    Value.cast(pe.west).eq(lane),
                    Value.cast(pe.west_weight).eq(weight),
                    pe.north.eq(south[c]),
                ]
                lane = Value.cast(pe.east)
                weight = Value.cast(pe.east_weight)
                south[c] = pe.south
            east.append(lane)
            east_weight.append(weight)
        m.d.comb += [
            self.east.eq(Cat(*east)),
            self.east_weight.eq(Cat(*east_weight)),
            self.south.eq(Cat(*south)),
        ]
        return m
