"""Words of operations, and random programs of them: nested loops, branches over words, fields from registers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from firmware.loops.words import operation, sequence, with_fills
from rtl.contract.isa import INSTRUCTION
from rtl.contract.sequence import (
    FILL,
    FILL_AT,
    FILLED,
    FILLS,
    OPERATION,
    OPERATIONS,
    OPERATIONS_AT,
    SEQUENCE,
    WRAPPING,
    SeqOp,
    filled_place,
)

__all__ = [
    "ANY",
    "DATA",
    "EDGES",
    "ZERO",
    "Data",
    "Instructions",
    "Maker",
    "operation",
    "plain",
    "random_program",
    "revealing",
    "scrambled",
    "sequence",
    "with_fills",
]

ZERO = 63
"""A register that no random program writes."""

DATA = 32
"""Registers that random operations write; counters of loops are above."""
EDGES = (0, 1, -1, 2, 31, 32, (1 << 31) - 1, -(1 << 31), 0x5555_5555)
_COMPUTING = tuple(op for op in SeqOp if 0 < op < SeqOp.SEMAPHORE)
_HALVES = [code for code, (name, _) in enumerate(FILLED) if name.startswith("imm")]
_PLACES = [(0, 0, False)] + [filled_place(name, from_bit) for name, from_bit in FILLED[1:]]
_FARTHEST = 1 << 31


def plain(rng: np.random.Generator) -> int:
    """Any word that a sequencer lets through as it is."""
    word = int.from_bytes(rng.bytes(INSTRUCTION.bytes), "little")
    word &= ~(((1 << FILLS * FILL.width) - 1) << FILL_AT)
    return word ^ (word & 0xFF == SEQUENCE)


def revealing(rng: np.random.Generator, registers: Sequence[int]) -> int:
    """A word in which up to FILLS registers are seen as they are: halves of immediates that were 0."""
    word = plain(rng) & (1 << INSTRUCTION.offset("imm0")) - 1
    codes = rng.permutation(_HALVES)
    return with_fills(word, [(int(code), register) for code, register in zip(codes, registers)])


@dataclass(frozen=True, slots=True)
class Instructions:
    """What random programs are made of: `plain` makes a word, of `codes` of FILLED registers go into one, `revealing`
    makes one that shows registers."""

    plain: Callable[[np.random.Generator], int]
    codes: Sequence[int]
    revealing: Callable[[np.random.Generator, Sequence[int]], int]


ANY = Instructions(plain, range(1, len(FILLED)), revealing)
"""Words of any bits, for a sequencer alone."""


@dataclass(slots=True)
class Maker:
    """A program under construction, of `kind`; branches go to labels."""

    kind: Instructions = ANY
    words: list[int] = field(default_factory=list[int])
    _waiting: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    _labels: dict[int, int] = field(default_factory=dict[int, int])

    def label(self) -> int:
        """A new one, which is nowhere yet."""
        self._labels[len(self._labels)] = -1
        return len(self._labels) - 1

    def place(self, label: int) -> None:
        """The label is the word that comes next."""
        self._labels[label] = len(self.words)

    def add(self, *operations: int, goes: Mapping[int, int] | None = None, fence: bool = False) -> None:
        """A word of operations; `goes`: of branches by their place in the word, the label."""
        for turn, label in (goes or {}).items():
            self._waiting.append((len(self.words), turn, label))
        self.words.append(sequence(*operations, fence=fence))

    def program(self) -> list[int]:
        """All words, branches with the numbers of words in them."""
        words = list(self.words)
        for at, turn, label in self._waiting:
            place = OPERATIONS_AT + turn * OPERATION.width + OPERATION.offset("immediate")
            words[at] |= self._labels[label] << place
        return words


def _some(rng: np.random.Generator) -> int:
    return int(rng.choice(EDGES)) if rng.random() < 0.4 else int(rng.integers(-(1 << 31), 1 << 31))


def _operations(rng: np.random.Generator, count: int, semaphores: int, hit: Callable[[str], None]) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        d, a, b = (int(n) for n in rng.integers(DATA, size=3))
        if semaphores and rng.random() < 0.3:
            if rng.random() < 0.5:
                found.append(operation(SeqOp.SEMAPHORE, d, immediate=int(rng.integers(semaphores))))
                hit("SEMAPHORE")
            elif len(found) + 2 <= count:  # from a place that a register shifts
                found.append(operation(SeqOp.AND, a, a, None, int(rng.choice((0xFF, 0xFFF, 0)))))
                found.append(operation(SeqOp.LOAD, d, a, None, int(rng.integers(1 << 18))))
                hit("LOAD")
            continue
        if rng.random() < 0.05 and len(found) + 2 <= count:
            most = int(rng.choice((0, 1, 0xFF, _FARTHEST - 1)))
            found.append(operation(SeqOp.AND, a, a, None, most))
            found.append(operation(SeqOp.BOUND, d, a, None, most))
            hit("BOUND")
            continue
        op = SeqOp(int(rng.choice(_COMPUTING)))
        b_register = None if rng.random() < 0.4 else b
        found.append(operation(op, d, a, b_register, 0 if b_register is not None else _some(rng)))
        hit(op.name)
    return found


@dataclass(slots=True)
class Data:
    """Numbers in HBM from the 32-bit word `first` on, which programs load."""

    first: int
    numbers: list[int] = field(default_factory=list[int])

    def place(self, number: int) -> int:
        """Where a further one lies."""
        self.numbers.append(number)
        return self.first + len(self.numbers) - 1

    def bytes(self) -> bytes:
        """All of them."""
        return b"".join((number & 0xFFFF_FFFF).to_bytes(4, "little") for number in self.numbers)


def scrambled(rng: np.random.Generator, words: Sequence[int], data: Data | None = None) -> list[int]:
    """A program that shows `words`, which name no registers: some fields come from registers, runs of words lie in any
    order, and branches lead from one to the next. Some numbers are loaded from `data`, where they are added."""
    runs = np.split(np.arange(len(words)), np.sort(rng.integers(0, len(words) + 1, len(words) // 8)))
    make = Maker()
    labels = [make.label() for _ in range(len(runs) + 1)]
    jump = operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO)
    make.add(jump, goes={0: labels[0]})
    for n in rng.permutation(len(runs)).tolist():
        make.place(labels[n])
        for word in (words[int(at)] for at in runs[n]):
            if rng.random() < 0.4:
                _filled(rng, make, lambda name: None, fits=True, shows=word, data=data)
            else:
                make.words.append(word)
        make.add(jump, goes={0: labels[n + 1]}, fence=bool(rng.random() < 0.2))
    make.place(labels[-1])
    return make.program()


def _filled(
    rng: np.random.Generator,
    make: Maker,
    hit: Callable[[str], None],
    fits: bool,
    shows: int | None = None,
    data: Data | None = None,
) -> None:
    """A word with registers, and before it one that gives them values which go into their fields. `shows`: as this."""
    loads = data is not None and rng.random() < 0.5
    word, fills, sets = make.kind.plain(rng) if shows is None else shows, [], []
    codes = make.kind.codes
    count = int(rng.integers(1, min(FILLS, len(codes)) + 1))
    for n, code in enumerate(_apart(rng.permutation(codes).tolist(), count)):
        name, from_bit = FILLED[code]
        at, width, is_signed = _PLACES[code]
        mask = (1 << width) - 1
        old = word >> at & mask
        old -= (old >> width - 1 & is_signed) << width
        least = -(1 << width - 1) if is_signed else 0
        low, high = (least, least + mask) if name not in WRAPPING else (-_FARTHEST, _FARTHEST - 1)
        if width >= 32 and name not in WRAPPING:  # what a register reaches from what is there
            low, high = max(low, old - _FARTHEST + 1), min(high, old + _FARTHEST - 1)
        want = int(rng.choice((low, high))) if rng.random() < 0.3 else int(rng.integers(low, high + 1))
        value = want - old if name not in WRAPPING else want
        if shows is not None:  # the field is what it has to be less what the register adds
            value = old - want if name not in WRAPPING else want
            rest = want if name not in WRAPPING else old - want
            word = word & ~(mask << at) | (rest & mask) << at
        if not fits and n == 0 and name not in WRAPPING and width < 32:
            value = int(rng.choice((low - 1 - old, high + 1 - old)))
        if data is not None and loads:
            sets.append(operation(SeqOp.LOAD, n, ZERO, None, data.place(value)))
        else:
            sets.append(operation(SeqOp.ADD, n, ZERO, None, value))
        fills.append((code, n))
        hit(f"fill {name}{f' from {from_bit}' if name.startswith('imm') else ''}")
    make.add(*sets, fence=loads)
    make.words.append(with_fills(word, [fills[n] for n in rng.permutation(len(fills))]))


def _apart(codes: Sequence[int], count: int) -> list[int]:
    """The first `count` of these fields that do not overlap."""
    found: list[int] = []
    for code in codes:
        at, width, _ = _PLACES[code]
        if len(found) < count and all(a >= at + width or a + w <= at for a, w, _ in (_PLACES[c] for c in found)):
            found.append(code)
    return found


def random_program(
    rng: np.random.Generator,
    size: int,
    semaphores: int,
    hit: Callable[[str], None] = lambda name: None,
    kind: Instructions = ANY,
) -> list[int]:
    """About `size` words that end; one in ten has a field from a register that does not fit, if there is such a field.
    `hit`: what is in it. `semaphores`: those that may be read."""
    make = Maker(kind)
    bad = size > 4 and rng.random() < 0.1
    _block(rng, make, size, 0, semaphores, hit)
    for first in range(0, DATA, FILLS):
        make.words.append(kind.revealing(rng, range(first, first + FILLS)))
    if bad:
        _filled(rng, make, hit, fits=False)
        make.words += [kind.plain(rng), kind.plain(rng)]
    return make.program()


def _block(
    rng: np.random.Generator, make: Maker, size: int, depth: int, semaphores: int, hit: Callable[[str], None]
) -> None:
    end = len(make.words) + size
    while len(make.words) < end:
        left = end - len(make.words)
        kind = rng.random()
        if kind < 0.35:
            make.words.append(make.kind.plain(rng))
        elif kind < 0.5:
            _filled(rng, make, hit, fits=True)
        elif kind < 0.65:
            fence = bool(rng.integers(4) == 0)
            count = int(rng.integers(OPERATIONS + 1))
            make.add(*_operations(rng, count, semaphores if fence else 0, hit), fence=fence)
        elif kind < 0.85 and depth < 3:
            _loop(rng, make, int(rng.integers(1, max(2, left))), depth, semaphores, hit)
        else:
            _either(rng, make, int(rng.integers(1, max(2, left))), depth, semaphores, hit)


def _loop(
    rng: np.random.Generator, make: Maker, size: int, depth: int, semaphores: int, hit: Callable[[str], None]
) -> None:
    """Counted, its end looked at behind the body or before it, when it may have no turn at all."""
    counter, times = DATA + 2 * depth, DATA + 2 * depth + 1
    first = bool(rng.integers(2))
    count = int(rng.integers(0 if first else 1, 4))
    make.add(operation(SeqOp.AND, counter, ZERO), operation(SeqOp.ADD, times, ZERO, None, count))
    top, out = make.label(), make.label()
    make.place(top)
    if first:
        make.add(operation(SeqOp.BRANCH_NOT_LESS, 0, counter, times), goes={0: out})
    _block(rng, make, size, depth + 1, semaphores, hit)
    on = operation(SeqOp.ADD, counter, counter, None, 1)
    if first:
        make.add(on, operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO), goes={1: top})
    else:
        make.add(on, operation(SeqOp.BRANCH_LESS, 0, counter, times), goes={1: top})
    make.place(out)
    hit("a loop looks first" if first else "a loop looks behind")


def _either(
    rng: np.random.Generator, make: Maker, size: int, depth: int, semaphores: int, hit: Callable[[str], None]
) -> None:
    """Words that a branch may leave out, decided by what random operations left."""
    a, b = (int(n) for n in rng.integers(DATA, size=2))
    op = SeqOp(int(rng.integers(SeqOp.BRANCH_EQUAL, SeqOp.BRANCH_NOT_LESS + 1)))
    out = make.label()
    some = _operations(rng, int(rng.integers(OPERATIONS - 1)), 0, hit)
    make.add(*some, operation(op, 0, a, a if rng.random() < 0.2 else b), goes={len(some): out})
    _block(rng, make, size, depth + 1, semaphores, hit)
    make.place(out)
    hit(op.name)
