"""What a queue's sequencer shows of a program: plain integers, word by word. docs/sequencer.md."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rtl.contract.isa import Cause
from rtl.contract.sequence import (
    FILL,
    FILL_AT,
    FILLED,
    FILLS,
    OPERATION,
    OPERATIONS,
    OPERATIONS_AT,
    REGISTERS,
    SEQUENCE,
    SEQUENCE_HEADER,
    WRAPPING,
    SeqOp,
    filled_place,
)

__all__ = ["Sequencer", "Shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A word as the check sees it, the number it has in the program; with a cause it is refused, and the last."""

    index: int
    word: int
    cause: Cause = Cause.NONE


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class _RefusedError(Exception):
    """A word that cannot be executed, and why."""

    def __init__(self, cause: Cause = Cause.BAD_SEQUENCE):
        super().__init__()
        self.cause = cause


class Sequencer:
    """Of a program `words`. `semaphore` tells the value of one; `semaphores`: how many there are; `limit`: words of
    operations in a row after which the program is refused. `load` tells the 32 bits with this number in HBM, or why
    they cannot be had; without it there is no HBM."""

    def __init__(
        self,
        words: Sequence[int],
        semaphore: Callable[[int], int],
        semaphores: int,
        limit: int = 1 << 12,
        load: Callable[[int], int | Cause] = lambda number: Cause.OUT_OF_RANGE,
    ):
        self.load = load
        self.words = words
        self.semaphore = semaphore
        self.semaphores = semaphores
        self.limit = limit
        self.registers = [0] * REGISTERS

    def __iter__(self) -> Iterator[Shown]:
        at = alone = 0
        while at < len(self.words):
            word = self.words[at]
            try:
                if word & 0xFF == SEQUENCE:
                    alone += 1
                    follows = self._execute(word, at)
                    if alone == self.limit:
                        raise _RefusedError(Cause.ENDLESS_LOOP)
                    at = follows
                    continue
                shown = self._filled(word)
            except _RefusedError as refused:
                yield Shown(at, word, refused.cause)
                return
            yield Shown(at, shown)
            at, alone = at + 1, 0

    def _execute(self, word: int, at: int) -> int:
        """The word that follows."""
        head = SEQUENCE_HEADER.offset("fence") + 1
        if word % (1 << OPERATIONS_AT) >> head or word >> OPERATIONS_AT + OPERATIONS * OPERATION.width:
            raise _RefusedError
        for n in range(OPERATIONS):
            o = OPERATION.unpack(word >> OPERATIONS_AT + n * OPERATION.width & (1 << OPERATION.width) - 1)
            if o["op"] not in SeqOp.__members__.values() or o["reserved"]:
                raise _RefusedError
            op = SeqOp(o["op"])
            if op is SeqOp.NONE:
                break
            a = self.registers[o["a"]]
            b = o["immediate"] if o["immediate_b"] else self.registers[o["b"]]
            if op.name.startswith("BRANCH"):
                if o["immediate_b"]:
                    raise _RefusedError
                jump = {"EQUAL": a == b, "UNLIKE": a != b, "LESS": a < b, "NOT_LESS": a >= b}[op.name.partition("_")[2]]
                if jump:
                    if not 0 <= o["immediate"] <= len(self.words):
                        raise _RefusedError
                    return o["immediate"]
                continue
            if op in (SeqOp.SEMAPHORE, SeqOp.LOAD) and not SEQUENCE_HEADER.unpack(word % (1 << OPERATIONS_AT))["fence"]:
                raise _RefusedError
            self.registers[o["d"]] = self._result(op, a, b)
        return at + 1

    def _result(self, op: SeqOp, a: int, b: int) -> int:
        if op is SeqOp.SEMAPHORE:
            if not 0 <= b < self.semaphores:
                raise _RefusedError
            return _signed(self.semaphore(b))
        if op is SeqOp.LOAD:
            found = self.load(a + b)
            if isinstance(found, Cause):
                raise _RefusedError(found)
            return _signed(found)
        if op is SeqOp.BOUND:
            if not 0 <= a <= b:
                raise _RefusedError(Cause.BAD_SIZE)
            return a
        by = b % 32
        return _signed(
            {
                SeqOp.ADD: a + b,
                SeqOp.SUBTRACT: a - b,
                SeqOp.MULTIPLY: a * b,
                SeqOp.SHIFT_LEFT: a << by,
                SeqOp.SHIFT_RIGHT: a >> by,
                SeqOp.AND: a & b,
                SeqOp.OR: a | b,
                SeqOp.MIN: min(a, b),
                SeqOp.MAX: max(a, b),
                SeqOp.EQUAL: int(a == b),
                SeqOp.LESS: int(a < b),
            }[op]
        )

    def _filled(self, word: int) -> int:
        """The word with registers added to its fields, none named any more."""
        for n in range(FILLS):
            place = FILL_AT + n * FILL.width
            fill = FILL.unpack(word >> place & (1 << FILL.width) - 1)
            if fill["reserved"] or fill["field"] >= len(FILLED) or (fill["register"] and not fill["field"]):
                raise _RefusedError
            word &= ~(((1 << FILL.width) - 1) << place)
            if fill["field"]:
                word = self._added(word, *FILLED[fill["field"]], self.registers[fill["register"]])
        return word

    @staticmethod
    def _added(word: int, name: str, from_bit: int, value: int) -> int:
        at, width, signed = filled_place(name, from_bit)
        mask = (1 << width) - 1
        total = word >> at & mask
        if signed and total >> width - 1:
            total -= 1 << width
        total += value
        least = -(1 << width - 1) if signed else 0
        if name not in WRAPPING and not least <= total < least + (1 << width):
            raise _RefusedError
        return word & ~(mask << at) | (total & mask) << at
