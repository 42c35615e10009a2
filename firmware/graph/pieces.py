"""How work on every element of an array is cut: partitions, free axes, and where each operand lies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from firmware.kernels.spans import spans

__all__ = ["Piece", "merged", "pieces"]

Dim = tuple[int, tuple[int, ...]]
"""Elements of an axis, and its stride in each operand."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Axes (partitions first, then at most two free ones), first element and strides of each operand."""

    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[Dim]:
    """Axes without those of one element, neighbours made one where all operands allow it."""
    dims: list[Dim] = []
    for i, n in enumerate(shape):
        here = tuple(s[i] for s in strides)
        if n == 1:
            continue
        if dims and all(a == b * n for a, b in zip(dims[-1][1], here, strict=True)):
            dims[-1] = (dims[-1][0] * n, here)
        else:
            dims.append((n, here))
    return dims


def _divisor(n: int, limit: int) -> int:
    """The largest divisor of n up to `limit`."""
    return next(d for d in range(min(n, limit), 0, -1) if n % d == 0)


def _times(strides: tuple[int, ...], n: int) -> tuple[int, ...]:
    return tuple(s * n for s in strides)


def _plus(a: Sequence[int], strides: Sequence[int], n: int) -> tuple[int, ...]:
    return tuple(x + s * n for x, s in zip(a, strides, strict=True))


def pieces(shape: Sequence[int], strides: Sequence[Sequence[int]], partitions: int, columns: int) -> Iterator[Piece]:
    """All elements in pieces of at most so many partitions and free elements. The last axis stays innermost."""
    none = (0,) * len(strides)
    dims = merged(shape, strides) or [(1, none)]
    n, last = dims[-1]
    if len(dims) == 1:
        whole = n // partitions
        if whole:
            yield from _cut([(partitions, _times(last, whole)), (whole, last)], 0, none, partitions, columns)
        if n % partitions:
            rest = [(1, none), (n % partitions, last)]
            yield from _cut(rest, 0, _times(last, n - n % partitions), partitions, columns)
        return
    tall = max(range(len(dims) - 1), key=lambda i: min(dims[i][0], partitions))
    divisor = _divisor(n, partitions)
    if dims[tall][0] * 2 <= divisor:
        dims[-1:] = [(divisor, _times(last, n // divisor)), (n // divisor, last)]
        tall = len(dims) - 2
    yield from _cut(dims, tall, none, partitions, columns)


def _cut(dims: list[Dim], tall: int, base: tuple[int, ...], partitions: int, columns: int) -> Iterator[Piece]:
    others = [d for i, d in enumerate(dims) if i != tall]
    free = others[-1:]
    outer = others[:-1]
    if outer and outer[-1][0] * free[0][0] <= columns:
        free = [outer.pop(), *free]
    elif outer and free[0][0] <= columns:
        free = [outer.pop(), *free]
    most = [columns // prod(n for n, _ in free[1:]), columns][-len(free) :] if len(free) > 1 else [columns]
    cuts = [spans(dims[tall][0], partitions), *(spans(n, max(1, m)) for (n, _), m in zip(free, most, strict=True))]
    axes = [dims[tall], *free]
    for place in product(*(range(n) for n, _ in outer)):
        start = base
        for (_, strides), index in zip(outer, place, strict=True):
            start = _plus(start, strides, index)
        for cut in product(*cuts):
            at = start
            for (_, strides), span in zip(axes, cut, strict=True):
                at = _plus(at, strides, span.start)
            own = tuple(tuple(strides[i] for _, strides in axes) for i in range(len(base)))
            yield Piece(tuple(span.size for span in cut), at, own)
