"""What several cores write to the same bytes in no order that their programs make."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from firmware.program import Descriptor, Program
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Opcode
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, core_place

__all__ = ["Unordered", "unordered"]

_Span = tuple[int, int]
_Semaphore = tuple[int, int]  # core, index


@dataclass(frozen=True, slots=True)
class Unordered:
    """Two copies of the cores `cores` to the same bytes, of which either may come first."""

    cores: tuple[int, int]
    copies: tuple[Descriptor, Descriptor]

    def __str__(self) -> str:
        who = [
            f"the {'sum' if copy.add else 'copy'} of core {core_place(core)} ({copy.origin})"
            for core, copy in zip(self.cores, self.copies, strict=True)
        ]
        place = self.copies[0].destination
        where = f"tensor {place.tensor}" if place.tensor else "SBUF"
        return (
            f"{who[0]} and {who[1]} to {where} of core {core_place(place.core)} come in any order; "
            f"one of them must wait for a signal behind the other"
        )


@dataclass(frozen=True, slots=True)
class _Write:
    """A descriptor: it may change its destination from event `begin` on, and has changed it at `done`."""

    core: int
    copy: Descriptor
    begin: int
    done: int


def unordered(programs: Iterable[Program]) -> tuple[Unordered, ...]:
    """Pairs of copies and sums of different cores to bytes that they share, or may share, which no chain of waits,
    signals and rings puts in order. Two sums of INT32 need no order. Programs that cores of the GPSIMD engine run are
    not looked into.
    """
    order = _Order()
    writes: dict[tuple[int, Space, str], list[_Write]] = defaultdict(list)
    for program in programs:
        for write in order.program(program):
            place = write.copy.destination
            writes[place.core, place.space, place.tensor].append(write)
    order.settle()
    found: list[Unordered] = []
    for some in writes.values():
        for a, b in combinations(some, 2):
            commutes = a.copy.add == b.copy.add == DmaAdd.INT32
            if a.core == b.core or commutes or not _meet(a.copy, b.copy):
                continue
            if not order.before(a.done, b.begin) and not order.before(b.done, a.begin):
                found.append(Unordered((a.core, b.core), (a.copy, b.copy)))
    return tuple(found)


def _spans(copy: Descriptor) -> tuple[_Span, _Span]:
    """Partitions and bytes of a destination in SBUF; in HBM the first is the whole."""
    place = copy.destination
    stride = PARTITION_STRIDE_BYTES if place.space == Space.SBUF else 1 << 62
    row, byte = divmod(place.offset, stride)
    low, high = [row, byte], [row + 1, byte + copy.row_bytes]
    for count, step in copy.written:
        sign = -1 if step < 0 else 1
        for n, part in enumerate(divmod(abs(step), stride)):
            reach = sign * part * (count - 1)
            low[n] += min(0, reach)
            high[n] += max(0, reach)
    return (low[0], high[0]), (low[1], high[1])


def _meet(a: Descriptor, b: Descriptor) -> bool:
    return all(x[0] < y[1] and y[0] < x[1] for x, y in zip(_spans(a), _spans(b), strict=True))


class _Order:
    """Events of all programs, and which of them must come before which."""

    def __init__(self) -> None:
        self._after: list[list[int]] = []  # of each event, events that come before it
        self._signals: dict[_Semaphore, list[int]] = defaultdict(list)
        self._waits: list[tuple[int, _Semaphore, int]] = []
        self._arrivals: dict[tuple[int, int, int], list[tuple[int, int, int]]] = defaultdict(list)
        self._before: list[int] = []  # bits

    def _event(self, *after: int | None) -> int:
        self._after.append([event for event in after if event is not None])
        return len(self._after) - 1

    def program(self, program: Program) -> Iterator[_Write]:
        """Its instructions issue in order and complete in order; descriptors begin when they have been released, in the
        order of their ring and class, and end in the order of their ring."""
        core = program.core
        releases: dict[int, list[int]] = defaultdict(list)
        direct: list[tuple[list[Descriptor], list[int]]] = []
        for instructions in program.queues.values():
            begin = end = None
            copies, begins = [], []
            direct.append((copies, begins))
            for instruction in instructions:
                begin = self._event(begin)
                end = self._event(begin, end)
                self._signals[core, instruction.update].append(end)
                self._waits += [(begin, (core, wait.semaphore), wait.value) for wait in instruction.waits]
                if instruction.opcode == Opcode.DMA_TRIGGER:
                    releases[instruction.imm0] += [begin] * instruction.imm1
                if instruction.descriptor is not None:
                    copies.append(instruction.descriptor)
                    begins.append(begin)
        for ring, copies in enumerate(program.rings):
            yield from self._ring(core, copies, releases[ring])
        for copies, begins in direct:
            yield from self._ring(core, copies, begins)

    def _ring(self, core: int, copies: Sequence[Descriptor], releases: Sequence[int]) -> Iterator[_Write]:
        begins: dict[int, int] = {}
        end = None
        arrived: dict[tuple[int, int], int] = {}
        for copy, release in zip(copies, releases, strict=False):
            begin = begins[copy.class_] = self._event(begins.get(copy.class_), release)
            end = self._event(begin, end)
            done, far = end, copy.destination.core
            if far != core:  # it is there later than it has left
                done = self._event(begin, arrived.get((far, copy.class_)))
                arrived[far, copy.class_] = done
                self._arrivals[core, far, copy.class_].append((begin, end, done))
            told = done if copy.signal_core != core else end
            self._signals[copy.signal_core, copy.signal].append(told)
            yield _Write(core, copy, begin, done)

    def before(self, first: int, then: int) -> bool:
        """`first` comes before `then`, or is it."""
        return first == then or bool(self._before[then] >> first & 1)

    def settle(self) -> None:
        """Find what waits prove: a signal without which a semaphore cannot have come to the value has come. And what
        leaves after another of its sender, receiver and class has left arrives after it."""
        known: set[tuple[int, int]] = set()
        while True:
            self._before = self._reach()
            more = {*self._proved(), *self._following()} - known
            if not more:
                return
            known |= more
            for first, then in more:
                self._after[then].append(first)

    def _proved(self) -> Iterator[tuple[int, int]]:
        for event, semaphore, value in self._waits:
            signals = self._signals[semaphore]
            for signal in signals:
                if not self.before(signal, event):
                    others = (s for s in signals if not self.before(signal, s) and not self.before(event, s))
                    if sum(1 for _ in others) < value:
                        yield signal, event

    def _following(self) -> Iterator[tuple[int, int]]:
        for parcels in self._arrivals.values():
            for (_, left, there), (begin, _, then) in permutations(parcels, 2):
                if self.before(left, begin) and not self.before(there, then):
                    yield there, then

    def _reach(self) -> list[int]:
        """Of each event all that come before it. Events that wait for each other come after nothing."""
        before = [0] * len(self._after)
        follows: list[list[int]] = [[] for _ in self._after]
        open_ = [len(after) for after in self._after]
        for event, after in enumerate(self._after):
            for first in after:
                follows[first].append(event)
        ready = [event for event, count in enumerate(open_) if not count]
        while ready:
            event = ready.pop()
            for then in follows[event]:
                before[then] |= before[event] | 1 << event
                open_[then] -= 1
                if not open_[then]:
                    ready.append(then)
        return before
