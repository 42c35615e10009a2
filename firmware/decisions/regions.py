"""Blocks of a kernel that a run may leave out, as counts of items: where each may be left, and where it ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from firmware.decisions.numbers import Condition, Register
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
    """Of a kernel whose producers have `counts()` items so far. `events` are in the order of the program. `keeps()`:
    what each engine holds; `forgets(n)`: a block may have left the n-th of them holding something else."""

    def __init__(
        self, counts: Callable[[], Known], keeps: Callable[[], Sequence[object]], forgets: Callable[[int], None]
    ):
        self._counts, self._keeps, self._forgets = counts, keeps, forgets
        self._open: list[Region] = []
        self._kept: list[list[Sequence[object]]] = []  # of each of these, at its exits
        self.events: list[Load | Exit | Region] = []

    @property
    def open(self) -> bool:
        """Whether what is said now may be left out."""
        return bool(self._open)

    def load(self, register: Register, needs: Known) -> None:
        """A register is known from here on."""
        self.events.append(Load(register, needs, self._counts()))

    def begin(self, place: str) -> None:
        """A block that may be left at its exits."""
        self._open.append(Region(place))
        self._kept.append([])

    def leave_unless(self, condition: Condition) -> None:
        """The run goes on in the block if this holds."""
        region = self._open[-1]
        region.exits.append(Exit(region, condition, self._counts()))
        self.events.append(region.exits[-1])
        self._kept[-1].append(self._keeps())

    def end(self) -> None:
        """The block ends."""
        region = self._open.pop()
        region.ends = self._counts()
        self.events.append(region)
        kept = self._kept.pop()
        for n, now in enumerate(self._keeps()):
            if any(before[n] != now for before in kept):
                self._forgets(n)
