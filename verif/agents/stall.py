"""When an agent holds back: endless generators of True (stall) and False, from the test's own rng."""

from collections.abc import Iterator
from itertools import repeat

import numpy as np

__all__ = ["STYLES", "bursty", "never", "randomly", "styled"]


def never() -> Iterator[bool]:
    """Full speed."""
    return repeat(False)


def randomly(rng: np.random.Generator, share: float = 0.5) -> Iterator[bool]:
    """Each cycle by itself, stalled with probability `share`."""
    while True:
        yield from (rng.random(256) < share).tolist()


def bursty(rng: np.random.Generator, longest: int = 16) -> Iterator[bool]:
    """Runs of stalls and runs of free cycles of random length."""
    stalled = bool(rng.integers(2))
    while True:
        yield from repeat(stalled, int(rng.integers(1, longest + 1)))
        stalled = not stalled


STYLES = ("never", "rarely", "half", "mostly", "bursty")


def styled(style: str, rng: np.random.Generator) -> Iterator[bool]:
    """One of STYLES by name, so that tests can be parametrised by it."""
    if style == "bursty":
        return bursty(rng)
    share = {"never": 0.0, "rarely": 0.1, "half": 0.5, "mostly": 0.85}[style]
    return never() if share == 0 else randomly(rng, share)
