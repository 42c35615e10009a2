"""In which turn of its loops an instruction stands."""

from collections.abc import Sequence
from itertools import pairwise

__all__ = ["turns_of"]


def turns_of(count: int, loops: Sequence[tuple[int, ...]]) -> list[str]:
    """Of each of `count` instructions of a queue "3", "3.1" in turn 1 of a loop in turn 3, or nothing outside of loops.

    `loops`: of each the places at which its turns begin, and its end; inner ones before those around them.
    """
    found = [""] * count
    for bounds in reversed(loops):
        for turn, (begin, end) in enumerate(pairwise(bounds)):
            found[begin:end] = [f"{outer}.{turn}" if outer else str(turn) for outer in found[begin:end]]
    return found
