"""Matrix products of any size: which operand moves, what stays in SBUF, in which order all is read.

One side is stationary (its columns become PSUM partitions), the other moves (its columns become the
free axis of PSUM). Both lie K-major in HBM. A chunk is what one descriptor loads: K rows of the array
times some columns. Chunks live in slots of SBUF; a chunk that must make room is the one that is needed
again last, and loads run as far ahead of the array as slots allow.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product

from firmware.kernel import HbmView, Kernel, KernelError, Tile, TileView
from firmware.numbers import element_bytes
from rtl.contract.config import Config
from rtl.contract.timing import MATMUL_MIN_CYCLES

__all__ = ["Span", "even_spans", "moving_cost", "moving_width", "products"]

PIECE_COLUMNS = 128  # the last result leaves PSUM in pieces of this width, so that its copies overlap
ROW_BYTES = 512  # rows shorter than this use HBM badly
ALIGNMENT_COLUMNS = 8
OUT_SLOTS = 4
NEVER = 1 << 62  # the step of a use that does not come
RESULT_SLOTS_MIN = 2


@dataclass(frozen=True, slots=True)
class Span:
    """Columns `start` to `start + size` of the operand `source`."""

    source: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Columns of one operand on one K tile: what a slot holds."""

    side: str
    source: int
    k: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class _Step:
    """One matmul: which tile of the result, which K tile, and the chunks it needs."""

    s: Span
    v: Span
    k: int
    stationary: _Chunk
    moving: _Chunk


