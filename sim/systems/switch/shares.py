"""What the sources of one hot output are entitled to, and how evenly they were served against that."""

from collections.abc import Sequence
from itertools import combinations

__all__ = ["CAP_WINDOW_FLITS", "entitled", "jain"]

CAP_WINDOW_FLITS = 64
"""Flits of an output in which the strict class has its cap (rtl.switch.scheduling.class_choice)."""


def jain(shares: Sequence[float]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one has everything."""
    squares = sum(n * n for n in shares)
    return round(sum(shares) ** 2 / (len(shares) * squares), 6) if squares else 1.0


def entitled(classes: Sequence[int], weights: Sequence[int], strict_class: int, strict_cap: int) -> list[float]:
    """Of one output that all want, the share of each source, in parts of 1.

    classes: bits of the classes that a source sends; 0: it is silent and is entitled to nothing. Each class that
    anybody sends has its share by the weights (the strict one its cap, and everything if it is alone); of these the
    sources get max-min shares: nobody's can grow but by taking from one that has no more.
    """
    used = [c for c in range(len(weights)) if any(mask >> c & 1 for mask in classes)]
    others = [c for c in used if c != strict_class]
    cap = (strict_cap / CAP_WINDOW_FLITS if others else 1.0) if strict_class in used else 0.0
    share = {c: weights[c] / sum(weights[d] for d in others) * (1 - cap) for c in others}
    share |= {strict_class: cap} if cap else {}

    found = [0.0] * len(classes)
    left = {n for n, mask in enumerate(classes) if mask}
    free = set(used)
    while left:
        # the classes whose sources, those that send nothing else that is left, get least
        tightest = None
        for size in range(1, len(free) + 1):
            for group in combinations(sorted(free), size):
                bits = sum(1 << c for c in free - set(group))
                inside = {n for n in left if not classes[n] & bits}
                if inside:
                    each = sum(share[c] for c in group) / len(inside)
                    if tightest is None or each < tightest[0] - 1e-12:
                        tightest = (each, set(group), inside)
        assert tightest is not None  # the group of all classes holds every source
        each, group, inside = tightest
        for n in inside:
            found[n] = each
        left -= inside
        free -= group
    return found
