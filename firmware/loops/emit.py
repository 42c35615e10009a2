"""Words of a queue from items: a loop counts down in its last words, registers hold what its fields have grown by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from firmware.loops.items import Item
from firmware.loops.words import operation, sequence, with_fills
from rtl.contract.sequence import OPERATIONS, REGISTERS, SeqOp

__all__ = ["emit"]

ZERO = REGISTERS - 1
"""A register that nobody writes."""

Steps = tuple[int, ...]
"""What a field grows by in each loop around it, from the outermost inwards to the last that counts."""
Row = tuple[Steps, ...]
"""Steps of each field of a word."""


@dataclass(eq=False, slots=True)
class _Level:
    """A loop with the register that counts its turns, and those of fields whose innermost loop it is."""

    item: Item
    outer: "_Level | None"
    counter: int = 0
    own: dict[Steps, int] = field(default_factory=dict[Steps, int])  # register of fields that vary in it
    inside: dict[int, "_Level"] = field(default_factory=dict[int, "_Level"])  # by place in the body

    def all(self) -> Iterator["_Level"]:
        """This one and those in it."""
        yield self
        for level in self.inside.values():
            yield from level.all()

    def around(self) -> list["_Level"]:
        """Those around it and itself, the outermost first."""
        return [*(self.outer.around() if self.outer else ()), self]


class _Writer:
    """Words so far, operations that wait for their word, and what registers hold between loops in no other."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self._operations: list[int] = []
        self._state = [0] * REGISTERS

    def end_word(self) -> None:
        for at in range(0, len(self._operations), OPERATIONS):
            self.words.append(sequence(*self._operations[at : at + OPERATIONS]))
        self._operations = []

    def add(self, register: int, value: int, to: int | None = None) -> None:
        """register = to + value; to itself if not given. Nothing if that changes nothing."""
        value = (value + (1 << 31)) % (1 << 32) - (1 << 31)
        if value or to is not None:
            of = register if to is None else to
            self._operations.append(operation(SeqOp.ADD, register, of, None, value))

    def branch(self, counter: int, top: int) -> None:
        """Count down, and on to the word `top` unless it is 0 now."""
        self.add(counter, -1)
        self._operations.append(operation(SeqOp.BRANCH_UNLIKE, 0, counter, ZERO, top))

    def items(self, items: Sequence[Item], level: _Level | None = None, steps: Sequence[Row] = ()) -> None:
        """Words of these items. `steps`: of each leaf and field in the loops around."""
        at = 0
        for place, one in enumerate(items):
            mine = steps[at : at + len(one.values)]
            if one.body and level is None:
                self._nest(one)
            elif one.body and level is not None:
                self._loop(level.inside[place], mine)
            else:
                self._word(one, level, mine[0] if mine else ())
            at += len(one.values)

    def _word(self, item: Item, level: _Level | None, steps: Sequence[Steps]) -> None:
        self.end_word()
        fills = [(n + 1, _register(level, s)) for n, s in enumerate(steps) if level and any(s)]
        self.words.append(with_fills(item.word, fills))

    def _nest(self, item: Item) -> None:
        """A loop that is in no other."""
        root = _levels(item, None)
        _find(root, [((),) * item.values.shape[1]] * len(item.values))
        levels = list(root.all())
        wanted = [(level, None, level.item.count) for level in levels]
        wanted += [(level, steps, 0) for level in levels for steps in level.own]
        if len(wanted) >= ZERO:
            self.items(list(item.turns()))
            return
        free = list(range(ZERO))
        later: list[tuple[_Level, Steps | None, int]] = []
        for level, steps, value in wanted:  # registers that are right already
            right = next((r for r in free if self._state[r] == value), None)
            if right is None:
                later.append((level, steps, value))
            else:
                free.remove(right)
                _take(level, steps, right)
        for level, steps, value in later:
            register = free.pop(0)
            self.add(register, value, ZERO)
            _take(level, steps, register)
        self._loop(root, [((),) * item.values.shape[1]] * len(item.values))
        for level in levels:
            self._state[level.counter] = level.item.count if level.outer else 0
            for steps, register in level.own.items():
                self._state[register] = _signed(root.item.count * steps[0])

    def _loop(self, level: _Level, steps: Sequence[Row]) -> None:
        self.end_word()
        top = len(self.words)
        self.items(level.item.body, level, _deeper(level.item, steps))
        depth = len(level.around()) - 1
        for own, register in level.own.items():
            self.add(register, own[depth])
        self.branch(level.counter, top)
        if level.outer is None:
            return
        self.add(level.counter, level.item.count, ZERO)
        for inner in level.all():
            for own, register in inner.own.items():
                self.add(register, own[depth - 1] - level.item.count * own[depth])


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _deeper(item: Item, steps: Sequence[Row]) -> list[Row]:
    """Steps in the body of a loop, of those around it."""
    rows = zip(steps, item.strides.tolist(), strict=True)
    return [tuple((*s, by) for s, by in zip(row, grows, strict=True)) for row, grows in rows]


def _short(steps: Steps) -> Steps:
    """Without the zeros at its end."""
    while steps and not steps[-1]:
        steps = steps[:-1]
    return steps


def _levels(item: Item, outer: _Level | None) -> _Level:
    level = _Level(item, outer)
    level.inside = {n: _levels(one, level) for n, one in enumerate(item.body) if one.body}
    return level


def _find(level: _Level, steps: Sequence[Row]) -> None:
    """Registers that a loop and those in it need, each at the innermost loop in which it changes."""
    inside, at = _deeper(level.item, steps), 0
    for place, one in enumerate(level.item.body):
        mine = inside[at : at + len(one.values)]
        if place in level.inside:
            _find(level.inside[place], mine)
        else:
            around = level.around()
            for s in map(_short, mine[0]):
                if s:
                    around[len(s) - 1].own[s] = 0
        at += len(one.values)


def _register(level: _Level, steps: Steps) -> int:
    short = _short(steps)
    return level.around()[len(short) - 1].own[short]


def _take(level: _Level, steps: Steps | None, register: int) -> None:
    if steps is None:
        level.counter = register
    else:
        level.own[steps] = register


def emit(items: Sequence[Item]) -> list[int]:
    """The words of a queue; a loop that needs more registers than there are stays unrolled."""
    writer = _Writer()
    writer.items(items)
    writer.end_word()
    return writer.words
