"""A treemap: rectangles in proportion to values, each as near to a square as its neighbours allow.

The squarified layout of Bruls, Huizing and van Wijk (2000).
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Box", "squarified"]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, y downwards."""

    x: float
    y: float
    width: float
    height: float

    def inside(self, edge: float, top: float) -> "Box":
        """Without an edge around it and a strip at its top; empty rather than negative."""
        return Box(
            self.x + edge,
            self.y + edge + top,
            max(0.0, self.width - 2 * edge),
            max(0.0, self.height - 2 * edge - top),
        )


def _worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of sides in a row of areas along `side`."""
    depth = sum(row) / side
    return max(max(depth * depth / area, area / (depth * depth)) for area in row)


def squarified(values: Sequence[float], box: Box) -> list[Box]:
    """A rectangle for each value, in their order; values are above 0 and fall. Together they fill `box`."""
    whole = sum(values)
    if not whole or not box.width or not box.height:
        return [Box(box.x, box.y, 0.0, 0.0) for _ in values]
    areas = [value * box.width * box.height / whole for value in values]
    found: list[Box] = []
    x, y, width, height = box.x, box.y, box.width, box.height
    while len(found) < len(areas):
        side = min(width, height)
        left = areas[len(found) :]
        count = 1
        while count < len(left) and _worst(left[: count + 1], side) <= _worst(left[:count], side):
            count += 1
        depth = sum(left[:count]) / side
        at = 0.0
        for area in left[:count]:
            length = area / depth
            found.append(Box(x, y + at, depth, length) if width >= height else Box(x + at, y, length, depth))
            at += length
        if width >= height:
            x, width = x + depth, width - depth
        else:
            y, height = y + depth, height - depth
        width, height = max(width, 1e-9), max(height, 1e-9)
    return found
