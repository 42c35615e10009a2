"""Pieces of an axis."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Span", "cut_spans", "even_spans", "spans"]


@dataclass(frozen=True, slots=True)
class Span:
    """Rows or columns `start` to `start + size`."""

    start: int
    size: int

    @property
    def stop(self) -> int:
        """First one behind."""
        return self.start + self.size


def spans(total: int, size: int) -> list[Span]:
    """`total` in pieces of `size`; the last one may be shorter."""
    return [Span(at, min(size, total - at)) for at in range(0, total, size)]


def even_spans(total: int, limit: int, multiple: int = 8) -> list[Span]:
    """`total` in the fewest pieces of at most `limit`, as equal as multiples of `multiple` allow."""
    count = -(-total // limit)
    size = -(-total // count)
    return spans(total, min(limit, -(-size // multiple) * multiple))


def cut_spans(total: int, at: Iterable[int]) -> list[Span]:
    """`total` cut at these places, which ascend; those outside count for nothing."""
    return [Span(a, b - a) for a, b in pairwise([0, *(n for n in at if 0 < n < total), total])]
