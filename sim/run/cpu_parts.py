"""Processor time by part of the work: of this process and of the children that it has waited for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["CpuParts"]


class CpuParts:
    """`seconds` by name, in the order in which parts came first."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What is done inside belongs to `name`. Parts do not lie in each other."""
        begin = sum(os.times()[:4])
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + sum(os.times()[:4]) - begin

    def rounded(self) -> dict[str, float]:
        """To hundredths, as the system counts."""
        return {name: round(value, 2) for name, value in self.seconds.items()}
