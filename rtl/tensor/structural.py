"""The systolic array made of tiles, with skew and de-skew: the form that is the truth."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.delay import delayed
from rtl.base.fault import fault, plants_faults
from rtl.base.memory_port import QUADRANTS
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.contract.kinds import Kind
from rtl.contract.sparsity import SLOTS, TAG_BITS
from rtl.contract.timing import PE_ROW_CYCLES, array_latency
from rtl.tensor.deskew import Deskew
from rtl.tensor.edge import Edge, code_bits
from rtl.tensor.lanes import RAW_BITS, RAW_WORD
from rtl.tensor.ports import ArraySignature
from rtl.tensor.tile import TILE, Tile

__all__ = ["StructuralArray"]


class StructuralArray(wiring.Component):
    """Tiles between their edges; see ArraySignature.

    Row r of a beat enters its PE of column c in cycle 1 + 2r + c after the port, and the sums of column c
    leave row r in cycle 1 + 2 (r + 1) + c. Skew and de-skew are made of a common delay of each
    group of 8 rows or columns and a triangle inside the group, so that edges, too, are compiled once.
    Between two row groups the sums from above are taken as +0 where a chain has its head.
    The operands are unpacked at the edge: tiles know nothing of formats, PEs only numbers from dot products.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
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
        sinking: list[Value] = [Const(0, RAW_WORD.size * TILE)] * (cols // TILE)
        tiles_a_group = rows // TILE // self.cfg.tensor.groups
        leaving: list[list[Value]] = []
        for i in range(rows // TILE):
            group, within = divmod(i, tiles_a_group)
            if group and not within:
                south = self._heads(m, group, south)
                sinking = self._raw_heads(m, group, sinking)
            lanes, others = self._moving_edge(m, i)
            loads = self._stationary_edge(m, i)
            for j in range(cols // TILE):
                tile = Placed("plexus_tile", lambda: Tile(self.cfg), hier_block=self._tiles_apart)
                m.submodules[f"tile_{i}_{j}"] = tile
                m.d.comb += [
                    tile.west.eq(lanes),
                    tile.west_weight.eq(loads),
                    tile.north.eq(south[j]),
                    tile.north_raw.eq(sinking[j]),
                ]
                if self.cfg.tensor.sparsity:
                    m.d.comb += tile.west_others.eq(others)
                    others = tile.east_others
                lanes = tile.east
                loads = tile.east_weight
                south[j] = tile.south
                sinking[j] = tile.south_raw
            if within == tiles_a_group - 1:
                leaving.append(list(south))
                self._raw_edge(m, group, sinking)
        exchanged = leaving[1::-1] + leaving[2:]
        for group, columns in enumerate(leaving):
            other = exchanged[group]
            if other is not columns and plants_faults():
                columns = [
                    Mux(fault("the sums of row groups 0 and 1 are exchanged"), b, a)
                    for a, b in zip(columns, other, strict=True)
                ]
            self._south_edge(m, group, columns)
        return m

    def _heads(self, m: Module, group: int, south: list[Value]) -> list[Value]:
        """Sums that enter the first row of `group`: those from above, +0 in a column in which a chain begins."""
        beat = self._first(self.moving, group)
        begins = self._eastward(m, group, beat.valid & beat.head & ~fault("a head of a chain is ignored"), "head")
        cols = self.cfg.tensor.cols
        heads = Signal(cols, name=f"heads{group}")
        m.d.comb += heads.eq(Mux(fault("a head of a chain stays in column 0"), begins[0].replicate(cols), begins))
        return self._without(south, heads, 32)

    def _raw_heads(self, m: Module, group: int, sinking: list[Value]) -> list[Value]:
        """Shadow weights that enter the first row of `group` from above: 0 unless both shift in the same beat."""
        beat = self._first(self.stationary, group)
        alone = ~self._shifts(group - 1) | (
            beat.head & ~fault("a shift goes on from one row group to the next at a head")
        )
        return self._without(sinking, self._eastward(m, group, alone, "raw_head"), RAW_WORD.size)

    def _first(self, beats: Any, group: int) -> Any:
        """The beat of a row group's first quadrant."""
        return beats[group * QUADRANTS // self.cfg.tensor.groups]

    def _last(self, beats: Any, group: int) -> Any:
        """The beat of a row group's last quadrant."""
        return beats[(group + 1) * QUADRANTS // self.cfg.tensor.groups - 1]

    def _shifts(self, group: int) -> Value:
        """Whether the shadow weights of a row group move south."""
        beat = self._first(self.stationary, group)
        return beat.valid & beat.shift

    def _eastward(self, m: Module, group: int, bit: Value, name: str) -> Value:
        """`bit` of a beat when the beat enters the first row of `group`, in each column."""
        cols = self.cfg.tensor.cols
        rows_above = group * self.cfg.tensor.rows // self.cfg.tensor.groups
        entering = delayed(m, bit, PE_ROW_CYCLES * rows_above, f"{name}{group}")
        columns = Signal(cols, name=f"{name}_columns{group}")  # column c one cycle after column c - 1
        m.d.sync += columns.eq(Cat(entering, columns[: cols - 1]))
        return columns

    def _without(self, words: list[Value], columns: Value, width: int) -> list[Value]:
        """`words` of a tile's columns, each of `width` bits, with 0 in `columns`."""
        return [
            word & ~Cat(columns[c].replicate(width) for c in range(TILE * j, TILE * (j + 1)))
            for j, word in enumerate(words)
        ]

    def _rows_of(self, beats: Value, i: int) -> list[tuple[Value, int]]:
        """The rows of group i: the beat of each one's quadrant and its place in it."""
        share = self.cfg.tensor.rows // len(beats)
        return [(beats[r // share], r % share) for r in range(i * TILE, (i + 1) * TILE)]

    def _moving_edge(self, m: Module, i: int) -> tuple[Value, Value]:
        """Moving lanes of row group i and their other numbers, as they enter the first tile."""
        rows = self._rows_of(self.moving, i)
        everyone = fault("rows outside `active` are multiplied too")
        anyway = fault("a swap without `valid` counts")
        tensor = self.cfg.tensor
        flags: list[Value] = []
        for beat, at in rows:
            kind = beat.mode[4:7]
            flag = [beat.valid & (beat.active[at] | everyone), (beat.valid | anyway) & beat.swap]
            if tensor.mx:
                flag.append((kind == Kind.PAIR) | (kind == Kind.QUAD) | (kind == Kind.QUAD_E4M3))
            if tensor.nvfp4:
                flag.append(kind == Kind.QUAD_E4M3)
            flags.append(Cat(*flag))
        edge = self._edge(m, True, i, rows, flags)
        lanes: Value = edge.lanes
        if i == tensor.rows // TILE - 1:
            lanes = self._late(m, lanes, fault("the last 8 rows of moving beats are one cycle late"))
        return lanes, edge.others if tensor.sparsity else Cat()

    def _stationary_edge(self, m: Module, i: int) -> Value:
        """Stationary lanes of row group i, as they enter the first tile."""
        rows = self._rows_of(self.stationary, i)
        everyone = fault("a stationary beat reaches rows outside `active` too")
        shifts = self._shifts(i * TILE * self.cfg.tensor.groups // self.cfg.tensor.rows)
        flags = [
            Cat(
                beat.mode[4:7] == Kind.RAW,
                beat.valid & (beat.active[at] | everyone) & ~shifts,
                shifts,
            )
            for beat, at in rows
        ]
        return self._edge(m, False, i, rows, flags).lanes

    def _edge(self, m: Module, moving: bool, i: int, rows: list[tuple[Value, int]], flags: list[Value]) -> Any:
        """Common delay of the group, then its Edge. At `tiny` a group spans quadrants."""
        tensor = self.cfg.tensor
        port = "x" if moving else "w"
        size = code_bits(tensor, moving)
        codes = [beat.data[64 * at : 64 * at + size] for beat, at in rows]
        scales = [beat.scale.word_select(at, 8) for beat, at in rows]
        modes = [beat.mode for beat, _ in rows]
        edge = Placed(f"plexus_edge_{port}", lambda: Edge(tensor, moving, len(flags[0])), hier_block=self._edges_apart)
        m.submodules[f"edge_{port}{i}"] = edge
        if moving:
            turned = [
                fault("the numbers of a sparse beat go to the other four rows of their tile")
                & (mode[4:7] == Kind.SPARSE)
                for mode in modes
            ]
            codes = [Mux(turned[k], codes[k ^ SLOTS], codes[k]) for k in range(TILE)]
        else:
            modes = [Mux(fault("every pattern is taken for 4:16"), mode[:7], mode) for mode in modes]
        inputs = {"codes": codes, "scales": scales, "modes": modes, "flags": flags}
        if tensor.sparsity and not moving:
            inputs["tags"] = [beat.tags.word_select(at, TAG_BITS) for beat, at in rows]
        late = delayed(m, Cat(*inputs.values()), PE_ROW_CYCLES * TILE * i, f"{port}{i}")
        start = 0
        for name in inputs:
            target = getattr(edge, name)
            m.d.comb += target.eq(late[start : start + len(target)])
            start += len(target)
        return edge

    def _south_edge(self, m: Module, group: int, south: list[Value]) -> None:
        """The way out of a group's sums."""
        south = [*south[:-1], self._late(m, south[-1], fault("the last 8 columns of sums are one cycle late"))]
        beat = self._last(self.moving, group)
        leaves = beat.valid & (beat.tail | fault("sums leave at their group without a tail"))
        self._exit(m, f"sums{group}", self.sums[group], group, leaves, beat.ticket, south)

    def _raw_edge(self, m: Module, group: int, sinking: list[Value]) -> None:
        """The way out of a group's shadow weights: their bits if they are raw."""
        words = [word.word_select(k, RAW_WORD.size) for word in sinking for k in range(TILE)]
        bits = [
            Mux(word[-1] | fault("a weight that was not raw leaves as what it became"), word[:RAW_BITS], 0)
            for word in words
        ]
        columns: list[Value] = [Cat(*bits[j : j + TILE]) for j in range(0, len(bits), TILE)]
        beat = self._last(self.stationary, group)
        leaves = self._shifts(group) & beat.valid & beat.tail
        self._exit(m, f"raw{group}", self.transposed[group], group, leaves, beat.ticket, columns)

    def _exit(
        self, m: Module, name: str, out: Any, group: int, leaves: Value, number: Value, skewed: list[Value]
    ) -> None:
        """De-skew the columns of a group; valid and ticket take the whole way in a delay of their own."""
        columns: list[Value] = []
        for j, word in enumerate(skewed):
            deskew = Placed("plexus_deskew", Deskew, hier_block=self._edges_apart)
            m.submodules[f"deskew_{name}_{j}"] = deskew
            m.d.comb += deskew.skewed.eq(word)
            columns.append(delayed(m, deskew.aligned, TILE * (len(skewed) - 1 - j), f"y_{name}_{j}"))
        early = delayed(m, Cat(leaves, number), array_latency(self.cfg.tensor, group) - 1, f"ticket_{name}")
        now = Signal(1 + len(number), name=f"now_{name}")
        m.d.sync += now.eq(early)
        m.d.comb += [
            out.valid.eq(now[0]),
            out.ticket.eq(Mux(fault("the ticket is that of the following beat"), early[1:], now[1:])),
            out.data.eq(Cat(*columns)),
        ]

    def _late(self, m: Module, value: Value, planted: Value) -> Value:
        """`value`, or while `planted` that of one cycle ago."""
        if not plants_faults():
            return value
        late = Signal(len(value))
        chosen = Signal(len(value))
        m.d.sync += late.eq(value)
        m.d.comb += chosen.eq(Mux(planted, late, value))
        return chosen
