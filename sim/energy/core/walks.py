"""How often walking an operand or a row of a copy asks for another word of SBUF, as the hardware does."""

from functools import lru_cache

import numpy as np

from firmware.program import Descriptor
from rtl.contract.access_pattern import AccessPattern

__all__ = ["UNIT_BYTES", "WORD_BYTES", "quadrants_of", "row_units", "words_walked"]

WORD_BYTES = 8
"""Of a partition, that a port gives at once."""
UNIT_BYTES = 16
"""Of a partition, that a mover takes at once: two words, of neighbouring banks."""
QUADRANTS = 4

_Steps = tuple[tuple[int, int], ...]


@lru_cache(maxsize=4096)
def _walked(first: int, dims: _Steps, size: int) -> int:
    at = np.full(1, first, np.int64)
    for step, count in dims:
        at = (np.arange(count, dtype=np.int64)[:, None] * (step * size) + at[None, :]).reshape(-1)
    words = at // WORD_BYTES
    return 1 + int(np.count_nonzero(words[1:] != words[:-1]))


def words_walked(pattern: AccessPattern, size: int) -> int:
    """Words of each partition that are read for the elements of a pattern, of `size` bytes, one after the other: a word
    that holds the next element as well is not read again."""
    return _walked(pattern.offset % WORD_BYTES, pattern.dims, size)


def quadrants_of(pattern: AccessPattern, partitions: int) -> int:
    """Quarters of all partitions in which a pattern has some."""
    share = partitions // QUADRANTS
    return (pattern.partition_start + pattern.partition_count - 1) // share - pattern.partition_start // share + 1


@lru_cache(maxsize=4096)
def _units(first: int, row_bytes: int, dims: _Steps) -> int:
    at = np.full(1, first, np.int64)
    for step, count in dims:
        at = (np.arange(count, dtype=np.int64)[:, None] * step + at[None, :]).reshape(-1) % UNIT_BYTES
    return int(((at + row_bytes - 1) // UNIT_BYTES + 1).sum())


def row_units(copy: Descriptor, *, source: bool) -> int:
    """Units of UNIT_BYTES that the rows of a descriptor touch at one end."""
    place = copy.source if source else copy.destination
    dims = tuple((from_ if source else to, count) for count, from_, to in copy.dims)
    return _units(place.offset % UNIT_BYTES, copy.row_bytes, dims)
