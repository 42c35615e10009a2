"""Golden model of sparse operands: kept numbers with their tags, and the numbers that rows of a bus share.

Written from docs/numerics.md; shares encodings with the hardware, no code and no table.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import FORMATS
from verif.golden.groups import kept_of, moving_bytes_of, ratio_of
from verif.golden.memory import Memory

__all__ = ["BUS_ROWS", "moving_numbers", "slots_of", "tags_of", "tags_stand"]

BUS_ROWS = 4
"""Aligned rows whose numbers a slot chooses from, four of each."""

U16 = NDArray[np.uint16]
U8 = NDArray[np.uint8]


def moving_numbers(sbuf: Memory, pattern: AccessPattern, sparsity: int) -> U16:
    """Bits of the moving numbers [K, N, 4], first k first; 0 where a row brings fewer than four."""
    words = moving_bytes_of(sparsity) // 4
    halves = tuple((words * step, count) for step, count in pattern.dims)
    raw = sbuf.read(replace(pattern, dtype=FORMATS["uint32"].code, dims=((1, words), *halves)))
    numbers = np.ascontiguousarray(raw).view("<u2").reshape(len(raw), pattern.elements, 2 * words)
    found = np.zeros((*numbers.shape[:2], 4), np.uint16)
    ratio = ratio_of(sparsity)
    found[..., :ratio] = numbers[..., :ratio]
    return found


def tags_of(sbuf: Memory, pattern: AccessPattern, columns: int) -> U8:
    """Tags [K, columns] of a stationary operand; `pattern` has four columns an element, the first one lowest."""
    packed = sbuf.read(pattern).astype(np.uint32)
    every = packed[..., None] >> (4 * np.arange(4, dtype=np.uint32)) & 15
    return every.reshape(len(packed), -1)[:, :columns].astype(np.uint8)


def tags_stand(tags: U8, sparsity: int) -> bool:
    """Whether the tags of every bus and column ascend and are below the group."""
    kept, group = kept_of(sparsity), kept_of(sparsity) * ratio_of(sparsity)
    buses = tags.reshape(-1, kept, tags.shape[1]).astype(np.int64)
    return bool(np.all(np.diff(buses, axis=1) > 0) and np.all(buses < group))


def slots_of(tags: U8, first_row: int, sparsity: int) -> U8:
    """Place of each tag's number among the 16 of the four aligned rows that its row is one of."""
    kept, ratio = kept_of(sparsity), ratio_of(sparsity)
    rows = first_row + np.arange(len(tags))
    bus = (rows - rows % kept)[:, None]  # row that brings the first numbers of the group
    place = bus + tags // ratio - (rows - rows % BUS_ROWS)[:, None]
    return (4 * place + tags % ratio).astype(np.uint8)
