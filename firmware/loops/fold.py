"""A list of items with its repetitions as loops: where items some places apart grow by a constant, again and again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
        found: list[_Run] = []
        start = at = 0
        while start < len(grown):
            while (
                at < len(grown) and grown[at] is not None and (at - start < period or grown[at] == grown[at - period])
            ):
                at += 1
            turns = 1 + (at - start) // period
            if turns > 1:
                found.append(_Run(start, period, turns, self._saved(start, period, turns)))
            start = at - period + 1 if at < len(grown) and grown[at] else at + 1
            at = max(at, start)
        return [run for run in found if run.saves > 0]

    def _loop(self, start: int, period: int, turns: int) -> Item:
        body = self.items[start : start + period]
        grown = [self._make.growth(one, self.items[start + period + n]) for n, one in enumerate(body)]
        return self._make.loop(turns, body, np.concatenate([by for by in grown if by is not None]))

    def _saved(self, start: int, period: int, turns: int) -> int:
        now = sum(one.words for one in self.items[start : start + period * turns])
        return now - self._loop(start, period, turns).words - 1  # an outermost loop has a word before it

    def replace(self, runs: Iterable[_Run]) -> bool:
        """Loops instead of these runs, of two that overlap the one that saves more. Whether there was any."""
        chosen: list[_Run] = []
        for run in sorted(runs, key=lambda r: (-r.saves, r.period, r.start)):
            end = run.start + run.period * run.turns
            if all(end <= o.start or run.start >= o.start + o.period * o.turns for o in chosen):
                chosen.append(run)
        for run in sorted(chosen, key=lambda r: -r.start):
            loop = self._loop(run.start, run.period, run.turns)
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
