"""The sequences of BN_STATS, BN_AGGR and RECIPROCAL, step by step."""

from dataclasses import dataclass, field
from typing import Any

from rtl.vector.bn_steps import Divide, Give, Multiply, Shift, Spread, Total

__all__ = [
    "INVERT_FIRST",
    "INVERT_LAST",
    "MERGED_LAST",
    "MERGE_FIRST",
    "MERGE_LAST",
    "STATS_FIRST",
    "STATS_LAST",
    "STEPS",
    "Step",
]

_TREE = ((0, 2), (4, 6), (0, 4), (1, 3), (5, 7), (1, 5))


@dataclass(frozen=True)
class Step:
    """A step of the sequence: fields of BN_STEP, and what it waits for."""

    does: dict[str, Any] = field(default_factory=dict)
    divided: bool = False  # the reciprocal
    came: int | None = None  # the element of a triple
    gives: Give | None = None  # a place for a result
    half: int = 0  # BN_STATS: results of the even or of the odd elements
    odd: bool = False  # BN_STATS: `count` is that of the odd elements


def _half(half: int) -> list[Step]:
    """Mean and spread of the even or odd elements, when the reciprocal of their count is there."""
    begin: dict[str, Any] = {"divide": Divide.COUNT} if half == 0 else {}  # of the odd ones
    mean = {"shift": Shift.MEAN, "multiply": Multiply.CORRECT}
    return [
        Step({"multiply": Multiply.MEAN, **begin}, divided=True, half=half, odd=True),
        Step(mean, gives=Give.COUNT, half=half, odd=half == 1),
        Step({"spread": Spread.LESS}, gives=Give.APART, half=half),
        Step({}, gives=Give.SPREAD, half=half),
    ]


_STATS = [
    Step({"divide": Divide.COUNT}),
    Step(),  # the last square is on its way to its sum
    *(Step({"total": Total.JOIN, "spread": Spread.JOIN, "other": right}, half=left) for left, right in _TREE),
    *_half(0),
    *_half(1),
]
_MERGE = [
    Step({"total": Total.COUNT, "advance": 1}, came=0),
    Step({"shift": Shift.BETWEEN, "divide": Divide.TOTAL}, came=1),
    Step({"spread": Spread.CAME, "multiply": Multiply.SQUARE}, came=2),
    Step({"multiply": Multiply.SHARE}, divided=True),
    Step({"multiply": Multiply.MOVE}),
    Step({"shift": Shift.MOVE, "multiply": Multiply.MASS}),
    Step({"multiply": Multiply.BETWEEN, "settle": 1}),
]
_MERGED = [
    Step({}, gives=Give.ORIGIN),
    Step({"multiply": Multiply.VARIANCE}),
    Step({}, gives=Give.PRODUCT),
]
_INVERT = [
    Step({"divide": Divide.CAME}, came=0),
    Step({}, divided=True, gives=Give.INVERSE),
]
STEPS = [Step(), *_STATS, *_MERGE, *_MERGED, *_INVERT]
"""All of them; the first is never made, so that 0 means none."""
STATS_FIRST = 1
STATS_LAST = len(_STATS)
MERGE_FIRST = STATS_LAST + 1
MERGE_LAST = STATS_LAST + len(_MERGE)
MERGED_LAST = MERGE_LAST + len(_MERGED)
INVERT_FIRST = MERGED_LAST + 1
INVERT_LAST = len(STEPS) - 1
