"""The systolic array made of tiles, with skew and de-skew: the form that is the truth."""

from amaranth.hdl import Cat, Const, Module, Signal, Value, ValueLike
from amaranth.lib import wiring

from rtl.base.delay import delayed
from rtl.base.placed import Placed
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.timing import PE_ROW_CYCLES, array_latency
from rtl.numeric.unpack import Unpack
from rtl.tensor.lanes import MOVING_LANE, WEIGHT_LANE
from rtl.tensor.ports import ArraySignature
from rtl.tensor.tile import TILE, Tile

__all__ = ["StructuralArray"]


class StructuralArray(wiring.Component):
    """Rows of tiles. Row r of a beat enters the tiles 1 + 2r cycles after the port; see ArraySignature.

    The operands are unpacked at the edge, so the tiles know nothing of formats. Mode bits other than
    the dtype code, and the scales, are not looked at yet.
    """

    FAULTS = {
        1: "the last row's moving lane is one cycle early",
        2: "column 0 leaves one cycle early",
        3: "rows outside `active` are multiplied too",
        4: "a stationary beat reaches rows outside `active` too",
        5: "the ticket is that of the following beat",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(ArraySignature(cfg))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self.cfg.tensor.rows
        cols = self.cfg.tensor.cols
        east, weights = self._edge(m)

        south: list[Value] = [Const(0, 32 * TILE)] * (cols // TILE)
        for i in range(rows // TILE):
            lanes = Cat(*east[i * TILE : (i + 1) * TILE])
            loads = Cat(*weights[i * TILE : (i + 1) * TILE])
            for j in range(cols // TILE):
                tile = Placed("plexus_tile", Tile, hier_block=True)
                m.submodules[f"tile_{i}_{j}"] = tile
                m.d.comb += [
                    tile.west.eq(lanes),
                    tile.west_weight.eq(loads),
                    tile.north.eq(south[j]),
                ]
                lanes = tile.east
                loads = tile.east_weight
                south[j] = tile.south

        self._leave(m, Cat(*south))
        return m

    def _edge(self, m: Module) -> tuple[list[Value], list[Value]]:
        """Unpack, register and skew every row: the lanes at the west side of the first tiles."""
        rows = self.cfg.tensor.rows
        share = rows // len(self.moving)
        lanes: list[Value] = []
        loads: list[Value] = []
        for r in range(rows):
            moving = self.moving[r // share]
            stationary = self.stationary[r // share]
            at = r % share
            lane = Signal(MOVING_LANE, name=f"lane_{r}")
            load = Signal(WEIGHT_LANE, name=f"load_{r}")
            for port, beat, operand in (("x", moving, lane.operand), ("w", stationary, load.operand)):
                unpack = Placed("plexus_unpack", Unpack, clocked=False)
                m.submodules[f"unpack_{port}_{r}"] = unpack
                m.d.comb += [
                    unpack.bits.eq(beat.data[64 * at : 64 * at + 16]),
                    unpack.dtype.eq(beat.mode[:4]),
                    operand.eq(unpack.operand),
                ]
            everyone = planted(self.plant, 3)
            m.d.comb += [
                lane.use.eq(moving.valid & (moving.active[at] | everyone)),
                lane.swap.eq(moving.valid & moving.swap),
                load.valid.eq(stationary.valid & (stationary.active[at] | planted(self.plant, 4))),
            ]
            cycles = 1 + PE_ROW_CYCLES * r
            skewed = delayed(m, Value.cast(lane), cycles, f"skew_x_{r}")
            if r == rows - 1 and not isinstance(self.plant, int):
                early = delayed(m, Value.cast(lane), cycles - 1, f"early_x_{r}")
                wrong = Signal.like(skewed)
                m.d.comb += wrong.eq(skewed)
                with m.If(planted(self.plant, 1)):
                    m.d.comb += wrong.eq(early)
                skewed = wrong
            lanes.append(skewed)
            loads.append(delayed(m, Value.cast(load), cycles, f"skew_w_{r}"))
        return lanes, loads

    def _leave(self, m: Module, south: Value) -> None:
        """De-skew the columns; valid and ticket take the whole way in a register chain of their own."""
        cols = self.cfg.tensor.cols
        columns: list[Value] = []
        for c in range(cols):
            cycles = cols - 1 - c
            column = south[32 * c : 32 * c + 32]
            aligned = delayed(m, column, cycles, f"deskew_{c}")
            if c == 0 and not isinstance(self.plant, int):
                early = delayed(m, column, cycles - 1, "early_0")
                wrong = Signal(32)
                m.d.comb += wrong.eq(aligned)
                with m.If(planted(self.plant, 2)):
                    m.d.comb += wrong.eq(early)
                aligned = wrong
            columns.append(aligned)
        latency = array_latency(self.cfg.tensor)
        first = self.moving[0]
        ticket = delayed(m, first.ticket, latency - 1, "ticket")
        late = Signal.like(ticket)
        m.d.sync += late.eq(ticket)
        shown = Signal.like(ticket)
        m.d.comb += shown.eq(late)
        with m.If(planted(self.plant, 5)):
            m.d.comb += shown.eq(ticket)
        m.d.comb += [
            self.sums[0].valid.eq(delayed(m, first.valid, latency, "valid")),
            self.sums[0].ticket.eq(shown),
            self.sums[0].data.eq(Cat(*columns)),
        ]
