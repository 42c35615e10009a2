"""How a matrix product is cut: tiles of the result, chunks that are loaded, what stays in SBUF.

One side is stationary (its columns become PSUM partitions), the other moves (its columns become the
free axis of PSUM). A chunk is what one descriptor loads: the rows of one K tile, some columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from firmware.numbers import element_bytes
from rtl.contract.config import Config
from rtl.contract.timing import MATMUL_MIN_CYCLES

__all__ = [
    "Chunk",
    "Plan",
    "RESULT_SLOTS_MIN",
    "Span",
    "even_spans",
    "group_spans",
    "k_tiles",
    "make_plan",
    "moving_cost",
    "moving_width",
]

ROW_BYTES = 512  # rows shorter than this use HBM badly
ALIGNMENT_COLUMNS = 8
RESULT_SLOTS_MIN = 2


@dataclass(frozen=True, slots=True)
class Span:
    """Columns `start` to `start + size` of the operand `source`."""

    source: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Columns of one operand on one K tile: what a slot holds."""

    side: str
    source: int
    k: int
    start: int
    size: int


def even_spans(source: int, total: int, limit: int) -> list[Span]:
    """`total` columns in the fewest spans of at most `limit`, as equal as multiples of 8 allow."""
    count = -(-total // limit)
    width = -(-total // count)
    width = min(limit, -(-width // ALIGNMENT_COLUMNS) * ALIGNMENT_COLUMNS)
    return [Span(source, at, min(width, total - at)) for at in range(0, total, width)]


def k_tiles(depth: int, rows: int) -> list[tuple[int, int]]:
    return [(at, min(rows, depth - at)) for at in range(0, depth, rows)]


def moving_width(cfg: Config) -> int:
    """Most columns of one result tile: at least two tiles must fit in PSUM."""
    return min(cfg.tensor.moving_max, cfg.psum.partition_bytes // 4 // RESULT_SLOTS_MIN)


def moving_cost(cfg: Config, depth: int, stationary: Sequence[int], moving: Sequence[int]) -> tuple[int, int, int]:
    """(cycles of the busiest engine, of all, tiles) for operands of these widths: what to minimise."""
    tensor = vector = store = tiles = 0
    lanes = cfg.partitions // cfg.dma.engines
    # Two instructions a tile come from HBM, queue_depth of them in a latency.
    fetched = 2 * cfg.latency_cycles // cfg.issue.queue_depth
    for s_width, v_width in product(stationary, moving):
        for s in even_spans(0, s_width, cfg.tensor.cols):
            for v in even_spans(0, v_width, moving_width(cfg)):
                # A load hides behind a stream of its own length.
                tensor += max(v.size, s.size, fetched, MATMUL_MIN_CYCLES)
                vector += v.size
                # A mover stores 16 bytes, 4 sums, a cycle; those whose partitions are not used stand still.
                store += -(-s.size * v.size // (4 * -(-s.size // lanes)))
                tiles += 1
    tensor *= -(-depth // cfg.tensor.rows)
    vector = vector * cfg.tensor.clock_mhz // cfg.vector.clock_mhz
    return max(tensor, vector, store), tensor + vector + store, tiles


def group_spans(cfg: Config, spans: Sequence[Span], dtype: str) -> list[list[Span]]:
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
class Plan:
    """Order of the result tiles, and slots of each side.

    keeps: which side stays in SBUF, "both", "stationary", "moving" or "none"; block: so many chunks along its columns.
    """

    order: list[tuple[Span, Span]]
    stationary_slots: int
    moving_slots: int
    keeps: str
    block: int


def make_plan(groups: list[list[Span]], moving: list[Span], tiles: int, slot_bytes: tuple[int, int], room: int) -> Plan:
    """The order and the slots that read least from HBM.

    A block of one side stays in SBUF while the other side passes by; the fewer blocks, the less is read.
    """
    s_bytes, v_bytes = slot_bytes
    s_total, v_total = tiles * len(groups), tiles * len(moving)
    if s_total * s_bytes + v_total * v_bytes <= room:
        return Plan([(s, v) for v in moving for g in groups for s in g], s_total, v_total, "both", 0)
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
    best: tuple[tuple[int, int], Plan] | None = None
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
            of_sides = slots if keeps_stationary else (slots[1], slots[0])
            key = (read, -pass_slots)
            if best is None or key < best[0]:
                best = (key, Plan(order, *of_sides, "stationary" if keeps_stationary else "moving", block))
    if best is not None:
        return best[1]
    # K is so long that not even one panel fits: both sides pass by, for every result tile again.
    s_slots = max(2, min(s_total, room // 2 // s_bytes))
    v_slots = max(2, min(v_total, (room - s_slots * s_bytes) // v_bytes))
    return Plan([(s, v) for v in moving for g in groups for s in g], s_slots, v_slots, "none", 0)
