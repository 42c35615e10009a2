"""Tile of 8 x 8 processing elements: what Verilator compiles once for the whole array."""

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.tensor.lanes import OTHERS, RAW_WORD, moving_lane, weight_lane
from rtl.tensor.pe import PE

__all__ = ["TILE", "Tile"]

TILE = 8


class Tile(wiring.Component):
    """Moving lanes and weights enter west and leave east, partial sums and shifted weights enter north and leave south.

    Ports are plain vectors, lane or column i at bits i * its size: a struct would be written out field
    by field at every placement.

    Timing: as its PEs: east 8 cycles after west, row r of the tile 2r cycles and column c c cycles
    after the first; lanes enter skewed accordingly.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.moving_bits = moving_lane(cfg.tensor).size
        self.weight_bits = weight_lane(cfg.tensor).size
        ports = {
            "west": In(self.moving_bits * TILE),
            "east": Out(self.moving_bits * TILE),
            "west_weight": In(self.weight_bits * TILE),
            "east_weight": Out(self.weight_bits * TILE),
            "north": In(32 * TILE),
            "south": Out(32 * TILE),
            "north_raw": In(RAW_WORD.size * TILE),
            "south_raw": Out(RAW_WORD.size * TILE),
        }
        if cfg.tensor.sparsity:
            ports |= {"west_others": In(OTHERS.size * TILE), "east_others": Out(OTHERS.size * TILE)}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        weights = [self.west_weight.word_select(r, self.weight_bits) for r in range(TILE)]
        south = [self.north.word_select(c, 32) for c in range(TILE)]
        sinking = [self.north_raw.word_select(c, RAW_WORD.size) for c in range(TILE)]
        exchange = fault("the weights of the last two rows are exchanged on entry")
        weights[-1], weights[-2] = (
            Mux(exchange, weights[-2], weights[-1]),
            Mux(exchange, weights[-1], weights[-2]),
        )
        exchange = fault("the sums of two columns are exchanged on entry")
        south[0], south[1] = Mux(exchange, south[1], south[0]), Mux(exchange, south[0], south[1])

        sparsity = self.cfg.tensor.sparsity
        east: list[Value] = []
        east_others: list[Value] = []
        east_weight: list[Value] = []
        for r in range(TILE):
            lane: Value = self.west.word_select(r, self.moving_bits)
            weight: Value = weights[r]
            others: Value = self.west_others.word_select(r, OTHERS.size) if sparsity else Cat()
            for c in range(TILE):
                m.submodules[f"pe_{r}_{c}"] = pe = Placed("plexus_pe", lambda: PE(self.cfg))
                m.d.comb += [
                    Value.cast(pe.west).eq(lane),
                    Value.cast(pe.west_weight).eq(weight),
                    pe.north.eq(south[c]),
                    Value.cast(pe.north_raw).eq(sinking[c]),
                ]
                if sparsity:
                    m.d.comb += Value.cast(pe.west_others).eq(others)
                    others = Value.cast(pe.east_others)
                lane = Value.cast(pe.east)
                weight = Value.cast(pe.east_weight)
                south[c] = pe.south
                sinking[c] = Value.cast(pe.south_raw)
            east.append(lane)
            east_others.append(others)
            east_weight.append(weight)
        m.d.comb += [
            self.east.eq(Cat(*east)),
            self.east_weight.eq(Cat(*east_weight)),
            self.south.eq(Cat(*south)),
            self.south_raw.eq(Cat(*sinking)),
        ]
        if sparsity:
            m.d.comb += self.east_others.eq(Cat(*east_others))
        return m
