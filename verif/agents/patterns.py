"""Random access patterns that obey the rules, and instructions as words."""

from collections.abc import Mapping

import numpy as np

from rtl.base.dispatch import COMMAND, SEQUENCE_BITS
from rtl.contract import formats
from rtl.contract.isa import INSTRUCTION, AccessPattern, Opcode, start_partition_rule

__all__ = ["command_word", "contiguous", "random_partitions", "random_pattern"]


def random_partitions(rng: np.random.Generator, partitions: int, most: int | None = None) -> tuple[int, int]:
    """A legal (start, count) of at most `most` partitions."""
    while True:
        count = int(rng.integers(1, (most or partitions) + 1))
        start = int(rng.integers(0, 4)) * (partitions // 4)
        if start_partition_rule(start, count, partitions) and start + count <= partitions:
            return start, count


def _factors(rng: np.random.Generator, elements: int) -> list[int]:
    """One to four counts whose product is `elements`, in random order."""
    counts = [elements]
    while len(counts) < 4 and rng.random() < 0.6:
        whole = counts.pop(int(rng.integers(len(counts))))
        parts = [n for n in range(1, whole + 1) if whole % n == 0]
        one = int(rng.choice(parts))
        counts += [one, whole // one]
    rng.shuffle(counts)
    return [int(c) for c in counts]


def random_pattern(
    rng: np.random.Generator,
    *,
    space: int,
    dtype: str,
    partitions: tuple[int, int],
    elements: int,
    partition_bytes: int,
    ascending: bool = False,
) -> AccessPattern:
    """`elements` elements somewhere in the partition.

    ascending: no element twice and addresses that only grow, as a matmul's destination needs them.
    """
    fmt = formats.FORMATS[dtype]
    room = partition_bytes // fmt.bytes
    for _ in range(1000):
        dims: list[tuple[int, int]] = []
        span = 1  # elements that the finer dimensions reach over
        for count in _factors(rng, elements):
            if ascending:
                step = span + int(rng.integers(0, 3)) if rng.random() < 0.3 else span
            elif rng.random() < 0.4:
                step = span
            else:
                step = int(rng.integers(-9, 10))
            dims.append((step, count))
            span = max(span, abs(step) * count)
        low = sum(min(0, s * (c - 1)) for s, c in dims)
        high = sum(max(0, s * (c - 1)) for s, c in dims)
        if high - low < room:
            at = int(rng.integers(-low, room - high))
            return AccessPattern(
                space=space,
                dtype=fmt.code,
                partition_start=partitions[0],
                partition_count=partitions[1],
                offset=at * fmt.bytes,
                dims=tuple(dims),
            )
    raise ValueError(f"no pattern of {elements} {dtype} elements found in {partition_bytes} bytes")


def contiguous(
    *, space: int, dtype: str, partitions: tuple[int, int], elements: int, offset: int = 0, step: int = 1
) -> AccessPattern:
    """`elements` elements from byte `offset`, `step` elements apart."""
    return AccessPattern(
        space=space,
        dtype=formats.FORMATS[dtype].code,
        partition_start=partitions[0],
        partition_count=partitions[1],
        offset=offset,
        dims=((step, elements),),
    )


def command_word(
    opcode: Opcode,
    sequence: int,
    *,
    src0: AccessPattern,
    dst: AccessPattern | None = None,
    fields: Mapping[str, int] | None = None,
) -> int:
    """dispatch.COMMAND as an integer."""
    values = {"opcode": int(opcode), **(fields or {})}
    for name, pattern in (("src0", src0), ("dst", dst)):
        if pattern is not None:
            values |= {f"{name}_{k}": v for k, v in pattern.fields().items()}
    word = INSTRUCTION.pack(values)
    assert COMMAND.size == INSTRUCTION.width + SEQUENCE_BITS
    return word | (sequence % (1 << SEQUENCE_BITS)) << INSTRUCTION.width
