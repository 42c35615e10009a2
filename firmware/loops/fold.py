"""A list of items with its repetitions as loops: where items some places apart grow by a constant, again and again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from firmware.loops.items import Item, Items

__all__ = ["fold"]

SHORT = 4
"""Repetitions of so few items are looked for everywhere: what turns by turns makes (slots, accumulation) is short."""


@dataclass(frozen=True, slots=True)
class _Run:
    """`turns` times `period` items from `start` on."""

    start: int
    period: int
    turns: int
    saves: int  # words


class _Folder:
    """Items that become fewer. `known`: what one grows by to another, worked out once for each pair."""

    def __init__(self, items: Sequence[Item], make: Items, known: dict[tuple[Item, Item], bytes | None]):
        self.items = list(items)
        self._make = make
        self._known = known

    def _growth(self, a: Item, b: Item) -> bytes | None:
        if (a, b) not in self._known:
            by = self._make.growth(a, b)
            self._known[a, b] = None if by is None else by.tobytes()
        return self._known[a, b]

    def runs(self, period: int) -> list[_Run]:
        """Of this period, each as long as it can be; they may overlap by less than a turn."""
        items = self.items
        grown = [self._growth(items[i], items[i + period]) for i in range(len(items) - period)]
        words = [0, *accumulate(one.words for one in items)]
        found: list[_Run] = []
        start = at = 0
        while start < len(grown):
            while at < len(grown) and grown[at] and (at - start < period or grown[at] == grown[at - period]):
                at += 1
            turns = 1 + (at - start) // period
            once, all_words = words[start + period] - words[start], words[start + period * turns] - words[start]
            # An outermost loop has a word before it, each one or more behind it.
            if all_words - once - 2 > 0:
                saves = all_words - once - 1 - self._make.end_words(self._strides(start, period))
                found += [_Run(start, period, turns, saves)] if saves > 0 else []
            start = at - period + 1 if at < len(grown) and grown[at] else at + 1
            at = max(at, start)
        return found

    def _strides(self, start: int, period: int) -> np.ndarray:
        """What a turn's fields grow by, [leaves, fields]."""
        pairs = zip(self.items[start : start + period], self.items[start + period : start + 2 * period], strict=True)
        grown = b"".join(self._growth(a, b) or b"" for a, b in pairs)
        return np.frombuffer(grown, np.int64).reshape(-1, self.items[start].values.shape[1])

    def replace(self, runs: Iterable[_Run]) -> bool:
        """Loops instead of these runs, of two that overlap the one that saves more. Whether there was any."""
        chosen: list[_Run] = []
        taken = bytearray(len(self.items))
        for run in sorted(runs, key=lambda r: (-r.saves, r.period, r.start)):
            place = slice(run.start, run.start + run.period * run.turns)
            if not any(taken[place]):
                taken[place] = b"\1" * (run.period * run.turns)
                chosen.append(run)
        for run in sorted(chosen, key=lambda r: -r.start):
            body = self.items[run.start : run.start + run.period]
            loop = self._make.loop(run.turns, body, self._strides(run.start, run.period))
            self.items[run.start : run.start + run.period * run.turns] = [loop]
        return bool(chosen)

    def words(self) -> int:
        return sum(one.words for one in self.items)


def fold(items: Sequence[Item], periods: Iterable[int], make: Items) -> list[Item]:
    """The items with loops in them where that saves words. `periods`: items that a turn may have.

    Turns that are not like the others stay as they are, before, between and behind the loops. Loops that are alike
    become turns of loops.
    """
    wanted = sorted({*periods, *range(1, SHORT + 1)})
    known: dict[tuple[Item, Item], bytes | None] = {}
    small, large = _Folder(items, make, known), _Folder(items, make, known)
    while any(small.replace(small.runs(period)) for period in wanted):  # inner loops first
        pass
    while large.replace([run for period in wanted for run in large.runs(period)]):  # what saves most first
        pass
    return min(small, large, key=_Folder.words).items
