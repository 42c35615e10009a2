"""Random access patterns of instruction words."""

import numpy as np

from rtl.contract.config import Config
from rtl.contract.memmap import Space

__all__ = ["BYTES", "Fields", "dims_of", "pattern"]

Fields = dict[str, int]
BYTES = {0: 4, 1: 2, 2: 2, 3: 4, 4: 1, 5: 1, 6: 1, 9: 1, 10: 2, 11: 4, 12: 1, 13: 2, 14: 4, 8: 1}
"""Of an element, by dtype code."""


def dims_of(rng: np.random.Generator, elements: int) -> list[int]:
    """Four counts whose product is `elements`."""
    counts = [1, 1, 1, 1]
    rest, factor = elements, 2
    while rest > 1:
        while rest % factor:
            factor += 1
        counts[int(rng.integers(4))] *= factor
        rest //= factor
    return counts


def _start(rng: np.random.Generator, count: int, partitions: int) -> int:
    quarter = partitions // 4
    if count <= quarter:
        return int(rng.integers(4)) * quarter
    return int(rng.integers(2)) * 2 * quarter if count <= 2 * quarter else 0


def pattern(
    rng: np.random.Generator, cfg: Config, space: int, dtype: int, parts: int, counts: list[int], ascending: bool,
    gaps: bool = True, size: int = 0,
) -> Fields:  # fmt: skip
    """Fields of a legal pattern of these counts, anywhere in the memory, often at one of its ends. `size`: bytes of
    an element, if they are not those of its format."""
    size = size or BYTES[dtype]
    room = (cfg.sbuf.partition_bytes if space == Space.SBUF else cfg.psum.partition_bytes) // size
    f: Fields = {"space": space, "dtype": dtype, "partition_count": parts}
    f["partition_start"] = _start(rng, parts, cfg.partitions)
    inner = 1
    budget = room - 1
    low = high = 0
    for i, count in enumerate(counts):
        if count == 1:
            step = int(rng.integers(-1 << 15, 1 << 15))  # of no meaning
        elif ascending:
            step = inner + (int(rng.integers(0, 4)) if gaps else 0)
            inner = step * count
        else:
            most = max(0, budget) // (count - 1) // 2
            step = int(rng.integers(-min(most, 50), min(most, 50) + 1))
        end = step * (count - 1)
        budget -= abs(end)
        low += min(end, 0)
        high += max(end, 0)
        f[f"step{i}"], f[f"count{i}"] = step, count
    slack = room - 1 - high + low
    if slack < 0:
        return pattern(rng, cfg, space, dtype, parts, counts, ascending, gaps=False, size=size)
    kind = rng.random()
    at = 0 if kind < 0.2 else slack if kind < 0.4 else int(rng.integers(0, slack + 1))
    f["offset"] = (at - low) * size
    return f
