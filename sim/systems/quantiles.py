"""Quantiles of a histogram with a bin a cycle."""

from collections.abc import Sequence

__all__ = ["quantiles"]


def quantiles(bins: Sequence[int], most: int) -> dict[str, int]:
    """p50, p99 and the largest; the last bin holds everything beyond, so its place says `most`."""
    total, found, seen = sum(bins), {"p50": 0, "p99": 0, "max": 0}, 0
    for cycles, count in enumerate(bins):
        seen += count
        last = cycles == len(bins) - 1
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            if count and seen - count < share * total <= seen:
                found[name] = most if last else cycles
    return found
