"""What is written to PSUM: rows and words, what they leave in it, and random ones of all kinds of numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import CANONICAL_NAN_FP32
from verif.golden.memory import Memory

__all__ = ["Row", "Store", "added", "canonical", "contents", "random_data", "random_row", "random_store"]


@dataclass
class Row:
    """A row that the writer sends."""

    element: int
    accumulate: bool
    partitions: int
    data: NDArray[np.uint32]  # (P,)
    rounding: int = 0
    random: int = 0


@dataclass
class Store:
    """A word that an engine writes."""

    word: int
    halves: int  # mask of its elements
    partitions: int
    data: NDArray[np.uint32]  # (P, 2)


_contents: dict[tuple[int, int], NDArray[np.uint32]] = {}


def contents(partitions: int, elements: int) -> NDArray[np.uint32]:
    """The model of the memory, (elements, P); one for all tests, because a reset leaves the contents."""
    key = (partitions, elements)
    if key not in _contents:
        memory = Memory(partitions, 4 * elements)
        _contents[key] = np.ascontiguousarray(memory.bytes.view(np.uint32).T)
    return _contents[key]


def added(old: NDArray[np.uint32], new: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """FP32 sums with the canonical NaN."""
    with np.errstate(all="ignore"):
        total = old.view(np.float32) + new.view(np.float32)
    return np.where(np.isnan(total), np.uint32(CANONICAL_NAN_FP32), total.view(np.uint32)).astype(np.uint32)


def canonical(new: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """What an overwritten row holds."""
    return np.where(np.isnan(new.view(np.float32)), np.uint32(CANONICAL_NAN_FP32), new).astype(np.uint32)


def random_data(rng: np.random.Generator, lanes: int) -> NDArray[np.uint32]:
    """Codes of all kinds, more special ones than chance would give."""
    codes = rng.integers(0, 1 << 32, lanes, dtype=np.uint32)
    near = rng.integers(0x3F00_0000, 0x4100_0000, lanes, dtype=np.uint32) | codes & 0x8000_0000
    corners = rng.choice(
        np.array(
            [
                0,
                0x8000_0000,
                1,
                0x8000_0001,
                0x007F_FFFF,
                0x0080_0000,
                0x7F7F_FFFF,
                0x7F80_0000,
                0xFF80_0000,
                0x7FC0_0000,
                0x7F80_0001,
                0xFFFF_FFFF,
                0x7F00_0000,
                0xFF7F_FFFF,
            ],
            dtype=np.uint32,
        ),
        lanes,
    )
    kind = rng.integers(4, size=lanes)
    tiny = codes & 0x80FF_FFFF
    return np.choose(kind, [codes, near, corners, tiny]).astype(np.uint32)


def random_store(rng: np.random.Generator, lanes: int, words: NDArray[np.integer]) -> Store:
    """Any of `words`, any of its elements."""
    every = (1 << lanes) - 1
    return Store(
        word=int(rng.choice(words)),
        halves=int(rng.integers(1, 4)),
        partitions=every if rng.random() < 0.6 else int(rng.integers(every, endpoint=True)),
        data=np.stack([random_data(rng, lanes), random_data(rng, lanes)], axis=1),
    )


def random_row(rng: np.random.Generator, lanes: int, elements: list[int], accumulate: float) -> Row:
    """A row of one of `elements`, added with this probability."""
    every = (1 << lanes) - 1
    return Row(
        element=int(rng.choice(elements)),
        accumulate=bool(rng.random() < accumulate),
        partitions=every if rng.random() < 0.7 else int(rng.integers(every, endpoint=True)),
        data=random_data(rng, lanes),
        rounding=int(rng.choice([0, 0, 1, 2])),
        random=int(rng.integers(1 << 32)),
    )
