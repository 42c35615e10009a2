"""Dependencies between queues and rings, as counts of completed items.

A producer is a queue or a ring; it completes its items in order and counts them in one semaphore, so
"the n-th item of producer p is complete" is `semaphore[p] >= n`. What a queue has waited for, directly
or through the items it waited on, it knows for ever (a vector clock); such waits are left out.
"""

from dataclasses import dataclass, field

from firmware.views import Box

__all__ = ["Access", "Hazards", "Known"]

Known = dict[int, int]
"""Producer -> number of its items that are known to be complete."""


@dataclass(frozen=True, slots=True)
class Access:
    """A box of one memory (a tile or a tensor) that an item reads or writes."""

    memory: str
    box: Box
    writes: bool


@dataclass(slots=True)
class _Record:
    box: Box
    producer: int
    count: int


def _overlap(a: Box, b: Box) -> bool:
    for (al, ah), (bl, bh) in zip(a, b, strict=True):
        if al >= bh or bl >= ah:
            return False
    return True


def _inside(a: Box, b: Box) -> bool:
    return all(bl <= al and ah <= bh for (al, ah), (bl, bh) in zip(a, b, strict=True))


@dataclass(slots=True)
class Hazards:
    """Who touched what last, and what each item implies once complete."""

    ordered: frozenset[int]  # producers that read and write their items in order (engines, not rings)
    readers: dict[str, list[_Record]] = field(default_factory=dict)
    writers: dict[str, list[_Record]] = field(default_factory=dict)
    implied: dict[int, list[Known]] = field(default_factory=dict)

    def needs(self, producer: int, accesses: tuple[Access, ...]) -> Known:
        """What must be complete before an item of `producer` with these accesses may start.

        Inside an ordered producer only a read after a write waits: its reads run ahead of its writes.
        """
        found: Known = {}
        for access in accesses:
            for record in self.writers.get(access.memory, ()):
                same = record.producer == producer and producer in self.ordered
                if not (same and access.writes) and _overlap(record.box, access.box):
                    found[record.producer] = max(found.get(record.producer, 0), record.count)
            if not access.writes:
                continue
            for record in self.readers.get(access.memory, ()):
                same = record.producer == producer and producer in self.ordered
                if not same and _overlap(record.box, access.box):
                    found[record.producer] = max(found.get(record.producer, 0), record.count)
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
        for access in accesses:
            writers = self.writers.setdefault(access.memory, [])
            readers = self.readers.setdefault(access.memory, [])
            if access.writes:
                # What it covers need not be watched any longer: whoever meets it meets this write too.
                writers[:] = [r for r in writers if not _inside(r.box, access.box)]
                readers[:] = [r for r in readers if not _inside(r.box, access.box)]
                writers.append(_Record(access.box, producer, count))
            else:
                readers[:] = [r for r in readers if r.producer != producer or r.box != access.box]
                readers.append(_Record(access.box, producer, count))
        return count
