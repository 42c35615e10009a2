"""Structured sparsity on the host: which numbers of an operand stay, how they and their tags are packed, and back.

An operand is [K, columns]. Of each `group` successive k of a column `kept` numbers stay, in the order of k; a packed
row holds the numbers that a row of the array takes. Patterns: rtl.contract.sparsity.
"""

from fractions import Fraction

import numpy as np

from firmware.views import KernelError
from rtl.contract.kinds import TAG_COLUMNS, tag_elements
from rtl.contract.sparsity import PATTERNS, TAG_BITS, Sparsity

__all__ = [
    "dense_product",
    "find_pattern",
    "kept_share",
    "lay_moving",
    "moving_format",
    "pack",
    "pack_tags",
    "prune",
    "unpack",
    "unpack_tags",
]

_NUMBER_BITS = 16


def find_pattern(name: str) -> Sparsity:
    """The pattern that users write as `name`. KernelError if there is none."""
    if name not in PATTERNS:
        raise KernelError(f"sparsity must be one of {', '.join(PATTERNS)}, not {name!r}")
    return PATTERNS[name]


def kept_share(pattern: Sparsity) -> Fraction:
    """Share of the numbers that stay."""
    return Fraction(pattern.kept, pattern.group)


def _groups(values: np.ndarray, pattern: Sparsity) -> np.ndarray:
    """Values [K, columns] as [groups, numbers of a group, columns]."""
    if values.ndim != 2 or len(values) % pattern.group:
        raise KernelError(
            f"k={len(values)} is no multiple of {pattern.group}, the numbers of a group of sparsity {pattern.name}"
        )
    return values.reshape(-1, pattern.group, values.shape[1])


def prune(values: np.ndarray, pattern: Sparsity) -> np.ndarray:
    """`values` [K, columns] with the largest `kept` numbers of each group of each column, of equal ones those of lower
    k, and 0 for the others. A NaN counts as largest."""
    groups = _groups(values, pattern)
    size = np.where(np.isnan(groups), np.inf, np.abs(groups))
    rank = np.argsort(-size, axis=1, kind="stable")[:, : pattern.kept]
    stays = np.zeros(groups.shape, np.bool_)
    np.put_along_axis(stays, rank, True, axis=1)
    return np.where(stays, groups, groups.dtype.type(0)).reshape(values.shape)


def pack(values: np.ndarray, pattern: Sparsity) -> tuple[np.ndarray, np.ndarray]:
    """Numbers [K / ratio, columns] and tags, uint16 [K / ratio, columns / 4 rounded up], of pruned values or bits.

    What is 0 fills a group with less than `kept` others. KernelError if a group has more.
    """
    groups = _groups(values, pattern)
    present = groups != 0
    count = present.sum(axis=1)
    if np.any(count > pattern.kept):
        group, column = (int(i) for i in np.argwhere(count > pattern.kept)[0])
        raise KernelError(
            f"column {column} has {int(count[group, column])} numbers that are not 0 in k={group * pattern.group} to "
            f"{(group + 1) * pattern.group - 1}; sparsity {pattern.name} keeps {pattern.kept}, so prune it first"
        )
    # Those that are not 0 first, then the first zeros; then all in the order of k.
    chosen = np.sort(np.argsort(~present, axis=1, kind="stable")[:, : pattern.kept], axis=1)
    numbers = np.take_along_axis(groups, chosen, axis=1).reshape(-1, values.shape[1])
    return numbers, pack_tags(chosen.reshape(numbers.shape), pattern)


def pack_tags(tags: np.ndarray, pattern: Sparsity) -> np.ndarray:
    """Tags [rows, columns] four to an element of 16 bits, the first column lowest. KernelError unless they ascend."""
    _check_tags(tags, pattern)
    rows, columns = tags.shape
    wide = np.zeros((rows, tag_elements(columns) * TAG_COLUMNS), np.uint16)
    wide[:, :columns] = tags
    parts = wide.reshape(rows, -1, TAG_COLUMNS) << (TAG_BITS * np.arange(TAG_COLUMNS)).astype(np.uint16)
    return np.bitwise_or.reduce(parts, axis=2).astype(np.uint16)