def even_spans(source: int, total: int, limit: int) -> list[Span]:
    """`total` columns in the fewest spans of at most `limit`, as equal as multiples of 8 allow."""
    count = -(-total // limit)
    width = -(-total // count)
    width = min(limit, -(-width // ALIGNMENT_COLUMNS) * ALIGNMENT_COLUMNS)
    return [Span(source, at, min(width, total - at)) for at in range(0, total, width)]


def _k_tiles(depth: int, rows: int) -> list[tuple[int, int]]:
    return [(at, min(rows, depth - at)) for at in range(0, depth, rows)]


def moving_width(cfg: Config) -> int:
    """Most columns of one result tile: at least two tiles must fit in PSUM."""
    return min(cfg.tensor.moving_max, cfg.psum.partition_bytes // 4 // RESULT_SLOTS_MIN)


def moving_cost(
    cfg: Config, depth: int, stationary: Sequence[int], moving: Sequence[int]
) -> tuple[int, int, int]:
    """(cycles of the busier engine, of both, tiles) if operands of these widths are stationary and moving."""
    tensor = vector = tiles = 0
    # Two instructions a tile come from HBM, queue_depth of them in a latency.
    fetched = 2 * cfg.latency_cycles // cfg.issue.queue_depth
    for s_width, v_width in product(stationary, moving):
        for s in even_spans(0, s_width, cfg.tensor.cols):
            for v in even_spans(0, v_width, moving_width(cfg)):
                # A load hides behind a stream of its own length.
                tensor += max(v.size, s.size, fetched, MATMUL_MIN_CYCLES)
                vector += v.size
                tiles += 1
    tensor *= -(-depth // cfg.tensor.rows)
    vector = vector * cfg.tensor.clock_mhz // cfg.vector.clock_mhz
    return max(tensor, vector), tensor + vector, tiles


class _Slots:
    """Slots of one side. What leaves is the chunk that is needed last (or no more), oldest use first."""

    def __init__(self, k: Kernel, name: str, count: int, columns: int, dtype: str):
        rows = k.cfg.tensor.rows
        self.tiles: list[Tile] = [
            k.sbuf(f"{name}{i}", partitions=rows, columns=columns, dtype=dtype) for i in range(count)
        ]
        self.where: dict[_Chunk, int] = {}
        self._free = list(range(count))
        self._next_use: dict[_Chunk, int] = {}
        self._leaving: list[tuple[int, int, int, _Chunk]] = []  # heap; entries may be out of date
        self._pushed = 0

    def used(self, chunk: _Chunk, step: int, uses: Sequence[int]) -> None:
        """`chunk` was used at `step`; `uses` are all steps that need it."""
        index = bisect_right(uses, step)
        self._push(chunk, uses[index] if index < len(uses) else NEVER, step)

    def place(self, chunk: _Chunk, step: int) -> Tile | None:
        """A slot for `chunk`, needed at `step`, if no chunk needed before then has to leave."""
        if not self._free:
            while self._leaving:
                following, _, _, other = self._leaving[0]
                if other in self.where and self._next_use[other] == -following:
                    break
                heappop(self._leaving)
            if not self._leaving or -self._leaving[0][0] <= step:
                return None
            self._free.append(self.where.pop(heappop(self._leaving)[3]))
        slot = self._free.pop(0)
        self.where[chunk] = slot
        self._push(chunk, step, -1)
        return self.tiles[slot]

    def _push(self, chunk: _Chunk, following: int, last: int) -> None:
        self._next_use[chunk] = following
        self._pushed += 1
        heappush(self._leaving, (-following, last, self._pushed, chunk))


def _groups(cfg: Config, spans: Sequence[Span], dtype: str) -> list[list[Span]]:
    """Neighbouring stationary spans that are loaded together, so that rows are long enough."""
    per_group = max(1, ROW_BYTES // (cfg.tensor.cols * element_bytes(dtype)))
    groups: list[list[Span]] = []
    for span in spans:
        if groups and len(groups[-1]) < per_group and groups[-1][0].source == span.source:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


@dataclass(frozen=True, slots=True)
class _Plan:
    """Order of the result tiles, and slots of each side."""

    order: list[tuple[Span, Span]]
    stationary_slots: int
    moving_slots: int


def _plan(
    groups: list[list[Span]], moving: list[Span], tiles: int, slot_bytes: tuple[int, int], room: int
) -> _Plan:
    """The order and the slots that read least from HBM.

    A block of one side stays in SBUF while the other side passes by; the fewer blocks, the less is read.
    """
    s_bytes, v_bytes = slot_bytes
    s_total, v_total = tiles * len(groups), tiles * len(moving)
    if s_total * s_bytes + v_total * v_bytes <= room:
        return _Plan([(s, v) for v in moving for g in groups for s in g], s_total, v_total)
    spans = sum(len(g) for g in groups)
    # Stays and passes: panels (all K tiles of a chunk), result tiles across, bytes of a chunk.
    sides = (
        (True, len(groups), spans, s_bytes, len(moving), v_bytes),
        (
            False,
            len(moving),
            len(moving),
            v_bytes,
            len(groups),
            s_bytes,
        ),
    )
    best: tuple[tuple[int, int], _Plan] | None = None
    for keeps_stationary, stays, across, stay_bytes, passes, pass_bytes in sides:
        # The side that passes has two panels in SBUF, or one, or only the chunks around the array.
        for pass_slots in sorted({min(n, passes * tiles) for n in (2 * tiles, tiles, 4, 2)}, reverse=True):
            block = min(stays, (room - pass_slots * pass_bytes) // (stay_bytes * tiles))
            if block < 1:
                continue
            again = -(-stays // block) if pass_slots >= tiles else across
            read = stays * tiles * stay_bytes + again * passes * tiles * pass_bytes
            spare = room - block * tiles * stay_bytes
            slots = block * tiles, min(passes * tiles, spare // pass_bytes)
            order: list[tuple[Span, Span]] = []
            for at in range(0, stays, block):
                if keeps_stationary:
                    order += [(s, v) for v in moving for g in groups[at : at + block] for s in g]
                else:
                    order += [(s, v) for g in groups for s in g for v in moving[at : at + block]]
            key = (read, -pass_slots)
            if best is None or key < best[0]:
                best = (key, _Plan(order, *(slots if keeps_stationary else slots[::-1])))
    if best is not None:
        return best[1]
    # K is so long that not even one panel fits: both sides pass by, for every result tile again.
    s_slots = max(2, min(s_total, room // 2 // s_bytes))
    v_slots = max(2, min(v_total, (room - s_slots * s_bytes) // v_bytes))
    return _Plan([(s, v) for v in moving for g in groups for s in g], s_slots, v_slots)


def _steps(plan: _Plan, groups: list[list[Span]], tiles: int) -> list[_Step]:
    home = {s: g for g in groups for s in g}
    steps: list[_Step] = []
    for s, v in plan.order:
        group = home[s]
        first, last = group[0], group[-1]
        for k in range(tiles):
            stationary = _Chunk("s", s.source, k, first.start, last.start + last.size - first.start)
            steps.append(_Step(s, v, k, stationary, _Chunk("v", v.source, k, v.start, v.size)))
    return steps


def products(
    k: Kernel,
    stationary: Sequence[HbmView],
    moving: Sequence[HbmView],
    results: Mapping[tuple[int, int], HbmView],
    *,
    resident: bool = False,
) -> int:
    """results[s, v] = stationary[s]^T moving[v] for all pairs, from [K, S] and [K, V] to [S, V].

    Returns the bytes that both sides take of an SBUF partition.
    Errors: KernelError, among others if `resident` and the operands do not fit in SBUF.
    """
    cfg = k.cfg
    depth, dtype = stationary[0].shape[0], stationary[0].dtype
    out_dtype = next(iter(results.values())).dtype
    k_tiles = _k_tiles(depth, cfg.tensor.rows)
    s_spans = [s for i, view in enumerate(stationary) for s in even_spans(i, view.shape[1], cfg.tensor.cols)]
    v_spans = [v for i, view in enumerate(moving) for v in even_spans(i, view.shape[1], moving_width(cfg))]
    width = max(v.size for v in v_spans)
    out = [
        k.sbuf(f"out{i}", partitions=cfg.tensor.cols, columns=width, dtype=out_dtype)
        for i in range(min(OUT_SLOTS, len(s_spans) * len(v_spans)))
    ]
    bank = cfg.psum.bank_bytes
    psum_bytes = -(-width * 4 // bank) * bank
    if RESULT_SLOTS_MIN * psum_bytes > cfg.psum.partition_bytes:
        psum_bytes = width * 4
    psum_slots = min(cfg.psum.partition_bytes // psum_bytes, len(s_spans) * len(v_spans))
    sums = [
        k.psum(f"sums{i}", partitions=cfg.tensor.cols, columns=width, align=psum_bytes)
        for i in range(psum_slots)
    ]

    def slot_bytes(columns: int) -> int:
        return -(-columns * element_bytes(dtype) // 16) * 16

    room = k.sbuf_free() - 16
    groups = _groups(cfg, s_spans, dtype)
    while (
        len(groups) < len(s_spans) and slot_bytes(len(groups[0]) * cfg.tensor.cols) * len(k_tiles) * 4 > room
    ):
        groups = [half for g in groups for half in (g[: len(g) // 2], g[len(g) // 2 :]) if half]
    s_columns = max(g[-1].start + g[-1].size - g[0].start for g in groups)
    s_bytes, v_bytes = slot_bytes(s_columns), slot_bytes(width)
    operands = len(k_tiles) * (len(groups) * s_bytes + len(v_spans) * v_bytes)
    if resident and operands > room:
        raise KernelError(
            f"resident operands need {operands} bytes of each SBUF partition, but only {room} are free; "
            f"run without resident or with a smaller m, k or n"
        )
    plan = _plan(groups, v_spans, len(k_tiles), (s_bytes, v_bytes), room)
    steps = _steps(plan, groups, len(k_tiles))
    slots = {
        "s": _Slots(k, "stationary", plan.stationary_slots, s_columns, dtype),
        "v": _Slots(k, "moving", plan.moving_slots, width, dtype),
    }
    views = {"s": stationary, "v": moving}
    uses: dict[_Chunk, list[int]] = {}
    for number, step in enumerate(steps):
        for chunk in (step.stationary, step.moving):
            uses.setdefault(chunk, []).append(number)
    needs = [(n, chunk) for n, step in enumerate(steps) for chunk in (step.stationary, step.moving)]

    def load(number: int, chunk: _Chunk) -> bool:
        """Have `chunk`, needed at step `number`, on its way; False if that has to wait."""
        side = slots[chunk.side]
        if chunk in side.where:
            return True
        tile = side.place(chunk, number)
        if tile is None:
            return False
        at, rows = k_tiles[chunk.k]
        source = views[chunk.side][chunk.source]
        k.dma(tile[:rows, : chunk.size], source[at : at + rows, chunk.start : chunk.start + chunk.size])
        return True

    def operand(chunk: _Chunk, start: int, size: int) -> TileView:
        side = slots[chunk.side]
        first = start - chunk.start
        return side.tiles[side.where[chunk]][: k_tiles[chunk.k][1], first : first + size]

    ahead = 0
    for number, step in enumerate(steps):
        while ahead < len(needs) and load(*needs[ahead]):
            ahead += 1
        if ahead < len(needs) and needs[ahead][0] <= number:
            raise KernelError(
                f"SBUF has no room for two chunks of each operand "
                f"({s_bytes} and {v_bytes} bytes of each partition)"
            )
        if resident and number == 0:
            k.tensor.barrier()
        tile = number // len(k_tiles)
        bank_tile = sums[tile % len(sums)][: step.s.size]
        last_pass = step.k == len(k_tiles) - 1
        k.tensor.load(operand(step.stationary, step.s.start, step.s.size))
        piece = PIECE_COLUMNS if last_pass and tile == len(plan.order) - 1 else step.v.size
        for at in range(0, step.v.size, piece):
            part = min(piece, step.v.size - at)
            columns = slice(at, at + part)
            k.tensor.matmul(
                operand(step.moving, step.v.start + at, part), bank_tile[:, columns], accumulate=step.k > 0
            )
            if last_pass:
                _leave(k, step, out[tile % len(out)], bank_tile, columns, results)
        for chunk in (step.stationary, step.moving):
            slots[chunk.side].used(chunk, number, uses[chunk])
    return operands


def _leave(
    k: Kernel,
    step: _Step,
    out: Tile,
    sums: TileView,
    columns: slice,
    results: Mapping[tuple[int, int], HbmView],
) -> None:
    """Columns of a finished result tile: PSUM to SBUF, converted, and on to HBM."""
    staged = out[: step.s.size, columns]
    k.vector.copy(staged, sums[:, columns])
    target = results[step.s.source, step.v.source]
    first = step.v.start + columns.start
    last = step.v.start + columns.stop
    k.dma(target[step.s.start : step.s.start + step.s.size, first:last], staged)
