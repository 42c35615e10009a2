"""The barrier of a run."""

from collections.abc import Iterable

__all__ = ["Barrier"]


class Barrier:
    """Which cores have arrived. One that has ended holds nobody up; one that arrives twice is there once."""

    def __init__(self, cores: Iterable[int]):
        self._running = set(cores)
        self._there: set[int] = set()
        self.passed = 0
        """Barriers at which every core of the run has arrived."""

    def arrive(self, core: int) -> None:
        """`core` is there."""
        self._there.add(core)
        self._open()

    def leave(self, core: int) -> None:
        """`core` has ended."""
        self._running.discard(core)
        self._open()

    def _open(self) -> None:
        if self._there and self._running <= self._there:
            self.passed += 1
            self._there.clear()