def unpack_tags(packed: np.ndarray, columns: int) -> np.ndarray:
    """The tags uint8 [rows, columns] of packed ones."""
    if packed.ndim != 2 or packed.shape[1] != tag_elements(columns):
        raise KernelError(
            f"tags of {columns} columns are [rows, {tag_elements(columns)}], not {list(packed.shape)}: an element has "
            f"those of {TAG_COLUMNS}"
        )
    shifts = (TAG_BITS * np.arange(TAG_COLUMNS)).astype(np.uint16)
    every = packed.astype(np.uint16)[..., None] >> shifts & ((1 << TAG_BITS) - 1)
    return every.reshape(len(packed), -1)[:, :columns].astype(np.uint8)


def _check_tags(tags: np.ndarray, pattern: Sparsity) -> None:
    """KernelError unless the tags [rows, columns] of each group ascend below its size."""
    if len(tags) % pattern.kept:
        raise KernelError(
            f"{len(tags)} rows of tags are no multiple of {pattern.kept}, as many as sparsity {pattern.name} keeps"
        )
    buses = tags.reshape(-1, pattern.kept, tags.shape[1]).astype(np.int64)
    for wrong, what in (
        ((buses < 0) | (buses >= pattern.group), f"is not below the group of {pattern.group}"),
        (np.diff(buses, axis=1, prepend=-1) <= 0, "is not above the tag before it"),
    ):
        if wrong.any():
            bus, row, column = (int(i) for i in np.argwhere(wrong)[0])
            raise KernelError(
                f"tag {int(buses[bus, row, column])} in row {bus * pattern.kept + row} of column {column} {what}; tags "
                f"of sparsity {pattern.name} ascend within {pattern.kept} rows"
            )


def unpack(numbers: np.ndarray, tags: np.ndarray, pattern: Sparsity) -> np.ndarray:
    """Dense [K, columns] of packed numbers and tags. KernelError if the tags repeat or descend."""
    places = unpack_tags(tags, numbers.shape[1])
    if len(places) != len(numbers):
        raise KernelError(f"{len(numbers)} rows of numbers have {len(places)} rows of tags; they must be equal")
    _check_tags(places, pattern)
    columns = numbers.shape[1]
    dense = np.zeros((len(numbers) // pattern.kept, pattern.group, columns), numbers.dtype)
    shape = (-1, pattern.kept, columns)
    np.put_along_axis(dense, places.reshape(shape).astype(np.int64), numbers.reshape(shape), axis=1)
    return dense.reshape(-1, columns)


def moving_format(base: str, pattern: Sparsity) -> str:
    """Format of the moving operand: bf16_x2, or bf16_x4, of which 4:12 uses three numbers."""
    return f"{base}_x{2 if pattern.ratio == 2 else 4}"


def lay_moving(codes: np.ndarray, pattern: Sparsity) -> np.ndarray:
    """Moving numbers, bits uint16 [K, columns], as elements [K / ratio, columns] of `moving_format`: `ratio` successive
    k side by side, the first one lowest."""
    groups = _groups(codes, pattern)
    places = 2 if pattern.ratio == 2 else 4
    kind = np.dtype(f"uint{_NUMBER_BITS * places}")
    rows = groups.reshape(-1, pattern.ratio, codes.shape[1]).astype(kind)
    shifts = (_NUMBER_BITS * np.arange(pattern.ratio)).astype(kind)
    return np.bitwise_or.reduce(rows << shifts[:, None], axis=1)


def dense_product(numbers: np.ndarray, tags: np.ndarray, moving: np.ndarray, pattern: Sparsity) -> np.ndarray:
    """What a sparse product is compared with by tolerance: float64 [columns, N] of the unpacked values and [K, N]."""
    return unpack(numbers.astype(np.float64), tags, pattern).T @ moving.astype(np.float64)
