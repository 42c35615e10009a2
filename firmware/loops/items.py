"""What a rolled queue consists of: words, and loops of them whose fields grow by a constant from turn to turn."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rtl.contract.isa import INSTRUCTION
from rtl.contract.sequence import FILL, FILL_AT, FILLED, FILLS, OPERATIONS, SEQUENCE, WRAPPING, filled_place

__all__ = ["Item", "Items", "is_plain"]

_PAD = ((1 << FILLS * FILL.width) - 1) << FILL_AT
_NAMES = {f.name for f in INSTRUCTION}
_FIELDS = [(name, from_bit) for name, from_bit in FILLED[1:] if name in _NAMES]
"""Those of descriptors, which come behind them, lie in the same bits: what moves there moves these."""
_PLACES = tuple(filled_place(name, from_bit) for name, from_bit in _FIELDS)
_KEPT = ~sum((1 << width) - 1 << at for at, width, _ in _PLACES)
_WRAPS = np.array([name in WRAPPING for name, _ in _FIELDS])


def is_plain(word: int) -> bool:
    """Whether a sequencer lets the word through as it is."""
    return word & 0xFF != SEQUENCE and not word & _PAD


def _signed(values: np.ndarray) -> np.ndarray:
    return (values + (1 << 31) & (1 << 32) - 1) - (1 << 31)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Item:
    """A word, or a loop of `count` turns of `body`, items of its first turn.

    `values` and `strides`, [leaves, fields]: those of FILLED in all words of the first turn, and what they grow by from
    turn to turn. `shape`: a number, the same for items that differ in `values` only.
    """

    shape: int
    values: np.ndarray
    strides: np.ndarray
    varies: np.ndarray  # bool: in this loop or one in it
    kept: int = 0  # of a word, all but the fields
    count: int = 1
    body: tuple["Item", ...] = ()
    words: int = 1  # about so many when rolled

    @property
    def word(self) -> int:
        """Of a word, all of it."""
        fields = zip(self.values[0].tolist(), _PLACES, strict=True)
        return self.kept | sum((value & (1 << width) - 1) << at for value, (at, width, _) in fields)

    def turns(self) -> Iterator["Item"]:
        """The items of all turns one behind the other."""
        for turn in range(self.count):
            at = 0
            for one in self.body:
                by = turn * self.strides[at : at + len(one.values)]
                yield _moved(one, by) if turn else one
                at += len(one.values)


def _moved(item: Item, by: np.ndarray) -> Item:
    values = item.values + by
    values[:, _WRAPS] = _signed(values[:, _WRAPS])
    body, at = [], 0
    for one in item.body:
        body.append(_moved(one, by[at : at + len(one.values)]))
        at += len(one.values)
    return Item(
        shape=item.shape,
        values=values,
        strides=item.strides,
        varies=item.varies,
        kept=item.kept,
        count=item.count,
        body=tuple(body),
        words=item.words,
    )


@dataclass(slots=True)
class Items:
    """Makes items; all of one queue come from one of these."""

    _shapes: dict[Hashable, int] = field(default_factory=dict[Hashable, int])

    def _shape(self, shape: Hashable) -> int:
        return self._shapes.setdefault(shape, len(self._shapes))

    def word(self, word: int) -> Item:
        """A word as an item."""
        found = [word >> at & (1 << width) - 1 for at, width, _ in _PLACES]
        signed = [v - (1 << w) if s and v >> w - 1 else v for v, (_, w, s) in zip(found, _PLACES, strict=True)]
        values = np.array([signed], np.int64)
        kept = word & _KEPT
        return Item(
            shape=self._shape(kept),
            values=values,
            strides=np.zeros_like(values),
            varies=np.zeros_like(values, bool),
            kept=kept,
        )

    def loop(self, count: int, body: Sequence[Item], strides: np.ndarray) -> Item:
        """`count` turns of these items."""
        return Item(
            shape=self._shape((count, tuple(one.shape for one in body), strides.tobytes())),
            values=np.concatenate([one.values for one in body]),
            strides=strides,
            varies=np.concatenate([one.varies for one in body]) | (strides != 0),
            count=count,
            body=tuple(body),
            words=sum(one.words for one in body) + Items.end_words(strides),
        )

    @staticmethod
    def end_words(strides: np.ndarray) -> int:
        """About so many words a loop has behind its body."""
        operations = len(set(strides[strides != 0].tolist())) + 3  # and its counter
        return -(-operations // OPERATIONS)

    @staticmethod
    def growth(a: Item, b: Item) -> np.ndarray | None:
        """What fields grow by from one item to the other, [leaves, fields]; None if the items differ in more than
        that, or too many fields of a word would vary."""
        if a.shape != b.shape:
            return None
        by = b.values - a.values
        by[:, _WRAPS] = _signed(by[:, _WRAPS])
        return None if ((by != 0) | a.varies).sum(axis=1).max() > FILLS else by
