"""What a run spent, before anybody assumes what it is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["CLOCK_TOGGLES", "Rows", "Spent"]

CLOCK_TOGGLES = 2
"""Edges of a cycle."""


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of `bits`, read or written in a macro of `macro_bytes`, which belongs to a part."""

    part: str
    bits: int
    macro_bytes: float
    count: int


@dataclass(frozen=True, slots=True)
class Spent:
    """`logic`: gate equivalents that switch, by kind of data and part; `clocked`: those of all flip-flops of a clock in
    all of its edges; `bits` that leave the chip, by the section of the stated figures; `work` that was done, where runs
    of the same workload may differ in it."""

    logic: Mapping[str, Mapping[str, float]]
    clocked: Mapping[str, float]
    rows: Sequence[Rows]
    bits: Mapping[str, int]
    work: float = 1.0
