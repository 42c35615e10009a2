"""How long tiles of SBUF and PSUM hold something: from the first write to the last read before the next write."""

import numpy as np

from sim.trace.recorded import NEVER, Recorded

__all__ = ["HELD", "bytes_held", "held"]

HELD = np.dtype([("begin", "<i8"), ("end", "<i8"), ("tile", "<i4")])


def _spans(recorded: Recorded) -> tuple[np.ndarray, np.ndarray]:
    """From when to when each access may touch its tile; what has not ended lasts as long as the run."""
    by_item = recorded.access_item != NEVER
    item, copy = recorded.access_item, recorded.access_copy
    begin = np.where(by_item, np.append(recorded.item_issue, NEVER)[item], np.append(recorded.copy_begin, NEVER)[copy])
    end = np.where(by_item, np.append(recorded.item_retire, NEVER)[item], np.append(recorded.copy_end, NEVER)[copy])
    return begin, np.where((end == NEVER) & (begin != NEVER), recorded.cycles, end)


def held(recorded: Recorded) -> np.ndarray:
    """HELD intervals, tile by tile. A write behind a read begins a new one; what is written and not read is held until
    its write has ended."""
    begins, ends = _spans(recorded)
    order = np.lexsort((begins, recorded.access_tile))
    order = order[begins[order] != NEVER]
    columns = (recorded.access_tile[order], begins[order], ends[order], recorded.access_writes[order])
    found: list[tuple[int, int, int]] = []
    first = last = read = of = NEVER
    for tile, begin, end, writes in zip(*(column.tolist() for column in columns), strict=True):
        if tile != of or (writes and (first == NEVER or (read != NEVER and begin >= read))):
            if first != NEVER:
                found.append((first, last, of))
            # read before anything was written: what was there before the run
            first, last, read, of = (begin, end, NEVER, tile) if writes else (NEVER, NEVER, NEVER, tile)
        elif first != NEVER:
            last = max(last, end)
            if not writes:
                read = max(read, end)
    if first != NEVER:
        found.append((first, last, of))
    return np.array(found, HELD)


def bytes_held(recorded: Recorded, space: int) -> tuple[np.ndarray, np.ndarray]:
    """(cycles, bytes): from each cycle on so many bytes of a memory are held, over all partitions."""
    spans = held(recorded)
    spans = spans[recorded.tile_space[spans["tile"]] == space]
    size = recorded.tile_bytes[spans["tile"]].astype(np.int64) * recorded.tile_partitions[spans["tile"]]
    cycles = np.concatenate([spans["begin"], spans["end"]])
    order = np.argsort(cycles, kind="stable")
    level = np.cumsum(np.concatenate([size, -size])[order])
    last = np.append(np.diff(cycles[order]) > 0, True) if len(cycles) else np.zeros(0, bool)
    return cycles[order][last], level[last]
