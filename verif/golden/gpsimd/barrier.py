"""The barrier of a run."""

from collections.abc import Iterable

__all__ = ["Barrier"]


class Barrier:
    """Counts how often each core has arrived. One that has ended holds nobody up."""

    def __init__(self, cores: Iterable[int]):
        self._arrived = dict.fromkeys(cores, 0)
        self.passed = 0
        """Barriers that every core of the run has reached."""

    def arrive(self, core: int) -> None:
        """`core` has arrived once more."""
        self._arrived[core] += 1
        self.passed = min(self._arrived.values())

    def leave(self, core: int) -> None:
        """`core` has ended."""
        del self._arrived[core]
        self.passed = min(self._arrived.values(), default=self.passed)
