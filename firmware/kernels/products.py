"""Matrix products of any size: loads in the order of use, the array, and the way out, overlapped.

Both operands lie K-major in HBM. Loads run as far ahead of the array as slots of SBUF allow. A result tile
leaves PSUM by the vector engine while the array works on the next, and then goes to HBM.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firmware.engines.scales import scale_views
from firmware.kernel import HbmView, Kernel, KernelError, TileView
from firmware.kernels.result_tiles import LAST_TILES, result_tiles, sequence_of
from firmware.kernels.scale_copies import copy_beside, copy_scales
from firmware.kernels.slots import Slots
from firmware.kernels.tiling import (
    RESULT_SLOTS_MIN,
    Chunk,
    Span,
    even_spans,
    group_spans,
    k_tiles,
    make_plan,
    moving_width,
)
from firmware.numbers import element_bytes
from firmware.program import Completion
from rtl.contract.kinds import SCALE_FORMATS, SCALE_ROWS, TAG_COLUMNS, scale_slots, tag_elements

__all__ = ["Layout", "Sparse", "layout", "products"]

OUT_SLOTS = 8  # result tiles on their way from PSUM to HBM, at most
OUT_SHARE = 8  # they take at most this part of a partition, but two are needed
SLOT_BYTES = 16  # slots are multiples of it
TAGS = "uint16"


@dataclass(frozen=True, slots=True)
class Sparse:
    """What makes stationary operands sparse: the name of the pattern, and the tags of each, [K, S / 4]."""

    pattern: str
    tags: Sequence[HbmView]


@dataclass(frozen=True, slots=True)
class _Load:
    """A load under way: the result tile that needs it first, when it is complete, its bytes."""

    tile: int
    done: Completion
    bytes: int


class _Products:
    """One call of `products`: plan, memory, and the loop over all matmuls."""

    def __init__(
        self,
        k: Kernel,
        stationary: Sequence[HbmView],
        moving: Sequence[HbmView],
        results: Mapping[tuple[int, int], HbmView],
        resident: bool,
        scales: tuple[Sequence[HbmView], Sequence[HbmView]] | None,
        factor: float,
        rounding: dict[str, Any],
        sparse: Sparse | None,
        loop: bool = False,
    ):
        cfg = k.cfg
        self.k = k
        self.views = {"s": stationary, "v": moving}
        self.scales = {"s": scales[0], "v": scales[1]} if scales else {}
        self.factor = factor
        self.rounding = rounding
        self.sparse = sparse
        self.results = results
        self.resident = resident
        self.loop = loop
        dtypes = {side: views[0].dtype for side, views in self.views.items()}
        self.scale_dtype = scales[0][0].dtype if scales else ""
        self.kind = next((kind for kind, name in SCALE_FORMATS.items() if name == self.scale_dtype), None)
        # Stationary and moving scales lie beside different movers.
        self.scale_slot = {"s": 0, "v": scale_slots(self.kind) // 2} if self.kind else {}
        self.k_tiles = k_tiles(stationary[0].shape[0], cfg.tensor.rows)
        s_spans = [s for i, x in enumerate(stationary) for s in even_spans(i, x.shape[1], cfg.tensor.cols)]
        v_spans = [v for i, x in enumerate(moving) for v in even_spans(i, x.shape[1], moving_width(cfg))]
        width = max(v.size for v in v_spans)
        self._results_memory(width, len(s_spans) * len(v_spans))

        def slot_bytes(side: str, columns: int) -> int:
            sizes = [columns * element_bytes(dtypes[side])]
            sizes += [columns * element_bytes(self.scale_dtype)] if scales else []
            sizes += [tag_elements(columns) * element_bytes(TAGS)] if sparse and side == "s" else []
            return sum(-(-size // SLOT_BYTES) * SLOT_BYTES for size in sizes)

        room = k.sbuf_free() // SLOT_BYTES * SLOT_BYTES
        depth = len(self.k_tiles)
        groups = group_spans(cfg, s_spans, dtypes["s"])
        # Long rows are good, but a group must not fill SBUF alone.
        while len(groups) < len(s_spans) and slot_bytes("s", len(groups[0]) * cfg.tensor.cols) * depth * 4 > room:
            groups = [half for g in groups for half in (g[: len(g) // 2], g[len(g) // 2 :]) if half]
        s_columns = max(g[-1].start + g[-1].size - g[0].start for g in groups)
        s_bytes, v_bytes = slot_bytes("s", s_columns), slot_bytes("v", width)
        self.operand_bytes = depth * (len(groups) * s_bytes + len(v_spans) * v_bytes)
        if resident and self.operand_bytes > room:
            raise KernelError(
                f"resident operands need {self.operand_bytes} bytes of each SBUF partition, but only {room} "
                f"are free; run without resident or with a smaller m, k or n"
            )
        if 2 * (s_bytes + v_bytes) > room:
            raise KernelError(
                f"SBUF has no room for two chunks of each operand ({s_bytes} and {v_bytes} bytes of each "
                f"partition); {room} bytes are free"
            )
        self.plan = plan = make_plan(groups, v_spans, depth, (s_bytes, v_bytes), room)
        self.s_width = max(s.size for s in s_spans)
        self.tiles = result_tiles(plan, groups, cfg.tensor.cols)
        self.sequence = sequence_of(self.tiles, depth, together=not resident and len(self.sums) > 2)
        of_tags = (TAGS, tag_elements(s_columns)) if sparse else (self.scale_dtype, 0)
        self.slots = {
            "s": Slots(k, "stationary", plan.stationary_slots, s_columns, dtypes["s"], *of_tags),
            "v": Slots(k, "moving", plan.moving_slots, width, dtypes["v"], self.scale_dtype),
        }
        self.uses: dict[Chunk, list[int]] = {}
        for step, (tile, depth_tile) in enumerate(self.sequence):
            for chunk in self.tiles[tile].chunks(depth_tile):
                self.uses.setdefault(chunk, []).append(step)
        self.loads: list[_Load] = []
        # The chunk that moves first comes and goes in two pieces, so that the array starts on the first.
        self.sequence_start = self.tiles[0].chunks(0)[1]
        half = -(-self.sequence_start.size // 16) * 8
        self.first_piece = half if half >= cfg.tensor.cols and not loop else self.sequence_start.size

    def _results_memory(self, width: int, tiles: int) -> None:
        """Room for sums in PSUM, whole banks where possible, and for results in SBUF."""
        k, cfg = self.k, self.k.cfg
        dtype = next(iter(self.results.values())).dtype
        share = cfg.sbuf.partition_bytes // OUT_SHARE // (width * element_bytes(dtype))
        self.out = [
            k.sbuf(f"out{i}", partitions=cfg.tensor.cols, columns=width, dtype=dtype)
            for i in range(max(2, min(OUT_SLOTS, share, tiles + LAST_TILES - 1)))
        ]
        bank = cfg.psum.bank_bytes
        size = -(-width * 4 // bank) * bank
        if RESULT_SLOTS_MIN * size > cfg.psum.partition_bytes:
            size = width * 4
        self.sums = [
            k.psum(f"sums{i}", partitions=cfg.tensor.cols, columns=width, align=size)
            for i in range(cfg.psum.partition_bytes // size)
        ]

    def load(self, step: int, chunk: Chunk) -> bool:
        """Have `chunk`, needed at `step`, on its way; False if that has to wait for a slot."""
        slots = self.slots[chunk.side]
        if chunk in slots.where:
            return True
        tile = slots.place(chunk, step)
        if tile is None:
            return False
        at, rows = self.k_tiles[chunk.k]
        source = self.views[chunk.side][chunk.source]
        size = chunk.size if chunk != self.sequence_start else self.first_piece
        for begin in range(0, chunk.size, size):
            end = min(begin + size, chunk.size)
            done = self.k.dma(tile[:rows, begin:end], source[at : at + rows, chunk.start + begin : chunk.start + end])
            bytes_moved = rows * (end - begin) * element_bytes(source.dtype)
            if self.kind is not None:
                self.load_scales(chunk, begin, end)
                bytes_moved += rows // SCALE_ROWS[self.kind] * (end - begin)
            if self.sparse and chunk.side == "s":
                self.load_tags(chunk, self.sparse)
                bytes_moved += rows * tag_elements(chunk.size) * element_bytes(TAGS)
            self.loads.append(_Load(self.sequence[step][0], done, bytes_moved))
        return True

    def load_scales(self, chunk: Chunk, begin: int, end: int) -> None:
        """The scales of columns `begin` to `end` of a chunk on their way."""
        assert self.kind is not None
        slots, k = self.slots[chunk.side], self.k
        tile = slots.scale_tiles[slots.where[chunk]][:, begin:end]
        at, rows = self.k_tiles[chunk.k]
        source = self.scales[chunk.side][chunk.source]
        row, count = at // SCALE_ROWS[self.kind], rows // SCALE_ROWS[self.kind]
        views = scale_views(tile, self.kind, k.cfg.partitions, self.scale_slot[chunk.side], 0, rows)
        copy_scales(k, views, source[row : row + count, chunk.start + begin : chunk.start + end])

    def load_tags(self, chunk: Chunk, sparse: Sparse) -> None:
        """The tags of a stationary chunk on their way; chunks begin with an element of theirs."""
        slots = self.slots[chunk.side]
        at, rows = self.k_tiles[chunk.k]
        first, count = chunk.start // TAG_COLUMNS, tag_elements(chunk.size)
        source = sparse.tags[chunk.source][at : at + rows, first : first + count]
        copy_beside(self.k, slots.scale_tiles[slots.where[chunk]][:rows, :count], source)

    def operand(self, chunk: Chunk, columns: Span) -> TileView:
        """`columns` of a chunk that is in SBUF."""
        slots = self.slots[chunk.side]
        first = columns.start - chunk.start
        return slots.tiles[slots.where[chunk]][: self.k_tiles[chunk.k][1], first : first + columns.size]

    def of_scales(self, chunk: Chunk, columns: Span) -> dict[str, Any]:
        """The scales or tags of those columns, as arguments of k.tensor.load and matmul."""
        slots = self.slots[chunk.side]
        first = columns.start - chunk.start
        if self.sparse and chunk.side == "s":
            rows, at = self.k_tiles[chunk.k][1], first // TAG_COLUMNS
            tags = slots.scale_tiles[slots.where[chunk]][:rows, at : at + tag_elements(columns.size)]
            return {"tags": tags, "sparsity": self.sparse.pattern}
        if self.kind is None:
            return {}
        tile = slots.scale_tiles[slots.where[chunk]]
        return {"scales": tile[:, first : first + columns.size], "slot": self.scale_slot[chunk.side]}

    def emit(self) -> None:
        """All instructions and descriptors, in an order in which nothing waits for what comes later."""
        k = self.k
        needs = [
            (step, chunk)
            for step, (tile, depth_tile) in enumerate(self.sequence)
            for chunk in self.tiles[tile].chunks(depth_tile)
        ]
        ahead = 0
        steps = enumerate(self.sequence)
        for step, (number, depth_tile) in k.turns(steps) if self.loop else steps:
            while ahead < len(needs) and self.load(*needs[ahead]):
                ahead += 1
            if step == 0 and self.resident:
                k.tensor.barrier()
            tile = self.tiles[number]
            sums = self.sums[number % len(self.sums)][: tile.s.size, : tile.v.size]
            stationary, moving = tile.chunks(depth_tile)
            k.tensor.load(self.operand(stationary, tile.s), **self.of_scales(stationary, tile.s))
            piece = self.first_piece if step == 0 else tile.v.size
            for at in range(0, tile.v.size, piece):
                part = Span(tile.v.source, tile.v.start + at, min(piece, tile.v.size - at))
                columns = slice(at, at + part.size)
                of_scales = self.of_scales(moving, part)
                options = {"accumulate": depth_tile > 0, **of_scales, **self.rounding}
                k.tensor.matmul(self.operand(moving, part), sums[:, columns], **options)
            if depth_tile == len(self.k_tiles) - 1:
                self.leave(number, sums)
            for chunk in (stationary, moving):
                self.slots[chunk.side].used(chunk, step, self.uses[chunk])

    def leave(self, number: int, sums: TileView) -> None:
        """A finished result tile: PSUM to SBUF, converted, and on to HBM.

        The store goes behind the loads of the next tiles that are under way: HBM is busy with either, but
        the array waits for loads only.
        """
        tile = self.tiles[number]
        staged = self.out[number % len(self.out)][: tile.s.size, : tile.v.size]
        if self.factor == 1:
            self.k.vector.copy(staged, sums)
        else:
            self.k.vector.tensor_scalar(staged, sums, "multiply", self.factor)
        horizon = number + len(self.out) - 1
        # Loads come in the order of the tiles, but for the first two, which no horizon parts.
        ahead = bisect_right(self.loads, horizon, key=lambda load: load.tile)
        # Movers hold this much: so the last loads need not be complete for the store to be behind them.
        held = self.k.cfg.dma.engines * self.k.cfg.dma.buffer_bytes
        while ahead and held > 0:
            ahead -= 1
            held -= self.loads[ahead].bytes
        target = self.results[tile.s.source, tile.v.source]
        rows = slice(tile.s.start, tile.s.start + tile.s.size)
        columns = slice(tile.v.start, tile.v.start + tile.v.size)
        self.k.dma(target[rows, columns], staged, after=[self.loads[ahead - 1].done] if ahead else [])


@dataclass(frozen=True, slots=True)
class Layout:
    """How a product lies in SBUF, whatever its size: which side stays (Plan.keeps) and how many chunks of it, slots of
    both sides unless all fits, columns of a chunk and of a tile of each, results under way."""

    keeps: str
    block: int
    slots: tuple[int, int] | None
    chunk_columns: tuple[int, int]
    tile_columns: tuple[int, int]
    out_slots: int


def layout(
    k: Kernel,
    stationary: HbmView,
    moving: HbmView,
    result: HbmView,
    scales: tuple[HbmView, HbmView] | None = None,
) -> Layout:
    """The layout that `products` would choose for one product; k: a kernel that is thrown away then. KernelError."""
    both = ([scales[0]], [scales[1]]) if scales else None
    job = _Products(k, [stationary], [moving], {(0, 0): result}, False, both, 1.0, {}, None)
    slots = tuple(len(job.slots[side].tiles) for side in "sv")
    chunks = tuple(job.slots[side].tiles[0].columns for side in "sv")
    return Layout(
        keeps=job.plan.keeps,
        block=job.plan.block,
        slots=None if job.plan.keeps == "both" else (slots[0], slots[1]),
        chunk_columns=(chunks[0], chunks[1]),
        tile_columns=(job.s_width, chunks[1]),
        out_slots=len(job.out),
    )


def products(
    k: Kernel,
    stationary: Sequence[HbmView],
    moving: Sequence[HbmView],
    results: Mapping[tuple[int, int], HbmView],
    *,
    resident: bool = False,
    scales: tuple[Sequence[HbmView], Sequence[HbmView]] | None = None,
    factor: float = 1.0,
    rounding: Mapping[str, Any] | None = None,
    sparse: Sparse | None = None,
    loop: bool = False,
) -> int:
    """results[s, v] = factor * stationary[s]^T moving[v] for all pairs, from [K, S] and [K, V] to [S, V].

    With packed formats K counts groups, what a row takes at once. `scales`: those of both sides, [MX blocks, S] and
    [MX blocks, V], for _x4 formats. `sparse`: the stationary operands are kept numbers, K counts rows of them.
    `loop`: the program remembers the turns, to be rolled up; the first chunk is not cut, so that more are alike.
    `rounding`: arguments of k.tensor.matmul that round each K tile's sum in PSUM.
    Returns the bytes that both sides take of an SBUF partition.
    Errors: KernelError, among others if `resident` and the operands do not fit in SBUF.
    """
    job = _Products(k, stationary, moving, results, resident, scales, factor, dict(rounding or {}), sparse, loop)
    job.emit()
    return job.operand_bytes
