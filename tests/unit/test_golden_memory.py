"""The memory model against plain loops over a bytearray."""

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import FORMATS
from rtl.contract.memmap import Space
from verif.golden.memory import Memory, offsets

PARTITIONS = 8
PARTITION_BYTES = 256
LETTERS = {1: "B", 2: "H", 4: "I"}


@st.composite
def patterns(draw) -> AccessPattern:
    """Patterns whose elements all lie in the partition, negative steps and repeats included."""
    fmt = FORMATS[draw(st.sampled_from(["fp32", "bf16", "fp16", "uint8"]))]
    dims = draw(st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 4)), min_size=1, max_size=4))
    low = sum(min(0, step * (count - 1)) for step, count in dims) * fmt.bytes
    high = sum(max(0, step * (count - 1)) for step, count in dims) * fmt.bytes
    first = draw(st.integers(0, (PARTITION_BYTES - fmt.bytes - (high - low)) // fmt.bytes)) * fmt.bytes
    start = draw(st.integers(0, PARTITIONS - 1))
    return AccessPattern(
        space=Space.SBUF,
        dtype=fmt.code,
        partition_start=start,
        partition_count=draw(st.integers(1, PARTITIONS - start)),
        offset=first - low,
        dims=tuple(dims),
    )


def plain_offsets(pattern: AccessPattern, size: int) -> list[int]:
    """The definition, word for word: the last dimension is outermost."""
    ranges = [range(count) for _, count in reversed(pattern.dims)]
    steps = [step for step, _ in reversed(pattern.dims)]
    return [
        pattern.offset + sum(i * s for i, s in zip(index, steps, strict=True)) * size
        for index in itertools.product(*ranges)
    ]


@settings(deadline=None, max_examples=200, database=None)
@given(pattern=patterns(), seed=st.integers(0, 2**32 - 1))
def test_reads_and_writes_as_plain_loops_do(pattern: AccessPattern, seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = Memory(PARTITIONS, PARTITION_BYTES)
    memory.bytes[:] = rng.integers(0, 256, memory.bytes.shape, dtype=np.uint8)
    plain = [bytearray(row.tobytes()) for row in memory.bytes]
    letter = "<" + LETTERS[next(f.bytes for f in FORMATS.values() if f.code == pattern.dtype)]
    where = plain_offsets(pattern, struct.calcsize(letter))
    assert offsets(pattern).tolist() == where

    rows = range(pattern.partition_start, pattern.partition_start + pattern.partition_count)
    expected = [[struct.unpack_from(letter, plain[p], at)[0] for at in where] for p in rows]
    assert memory.read(pattern).tolist() == expected

    values = rng.integers(0, 1 << 8 * struct.calcsize(letter), (len(rows), len(where)))
    memory.write(pattern, values.astype(memory.read(pattern).dtype))
    for p, row in zip(rows, values.tolist(), strict=True):
        for at, value in zip(where, row, strict=True):
            struct.pack_into(letter, plain[p], at, value)
    assert [row.tobytes() for row in memory.bytes] == [bytes(row) for row in plain]


def simple(**changes) -> AccessPattern:
    given = {"space": Space.SBUF, "dtype": FORMATS["fp32"].code, "partition_start": 0, "partition_count": 1}
    return AccessPattern(**{**given, "offset": 0, "dims": ((1, 1),), **changes})


def test_starts_as_nan_in_every_format() -> None:
    memory = Memory(2, 16)
    assert np.isnan(memory.read(simple(dims=((1, 4),), partition_count=2)).view(np.float32)).all()


@pytest.mark.parametrize(
    "changes", [{"offset": 16}, {"offset": -4}, {"dims": ((-1, 2),)}, {"partition_start": 2}, {"partition_count": 3}]
)
def test_refuses_what_leaves_the_memory(changes) -> None:
    memory = Memory(2, 16)
    with pytest.raises(IndexError, match="leave"):
        memory.read(simple(**changes))


def test_refuses_values_of_another_width() -> None:
    with pytest.raises(ValueError, match="holds"):
        Memory(2, 16).write(simple(), np.zeros((1, 1), dtype=np.uint16))
