"""Blocks of a kernel that a run may leave out, as counts of items: where each may be left, and where it ends."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from firmware.decisions.numbers import Condition, Number, Register
from firmware.decisions.reckoner import need_room
from firmware.hazards import Known

__all__ = ["Exit", "Load", "Region", "Regions"]


@dataclass(frozen=True, slots=True)
class Exit:
    """A run goes on here if `condition` holds, else behind the region. `counts`: items so far of each producer."""

    region: "Region"
    condition: Condition
    counts: Known


@dataclass(eq=False, slots=True)
class Region:
    """A block of the kernel at `place`. `ends`: items of each producer behind it."""

    place: str
    exits: list[Exit] = field(default_factory=list[Exit])
    ends: Known = field(default_factory=Known)


@dataclass(frozen=True, slots=True)
class Load:
    """A register gets its value; `needs` must be complete before. `counts`: items so far of each producer."""

    register: Register
    needs: Known
    counts: Known


class Regions:
    """Of a kernel whose producers have `counts()` items so far. `events` are in the order of the program.

    `keeps()`: what each engine holds; `forgets(n, before)`: a block may have left the n-th of them holding one of
    these. `settle()`: in front of a block everything is counted that has not been. `owns(numbers)`: KernelError if
    registers of them are another kernel's.
    """

    def __init__(
        self,
        counts: Callable[[], Known],
        keeps: Callable[[], Sequence[Any]],
        forgets: Callable[[int, list[Any]], None],
        settle: Callable[[], None],
        owns: Callable[[list[Number]], None],
    ):
        self._counts, self._keeps, self._forgets, self._settle, self._owns = counts, keeps, forgets, settle, owns
        self._open: list[Region] = []
        self._kept: list[list[Sequence[Any]]] = []  # of each of these, at its exits
        self.events: list[Load | Exit | Region] = []

    @property
    def open(self) -> bool:
        """Whether what is said now may be left out."""
        return bool(self._open)

    def load(self, register: Register, needs: Known) -> None:
        """A register is known from here on."""
        self.events.append(Load(register, needs, self._counts()))

    @contextmanager
    def block(self, place: str) -> Iterator[None]:
        """A block that may be left at its exits."""
        if not self._open:
            self._settle()
        self._open.append(Region(place))
        self._kept.append([])
        try:
            yield
        except BaseException:
            self._open.pop()
            self._kept.pop()
            raise
        self._end()

    def leave_unless(self, condition: Condition) -> None:
        """The run goes on in the block if this holds. Errors: KernelError if that takes too many operations."""
        self._owns([condition.number])
        need_room([condition.number])
        region = self._open[-1]
        region.exits.append(Exit(region, condition, self._counts()))
        self.events.append(region.exits[-1])
        self._kept[-1].append(self._keeps())

    def _end(self) -> None:
        region = self._open.pop()
        region.ends = self._counts()
        self.events.append(region)
        kept = self._kept.pop()
        for n, now in enumerate(self._keeps()):
            if any(before[n] != now for before in kept):
                self._forgets(n, [before[n] for before in kept])
