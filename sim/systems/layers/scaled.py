"""Three runs along an axis, and what a line through them says of the whole."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sim.systems.layers.axes import Axis

__all__ = ["DEVIATION_MAX", "Line", "line_error", "scaled_figures"]

DEVIATION_MAX = 0.01
"""More than that the third run, or the whole by either half of the line, must not be off."""

_EXACT = ("macs", "hbm_bytes_read", "hbm_bytes_written", "tensor_window_cycles")


class Line:
    """Through two values at two sizes."""

    def __init__(self, sizes: tuple[int, int], values: tuple[int, int]):
        self.start, self.base = sizes[0], values[0]
        self.slope = Fraction(values[1] - values[0], sizes[1] - sizes[0])

    def at(self, size: int) -> Fraction:
        """Its value there."""
        return self.base + self.slope * (size - self.start)


def line_error(sizes: Sequence[int], cycles: Sequence[int], total: int) -> float:
    """How far the line of the first two runs is off: at the third, or at the whole from that of the last two, whichever
    is more. A share."""
    near = Line((sizes[0], sizes[1]), (cycles[0], cycles[1]))
    far = Line((sizes[1], sizes[2]), (cycles[1], cycles[2]))
    third, whole = (
        abs(near.at(sizes[2]) / cycles[2] - 1),
        abs(near.at(total) / far.at(total) - 1) if far.at(total) else 1,
    )
    return float(max(third, whole))


def scaled_figures(axis: Axis, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures of the whole by the line of the last two runs; engines sum to its cycles."""
    sizes, (near, far) = axis.sizes[1:], reports[1:]

    def whole(first: int, second: int) -> int:
        return max(0, round(Line(sizes, (first, second)).at(axis.total)))

    cycles = whole(near["cycles"], far["cycles"])
    found: dict[str, Any] = {"cycles": cycles} | {name: whole(near[name], far[name]) for name in _EXACT}
    found["bounds"] = {name: whole(near["bounds"][name], value) for name, value in far["bounds"].items()}
    found["events"] = _events(near["events"], far["events"], whole)
    found["engines"] = {
        name: _engine(near["engines"][name], engine, cycles, whole) for name, engine in far["engines"].items()
    }
    return found


def _events(near: Mapping[str, Any], far: Mapping[str, Any], whole: Callable[[int, int], int]) -> dict[str, Any]:
    """Counts by group and name; what one run has none of is 0 there."""
    found: dict[str, Any] = {}
    for key in sorted(near.keys() | far.keys()):
        one, two = near.get(key, 0), far.get(key, 0)
        if isinstance(one, Mapping) or isinstance(two, Mapping):
            found[key] = _events(one or {}, two or {}, whole)
        else:
            found[key] = whole(one, two)
    return found


def _engine(
    near: Mapping[str, Any], far: Mapping[str, Any], cycles: int, whole: Callable[[int, int], int]
) -> dict[str, Any]:
    """Cycles of an engine; what rounding leaves over is idle, what it takes too much comes off the longest of all."""
    parts = {cause: whole(near["stall"][cause], count) for cause, count in far["stall"].items()}
    parts["busy"] = whole(near["busy"], far["busy"])
    idle = cycles - sum(parts.values())
    parts[max(parts, key=lambda cause: parts[cause])] += min(0, idle)
    return {"busy": parts.pop("busy"), "idle": max(0, idle), "stall": parts}
