"""Dependencies between queues and rings, as counts of completed items.

A producer is a queue or a ring; it completes its items in order and counts them in one semaphore, so
"the n-th item of producer p is complete" is `semaphore[p] >= n`. What a queue has waited for, directly
or through the items it waited on, it knows for ever (a vector clock); such waits are left out.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

from firmware.views import Box

__all__ = ["Access", "Hazards", "Known", "meet"]

Known = dict[int, int]
"""Producer -> number of its items that are known to be complete."""


@dataclass(frozen=True, slots=True)
class Access:
    """A box of one memory (a tile or a tensor) that an item reads or writes."""

    memory: str
    box: Box
    writes: bool
    core: int = 0  # where the memory is; `memory` names it too
    behind: bool = False  # a sum: it comes behind what its own producer wrote there before


def meet(a: Box, b: Box) -> bool:
    """They have an element in common, or may have."""
    for (al, ah), (bl, bh) in zip(a, b, strict=True):
        if al >= bh or bl >= ah:
            return False
    return True


def _inside(a: Box, b: Box) -> bool:
    return all(bl <= al and ah <= bh for (al, ah), (bl, bh) in zip(a, b, strict=True))


_Record = tuple[int, Box]
"""Producer and box; of several accesses alike the last one counts."""


class _Records:
    """Accesses to one memory, found by place: finding costs about what is found, however many there are.

    Boxes of like size share a grid, whose cells are as large as the largest of them: powers of two an axis.
    A box is kept in the cell of its low corner and reaches at most into the next one.
    """

    def __init__(self) -> None:
        self._grids: dict[tuple[int, ...], dict[tuple[int, ...], dict[_Record, int]]] = {}

    @staticmethod
    def _place(box: Box) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Grid and cell."""
        grid = tuple((high - low - 1).bit_length() for low, high in box)
        return grid, tuple(low >> shift for (low, _), shift in zip(box, grid, strict=True))

    def add(self, producer: int, box: Box, count: int) -> None:
        grid, cell = self._place(box)
        self._grids.setdefault(grid, {}).setdefault(cell, {})[producer, box] = count

    def meeting(self, box: Box) -> Iterator[tuple[_Record, int]]:
        """Records whose boxes overlap `box`, with their counts."""
        for grid, cells in self._grids.items():
            ranges = [range((low >> s) - 1, (high - 1 >> s) + 1) for (low, high), s in zip(box, grid, strict=True)]
            if prod(map(len, ranges)) < len(cells):
                near = [cells[cell] for cell in product(*ranges) if cell in cells]
            else:
                near = list(cells.values())
            for records in near:
                for record, count in records.items():
                    if meet(record[1], box):
                        yield record, count

    def drop_inside(self, box: Box) -> None:
        """Forget the records whose boxes lie inside `box`."""
        for record in [r for r, _ in self.meeting(box) if _inside(r[1], box)]:
            grid, cell = self._place(record[1])
            records = self._grids[grid][cell]
            del records[record]
            if not records:
                del self._grids[grid][cell]


@dataclass(slots=True)
class Hazards:
    """Who touched what last, and what each item implies once complete."""

    ordered: frozenset[int]  # producers that read and write their items in order (engines, not rings)
    interlocked: frozenset[int] = frozenset()  # of these, those whose reads wait for their own earlier writes
    readers: dict[str, _Records] = field(default_factory=lambda: defaultdict(_Records))
    writers: dict[str, _Records] = field(default_factory=lambda: defaultdict(_Records))
    implied: dict[int, list[Known]] = field(default_factory=dict)
    pending: set[int] = field(default_factory=set)  # producers with accesses that their next item will count

    def needs(self, producer: int, accesses: tuple[Access, ...]) -> Known:
        """What must be complete before an item of `producer` with these accesses may start.

        Inside an ordered producer only a read after a write waits: its reads run ahead of its writes. Inside
        an interlocked one not even that. A ring is neither, but its sums come behind its writes of the same bytes.
        """
        found: Known = {}
        for access in accesses:
            in_order = producer in self.ordered
            for (other, _), count in self.writers[access.memory].meeting(access.box):
                mine = other == producer
                if not mine or not (access.behind or (in_order and (access.writes or producer in self.interlocked))):
                    found[other] = max(found.get(other, 0), count)
            if not access.writes:
                continue
            for (other, _), count in self.readers[access.memory].meeting(access.box):
                if not (in_order and other == producer):
                    found[other] = max(found.get(other, 0), count)
        return found

    def unknown(self, needs: Known, known: Known) -> Known:
        """The part of `needs` that neither `known` nor the rest of the needs implies."""
        left = {p: n for p, n in needs.items() if known.get(p, 0) < n}
        for producer in sorted(left):
            for other, count in left.items():
                if other != producer and self.after(other, count).get(producer, 0) >= left[producer]:
                    del left[producer]
                    break
        return left

    def after(self, producer: int, count: int) -> Known:
        """What is complete once the first `count` items of `producer` are."""
        return self.implied[producer][count - 1]

    def learn(self, known: Known, needs: Known) -> None:
        """Add to `known` what waiting for `needs` proves."""
        for producer, count in needs.items():
            for p, n in self.after(producer, count).items():
                known[p] = max(known.get(p, 0), n)

    def count(self, producer: int) -> int:
        """Items of a producer so far."""
        return len(self.implied.get(producer, ()))

    def reach(self, producer: int) -> int:
        """The count that tells that all it was given so far is complete: one more than there is, if any are pending."""
        return self.count(producer) + (producer in self.pending)

    def pend(self, producer: int, accesses: tuple[Access, ...]) -> None:
        """Record accesses that complete before the next item of `producer`, and are counted by that alone."""
        self.pending.add(producer)
        self._record(producer, accesses, self.count(producer) + 1)

    def add(self, producer: int, accesses: tuple[Access, ...], known: Known) -> int:
        """Record the next item of `producer`, which starts when `known` is complete; returns its count."""
        items = self.implied.setdefault(producer, [])
        count = len(items) + 1
        implied = dict(known)
        if items:
            for p, n in items[-1].items():
                implied[p] = max(implied.get(p, 0), n)
        implied[producer] = count
        items.append(implied)
        self.pending.discard(producer)
        self._record(producer, accesses, count)
        return count

    def _record(self, producer: int, accesses: tuple[Access, ...], count: int) -> None:
        for access in accesses:
            if access.writes:
                # What it covers need not be watched any longer: whoever meets it meets this write too.
                self.writers[access.memory].drop_inside(access.box)
                self.readers[access.memory].drop_inside(access.box)
                self.writers[access.memory].add(producer, access.box, count)
            else:
                self.readers[access.memory].add(producer, access.box, count)
