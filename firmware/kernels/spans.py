"""Pieces of an axis."""

from dataclasses import dataclass

__all__ = ["Span", "spans"]


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
