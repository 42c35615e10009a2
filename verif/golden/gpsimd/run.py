"""The execution of one GP_RUN, in slices."""

from collections.abc import Callable, Mapping

import numpy as np

from rtl.contract.gpsimd import FAULT
from rtl.contract.isa import Cause
from rtl.contract.memmap import Space, address
from verif.golden.gpsimd.barrier import Barrier
from verif.golden.gpsimd.copies import CoreCopies
from verif.golden.gpsimd.core import Core
from verif.golden.gpsimd.ended import Ended
from verif.golden.lines import Failed

__all__ = ["Run", "Start"]

SLICE = 64
"""Instructions of a core before it is another's turn; with a random order at most so many."""

Start = Callable[[Barrier], Mapping[int, Core]]


class Run:
    """Cores in turn, until all and their copies have ended or one has failed. `begin` gives the cores of the mask,
    fresh from reset, or the reason why there is no run; it is asked when the run begins. See lines.Steps.

    Time passes for a core that sleeps as for those that run; if none runs, until the first alarm. One that rings behind
    the watchdog never does.
    """

    def __init__(
        self,
        begin: Callable[[], Cause | tuple[Barrier, Mapping[int, Core]]],
        watchdog: int,
        copies: CoreCopies,
        rng: np.random.Generator | None,
    ):
        self._begin, self._watchdog, self._copies, self._rng = begin, watchdog, copies, rng
        self._cores: dict[int, Core] | None = None
        self._barrier = Barrier(())
        self._failed: Failed | None = None

    @property
    def ready(self) -> bool:
        """See Steps: it has not begun or has failed, or a core is awake or will be."""
        if self._cores is None or self._failed:
            return True
        if not self._cores:
            return not self._copies.line.flight
        return any(core.ready for core in self._cores.values()) or self._alarm() is not None

    def outcome(self) -> Failed | None:
        """How it ended."""
        return self._failed

    def advance(self) -> bool:
        """See Steps."""
        if self._cores is None:
            found = self._begin()
            if isinstance(found, Cause):
                self._failed, self._cores = Failed(found), {}
            else:
                self._barrier, self._cores = found[0], dict(found[1])
        elif self._cores and not self._failed:
            self._slice(self._cores)
        return self._failed is not None or not (self._cores or self._copies.line.flight)

    def expire(self) -> None:
        """The watchdog has come; of several cores that still ran the lowest is told."""
        assert self._cores
        self._fail(min(self._cores), Ended(Cause.GP_WATCHDOG))

    def _slice(self, cores: dict[int, Core]) -> None:
        awake = [number for number, core in cores.items() if core.ready]
        left = None if awake else self._alarm()
        cycles = SLICE if left is None else left
        if self._rng is not None and awake:
            awake = list(self._rng.permutation(awake)[: self._rng.integers(len(awake)) + 1])
            cycles = int(self._rng.integers(SLICE)) + 1
        asleep = [core for core in cores.values() if not core.ready]
        for number in awake:
            self._turn(int(number), cores, cycles)
            if self._failed:
                return
        for core in asleep:
            core.mailbox.slept += cycles

    def _turn(self, number: int, cores: dict[int, Core], instructions: int) -> None:
        core = cores[number]
        try:
            core.run(min(instructions, self._watchdog + 1 - core.steps))
        except Ended as end:
            del cores[number]
            self._barrier.leave(number)
            if end.cause:
                self._fail(number, end)
            return
        if core.steps > self._watchdog:
            self.expire()

    def _fail(self, core: int, end: Ended) -> None:
        offset = FAULT.pack(low=end.low, cause=end.number, core=core)
        self._failed = Failed(end.cause, address(Space.GPSIMD, offset))

    def _alarm(self) -> int | None:
        """GPSIMD cycles until time wakes a core; None if it wakes none before the watchdog."""
        found = [
            left
            for core in (self._cores or {}).values()
            if (left := core.sleep_left()) is not None
            and core.hart.csrs.retired + core.mailbox.slept + left <= self._watchdog
        ]
        return min(found, default=None)
