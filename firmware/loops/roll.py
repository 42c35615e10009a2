"""The words of a queue with its loops rolled up; its sequencer shows the same words. docs/kernels.md, Loops."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from firmware.loops.emit import emit
from firmware.loops.fold import fold
from firmware.loops.items import Item, Items, is_plain

__all__ = ["roll"]

SIZES = 8
"""Sizes of turns that are tried, the most frequent ones: each costs a comparison of all words."""


@dataclass(slots=True)
class _Span:
    """A loop in the queue: where its turns begin, its end, and the loops in it."""

    bounds: tuple[int, ...]
    inside: list["_Span"] = field(default_factory=list["_Span"])


def _nested(spans: Sequence[tuple[int, ...]], end: int) -> _Span:
    """All spans in one that is the whole queue. ValueError if two overlap."""
    root = _Span((0, end))
    around = [root]
    # Of two alike the one that was said later is the outer one: loops end from the innermost outwards.
    for _, bounds in sorted(enumerate(spans), key=lambda s: (s[1][0], -s[1][-1], -s[0])):
        while around[-1].bounds[-1] <= bounds[0] and around[-1] is not root:
            around.pop()
        if list(bounds) != sorted(bounds) or not 0 <= bounds[0] <= bounds[-1] <= around[-1].bounds[-1]:
            raise ValueError(f"a loop has turns at {bounds}, the one around it ends at {around[-1].bounds[-1]}")
        if bounds[0] == bounds[-1]:
            continue
        span = _Span(bounds)
        around[-1].inside.append(span)
        around.append(span)
    return root


def _rolled(span: _Span, words: Sequence[int], make: Items) -> list[Item]:
    """A loop's items, the loops in it rolled."""
    items: list[Item] = []
    place: dict[int, int] = {}  # of words, between loops inside, their items
    at = span.bounds[0]
    for inner in [*span.inside, _Span((span.bounds[-1],))]:
        for n in range(at, inner.bounds[0]):
            place[n] = len(items)
            items.append(make.word(words[n]))
        at = inner.bounds[0]
        place[at] = len(items)
        if len(inner.bounds) > 1:
            items += _rolled(inner, words, make)
            at = inner.bounds[-1]
            place[at] = len(items)
    begins = sorted({place[b] for b in span.bounds if b in place})
    sizes = Counter(b - a for a, b in zip(begins, begins[1:]))
    return fold(items, [size for size, _ in sizes.most_common(SIZES)], make)


def roll(words: Sequence[int], spans: Sequence[tuple[int, ...]]) -> list[int]:
    """Fewer words of 1024 bits from which the sequencer of a queue makes exactly `words`, or `words` themselves.

    `spans`: of each loop, inner ones before those around them, the number of the first word of each turn, and its end.
    Errors: ValueError if loops overlap.
    """
    spans = [span for span in spans if len(span) > 2]
    root = _nested(spans, len(words))
    if not spans or not all(map(is_plain, words)):
        return list(words)
    make, items, at = Items(), [], 0
    for span in root.inside:
        items += [make.word(word) for word in words[at : span.bounds[0]]]
        items += _rolled(span, words, make)
        at = span.bounds[-1]
    items += [make.word(word) for word in words[at:]]
    found = emit(items)
    return found if len(found) < len(words) else list(words)
