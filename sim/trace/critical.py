"""The critical path: from the end of a run backwards to whatever came last, until cycle 0."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rtl.contract.isa import Opcode, Queue
from sim.trace.instructions import ENGINE_QUEUE, pieces
from sim.trace.intervals import STATES
from sim.trace.recorded import NEVER, Recorded

__all__ = ["CAUSES", "Step", "critical_path", "semaphore_edges"]

CAUSES = ("runs", "moves", "issue", "start", "end")
"""What a step is: an instruction at its engine; a descriptor under way; from what let an instruction go (conditions,
the queue in front of it, fetch) to when it went; from the start to the first of them; what follows the last end."""


_LOCAL = (Opcode.NOP, Opcode.DMA_TRIGGER, Opcode.DMA_COPY)
"""What is over as soon as it goes."""


@dataclass(frozen=True, slots=True)
class Step:
    """Cycles [begin, end) of the run that waited for an item or a copy (NEVER: none)."""

    begin: int
    end: int
    cause: str
    item: int = NEVER
    copy: int = NEVER


def semaphore_edges(recorded: Recorded) -> Iterator[tuple[int, int, int, int]]:
    """(item, cycle, item or NEVER, copy or NEVER) for each condition of an item: which of the updates of its semaphore
    brought the value, and when. Conditions that updates from elsewhere bring are left out."""
    updates = _updates(recorded)
    for item, conditions in enumerate(recorded.item_waits.tolist()):
        for semaphore, value in conditions:
            if semaphore == NEVER or value <= 0:
                continue
            cycles, producers = updates.get(semaphore, (np.zeros(0, np.int64), []))
            if value <= len(cycles):
                yield (item, int(cycles[value - 1]), *producers[value - 1])


def _updates(recorded: Recorded) -> dict[int, tuple[np.ndarray, list[tuple[int, int]]]]:
    """Of each semaphore the cycles in which it went up, in order, and which item or copy did it."""
    adds = np.concatenate([recorded.item_adds, np.ones(len(recorded.copy_signal), np.int32)])
    semaphores = np.concatenate([recorded.item_update, recorded.copy_signal])
    cycles = np.concatenate([recorded.item_retire, recorded.copy_end])
    items = len(recorded.item_update)
    found: dict[int, tuple[np.ndarray, list[tuple[int, int]]]] = {}
    for semaphore in np.unique(semaphores[semaphores != NEVER]).tolist():
        mine = np.flatnonzero((semaphores == semaphore) & (cycles != NEVER))
        mine = mine[np.argsort(cycles[mine], kind="stable")]
        mine = np.repeat(mine, adds[mine])
        who = [(n, NEVER) if n < items else (NEVER, n - items) for n in mine.tolist()]
        found[semaphore] = cycles[mine], who
    return found


def critical_path(recorded: Recorded) -> list[Step]:
    """Steps from cycle 0 to the end of the run, each where the one before it ends: they sum to its cycles.

    What ended last is the first step from behind. An item's step goes back to its issue; what came last before that is
    next: the update that brought its condition, or the item before it in its queue. A copy's step goes back to its
    begin, and then to the item that released it, or the copy in front of it in its ring.
    """
    return _by_work(recorded, _Walk(recorded).steps())


def _by_work(recorded: Recorded, steps: list[Step]) -> list[Step]:
    """An engine that has an item may still work for one before it: its cycles belong to whom they are spent on."""
    spent = {queue: pieces(recorded, engine) for engine, queue in ENGINE_QUEUE.items()}
    waits = {
        queue: [STATES[engine].index(name) for name in ("semaphore", "fetch")] for engine, queue in ENGINE_QUEUE.items()
    }
    begins = {queue: np.ascontiguousarray(mine["begin"]) for queue, mine in spent.items()}
    found: list[Step] = []

    def add(step: Step) -> None:
        last = found[-1] if found else None
        if last is not None and (last.cause, last.item, last.copy) == (step.cause, step.item, step.copy):
            found[-1] = replace(last, end=step.end)
        else:
            found.append(step)

    for step in steps:
        queue = Queue(int(recorded.item_queue[step.item])) if step.cause == "runs" else None
        if queue is None or queue not in spent or step.end > recorded.coarse_from:
            add(step)
            continue
        mine = spent[queue]
        first = int(np.searchsorted(begins[queue], step.begin, "right")) - 1
        last = int(np.searchsorted(begins[queue], step.end, "left"))
        for begin, end, state, item in mine[first:last].tolist():
            cause = "issue" if state in waits[queue] else "runs"
            whom = item if item != NEVER else step.item
            add(Step(max(begin, step.begin), min(end, step.end), cause, whom))
    return found


class _Walk:
    """Backwards through a run. A place is an item (True, number) or a copy (False, number)."""

    def __init__(self, recorded: Recorded):
        self.r = recorded
        self.at = recorded.cycles
        self.found: list[Step] = []
        self.item_before = _before(recorded.item_queue)
        self.copy_before = _before(recorded.copy_ring)
        self.let_go: dict[int, tuple[int, tuple[bool, int]]] = {}  # last condition of an item: when, and by whom
        for item, cycle, by_item, by_copy in semaphore_edges(recorded):
            if cycle >= self.let_go.get(item, (NEVER, None))[0]:
                self.let_go[item] = cycle, ((True, by_item) if by_item != NEVER else (False, by_copy))

    def steps(self) -> list[Step]:
        place = self._last()
        while place is not None and self.at > 0:
            place = self._before_item(place[1]) if place[0] else self._before_copy(place[1])
        self._back(0, "start")
        return self.found[::-1]

    def _back(self, to: int, cause: str, *, item: int = NEVER, copy: int = NEVER) -> None:
        if 0 <= to < self.at:
            self.found.append(Step(to, self.at, cause, item, copy))
            self.at = to

    def _last(self) -> tuple[bool, int] | None:
        """The item or the copy that ended last; the cycles behind it are a step."""
        ends = np.concatenate([self.r.item_retire, self.r.copy_end])
        if not len(ends) or ends.max() == NEVER:
            return None
        n, items = int(ends.argmax()), len(self.r.item_retire)
        self._back(int(ends[n]), "end")
        return (True, n) if n < items else (False, n - items)

    def _before_item(self, item: int) -> tuple[bool, int] | None:
        """Back over an item at work, and to what came last before it went."""
        self._back(int(self.r.item_issue[item]), "runs", item=item)
        return self._before_issue(item)

    def _before_issue(self, item: int) -> tuple[bool, int] | None:
        front = int(self.item_before[item])
        went = int(self.r.item_issue[front]) if front != NEVER else NEVER
        cycle, by = self.let_go.get(item, (NEVER, None))
        if cycle > went:
            self._back(cycle, "issue", item=item)
            return by
        if front == NEVER:
            return None
        if self.r.item_opcode[front] in _LOCAL:
            self._back(went, "issue", item=item)
        else:
            self._back(went, "runs", item=front)
        return True, front

    def _before_copy(self, copy: int) -> tuple[bool, int] | None:
        """Back over a copy under way, and to its release or to the copy in front of it, whichever was later."""
        self._back(int(self.r.copy_begin[copy]), "moves", copy=copy)
        item, front = int(self.r.copy_item[copy]), int(self.copy_before[copy])
        released = int(self.r.item_issue[item]) if item != NEVER else NEVER
        taken = int(self.r.copy_begin[front]) if front != NEVER else NEVER
        if taken > released:
            self._back(taken, "moves", copy=front)
            return False, front
        if item == NEVER:
            return None
        self._back(released, "issue", copy=copy)
        return self._before_issue(item)


def _before(groups: np.ndarray) -> np.ndarray:
    """The number in front of each in its group, which lie together; NEVER for the first."""
    found = np.arange(len(groups)) - 1
    if len(groups):
        found[np.flatnonzero(np.diff(groups.astype(np.int64), prepend=NEVER))] = NEVER
    return found
