"""Random access patterns that obey the rules, and instructions as words."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rtl.base.dispatch import COMMAND, SEQUENCE_BITS
from rtl.contract import formats
from rtl.contract.access_pattern import AccessPattern, start_partition_rule
from rtl.contract.config import Config
from rtl.contract.isa import INSTRUCTION, Opcode
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from verif.golden.groups import bytes_of, kept_of, moving_bytes_of, scale_format_of, scale_rows_of, scaled

__all__ = ["command_word", "contiguous", "random_columns", "random_partitions", "random_pattern"]

_CARRIER = {1: "uint8", 2: "uint16", 4: "uint32"}


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
    size: int = 0,
) -> AccessPattern:
    """`elements` elements somewhere in the partition.

    ascending: no element twice and addresses that only grow, as a matmul's destination needs them. size: bytes of an
    element, if not those of its format.
    """
    fmt = formats.FORMATS[dtype]
    size = size or fmt.bytes
    room = partition_bytes // size
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
                offset=at * size,
                dims=tuple(dims),
            )
    raise ValueError(f"no pattern of {elements} {dtype} elements found in {partition_bytes} bytes")


def random_columns(
    rng: np.random.Generator, cfg: Config, kind: int, dtype: int, columns: int, sparsity: int = 0, moving: bool = False
) -> tuple[AccessPattern, AccessPattern | None]:
    """An operand of the array of this kind and format, and its scales or tags if it has any.

    Of a sparse one: its pattern's code, and whether it is the moving side.
    """
    sparse = kind == Kind.SPARSE
    each = kept_of(sparsity) if sparse else scale_rows_of(kind)
    start, count = 1, 0
    while start % (4 if sparse else each) or count % each or not count:
        start, count = random_partitions(rng, cfg.partitions, cfg.tensor.rows)
    lying = random_pattern(
        rng, space=Space.SBUF, dtype=_CARRIER[bytes_of(kind, dtype)], partitions=(start, count), elements=columns,
        partition_bytes=cfg.sbuf.partition_bytes, size=moving_bytes_of(sparsity) if sparse and moving else 0,
    )  # fmt: skip
    scales = None
    if sparse and not moving:
        scales = random_pattern(
            rng, space=Space.SBUF, dtype="uint16", partitions=(start, count), elements=-(-columns // 4),
            partition_bytes=cfg.sbuf.partition_bytes,
        )  # fmt: skip
    if scaled(kind):
        block = min(32, cfg.partitions)
        slot = int(rng.integers(each // 2))
        scales = random_pattern(
            rng, space=Space.SBUF, dtype=formats.by_code(scale_format_of(kind)).name,
            partitions=(start // block * block + slot * (block // each), block // each), elements=columns,
            partition_bytes=cfg.sbuf.partition_bytes,
        )  # fmt: skip
    return replace(lying, dtype=dtype), scales


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
    src1: AccessPattern | None = None,
    dst: AccessPattern | None = None,
    fields: Mapping[str, int] | None = None,
) -> int:
    """dispatch.COMMAND as an integer."""
    values = {"opcode": int(opcode), **(fields or {})}
    for name, pattern in (("src0", src0), ("src1", src1), ("dst", dst)):
        if pattern is not None:
            values |= {f"{name}_{k}": v for k, v in pattern.fields().items()}
    word = INSTRUCTION.pack(values)
    assert COMMAND.size == INSTRUCTION.width + SEQUENCE_BITS
    return word | (sequence % (1 << SEQUENCE_BITS)) << INSTRUCTION.width
