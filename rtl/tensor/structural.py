"""The systolic array made of tiles, with skew and de-skew: the form that is the truth."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring

from rtl.base.delay import delayed
from rtl.base.memory_port import QUADRANTS
from rtl.base.placed import Placed
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.timing import PE_ROW_CYCLES, array_latency
from rtl.tensor.deskew import Deskew
from rtl.tensor.edge import Edge
from rtl.tensor.ports import ArraySignature
from rtl.tensor.tile import TILE, Tile

__all__ = ["StructuralArray"]


class StructuralArray(wiring.Component):
    """Tiles between their edges; see ArraySignature.

    Row r of a beat enters its PE of column c in cycle 1 + 2r + c after the port, and the sums of column c
    leave row r in cycle 1 + 2 (r + 1) + c. Skew and de-skew are made of a common delay of each
    group of 8 rows or columns and a triangle inside the group, so that edges, too, are compiled once.
    Between two row groups the sums from above are taken as +0 where a chain has its head.
    The operands are unpacked at the edge: tiles know nothing of formats. Mode bits other than the
    dtype code, and the scales, are not looked at yet.
    """

    FAULTS = {
        1: "the last 8 rows of moving beats are one cycle late",
        2: "the last 8 columns of sums are one cycle late",
        3: "rows outside `active` are multiplied too",
        4: "a stationary beat reaches rows outside `active` too",
        5: "the ticket is that of the following beat",
        6: "a swap without `valid` counts",
        7: "a head is ignored",
        8: "a head stays in column 0",
        9: "sums leave at their group without a tail",
        10: "the sums of row groups 0 and 1 are exchanged",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        # Blocks that Verilator compiles by themselves: worth it from a few placements on.
        tiles = (cfg.tensor.rows // TILE, cfg.tensor.cols // TILE)
        self._tiles_apart = tiles != (1, 1)
        self._edges_apart = max(tiles) > 4
        super().__init__(ArraySignature(cfg))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self.cfg.tensor.rows
        cols = self.cfg.tensor.cols
        south: list[Value] = [Const(0, 32 * TILE)] * (cols // TILE)
        tiles_a_group = rows // TILE // self.cfg.tensor.groups
        leaving: list[list[Value]] = []
        for i in range(rows // TILE):
            group, within = divmod(i, tiles_a_group)
            if group and not within:
                south = self._heads(m, group, south)
            lanes = self._moving_edge(m, i)
            loads = self._stationary_edge(m, i)
            for j in range(cols // TILE):
                tile = Placed("plexus_tile", Tile, hier_block=self._tiles_apart)
                m.submodules[f"tile_{i}_{j}"] = tile
                m.d.comb += [
                    tile.west.eq(lanes),
                    tile.west_weight.eq(loads),
                    tile.north.eq(south[j]),
                ]
                lanes = tile.east
                loads = tile.east_weight
                south[j] = tile.south
            if within == tiles_a_group - 1:
                leaving.append(list(south))
        exchanged = leaving[1::-1] + leaving[2:]
        for group, columns in enumerate(leaving):
            other = exchanged[group]
            if other is not columns and not isinstance(self.plant, int):
                columns = [Mux(planted(self.plant, 10), b, a) for a, b in zip(columns, other, strict=True)]
            self._south_edge(m, group, columns)
        return m

    def _heads(self, m: Module, group: int, south: list[Value]) -> list[Value]:
        """Sums that enter the first row of `group`: those from above, +0 in a column in which a chain begins."""
        beat = self.moving[group * QUADRANTS // self.cfg.tensor.groups]
        cols = self.cfg.tensor.cols
        above = PE_ROW_CYCLES * group * self.cfg.tensor.rows // self.cfg.tensor.groups
        begins = beat.valid & beat.head & ~planted(self.plant, 7)
        entering = delayed(m, begins, above, f"head{group}")
        heads = Signal(cols, name=f"heads{group}")  # of column c one cycle after that of column c - 1
        m.d.sync += heads.eq(Cat(entering, heads[: cols - 1]))
        first = Signal(cols, name=f"first{group}")
        m.d.comb += first.eq(Mux(planted(self.plant, 8), heads[0].replicate(cols), heads))
        return [
            sums & ~Cat(first[c].replicate(32) for c in range(TILE * j, TILE * (j + 1))) for j, sums in enumerate(south)
        ]

    def _rows_of(self, beats: Value, i: int) -> list[tuple[Value, int]]:
        """The rows of group i: the beat of each one's quadrant and its place in it."""
        share = self.cfg.tensor.rows // len(beats)
        return [(beats[r // share], r % share) for r in range(i * TILE, (i + 1) * TILE)]

    def _moving_edge(self, m: Module, i: int) -> Value:
        """Moving lanes of row group i, as they enter the first tile."""
        rows = self._rows_of(self.moving, i)
        everyone = planted(self.plant, 3)
        anyway = planted(self.plant, 6)
        tags = [Cat(beat.valid & (beat.active[at] | everyone), (beat.valid | anyway) & beat.swap) for beat, at in rows]
        lanes = self._edge(m, "x", i, rows, tags)
        if i == self.cfg.tensor.rows // TILE - 1:
            lanes = self._late(m, lanes, 1)
        return lanes

    def _stationary_edge(self, m: Module, i: int) -> Value:
        """Stationary lanes of row group i, as they enter the first tile."""
        rows = self._rows_of(self.stationary, i)
        everyone = planted(self.plant, 4)
        tags = [beat.valid & (beat.active[at] | everyone) for beat, at in rows]
        return self._edge(m, "w", i, rows, tags)

    def _edge(self, m: Module, port: str, i: int, rows: list[tuple[Value, int]], tags: list[Value]) -> Value:
        """Common delay of the group, then its Edge. At `tiny` a group spans quadrants."""
        size = len(tags[0])
        codes = [beat.data.word_select(4 * at, 16) for beat, at in rows]
        dtypes = [beat.mode[:4] for beat, _ in rows]
        late = delayed(m, Cat(*codes, *tags, *dtypes), PE_ROW_CYCLES * TILE * i, f"{port}{i}")
        edge = Placed(f"plexus_edge_{size}", lambda: Edge(size), hier_block=self._edges_apart)
        m.submodules[f"edge_{port}{i}"] = edge
        m.d.comb += [
            edge.codes.eq(late[: 16 * TILE]),
            edge.tags.eq(late[16 * TILE : (16 + size) * TILE]),
            edge.dtypes.eq(late[(16 + size) * TILE :]),
        ]
        return edge.lanes

    def _south_edge(self, m: Module, group: int, south: list[Value]) -> None:
        """De-skew the columns of a group; valid and ticket take the whole way in a delay of their own."""
        columns: list[Value] = []
        for j, skewed in enumerate(south):
            if j == len(south) - 1:
                skewed = self._late(m, skewed, 2)
            deskew = Placed("plexus_deskew", Deskew, hier_block=self._edges_apart)
            m.submodules[f"deskew_{group}_{j}"] = deskew
            m.d.comb += deskew.skewed.eq(skewed)
            columns.append(delayed(m, deskew.aligned, TILE * (len(south) - 1 - j), f"y{group}_{j}"))

        beat = self.moving[(group + 1) * QUADRANTS // self.cfg.tensor.groups - 1]
        latency = array_latency(self.cfg.tensor, group)
        leaves = beat.valid & (beat.tail | planted(self.plant, 9))
        early = delayed(m, Cat(leaves, beat.ticket), latency - 1, f"ticket{group}")
        valid = Signal(name=f"valid{group}")
        ticket = Signal(8, name=f"ticket{group}_now")
        m.d.sync += [valid.eq(early[0]), ticket.eq(early[1:])]
        m.d.comb += [
            self.sums[group].valid.eq(valid),
            self.sums[group].ticket.eq(Mux(planted(self.plant, 5), early[1:], ticket)),
            self.sums[group].data.eq(Cat(*columns)),
        ]

    def _late(self, m: Module, value: Value, fault: int) -> Value:
        """`value`, or while `fault` is active that of one cycle ago."""
        if isinstance(self.plant, int):
            return value
        late = Signal(len(value))
        chosen = Signal(len(value))
        m.d.sync += late.eq(value)
        m.d.comb += chosen.eq(Mux(planted(self.plant, fault), late, value))
        return chosen
