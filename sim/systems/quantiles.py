"""Quantiles of a histogram with a bin a cycle."""

from collections.abc import Sequence

__all__ = ["LATENCY_BINS", "quantiles", "told_cycles"]

LATENCY_BINS = 1 << 14
"""Of latencies by class, as sim/native/link_pair.cpp and ledger.h have them; the last one holds everything beyond."""


def quantiles(bins: Sequence[int], most: int | None = None) -> dict[str, int]:
    """p50, p99 and the largest. The last bin holds everything beyond: what lies there is its number, and means that or
    more, but for the largest where `most` is known."""
    total, seen = sum(bins), 0
    found = {"p50": 0, "p99": 0, "max": 0}
    for cycles, count in enumerate(bins):
        seen += count
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            if count and seen - count < share * total <= seen:
                found[name] = cycles
    if most is not None and found["max"] == len(bins) - 1:
        found["max"] = most
    return found


def told_cycles(cycles: int) -> str:
    """A latency by class as a reader should take it."""
    return f"{cycles:,} or more" if cycles == LATENCY_BINS - 1 else f"{cycles:,}"
