"""Pieces of an axis."""

from dataclasses import dataclass

__all__ = ["Span", "even_spans", "spans"]


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
