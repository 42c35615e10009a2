"""Words of a queue whose run decides: what its sequencer executes."""

from collections.abc import Callable, Mapping, Sequence

from firmware.decisions.numbers import Condition, Number, Register
from firmware.decisions.reckoner import ZERO, Reckoner
from firmware.decisions.steps import Guard, Items, Read, Step
from firmware.loops.words import operation, sequence, with_fills
from firmware.program import Instruction
from rtl.contract.sequence import FILLED, OPERATION, OPERATIONS, OPERATIONS_AT, SeqOp

__all__ = ["queue_words"]


class _Words:
    """Words so far; branches to labels get their numbers at the end."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self._branches: list[tuple[int, int, object]] = []  # word, turn, label
        self._labels: dict[object, int] = {}

    def place(self, label: object) -> None:
        """The word that comes next."""
        self._labels[label] = len(self.words)

    def operations(self, operations: Sequence[int], label: object = None) -> None:
        """Words of operations, the last of which goes to a label if one is given."""
        for at in range(0, len(operations), OPERATIONS):
            self.words.append(sequence(*operations[at : at + OPERATIONS]))
        if label is not None:
            self._branches.append((len(self.words) - 1, (len(operations) - 1) % OPERATIONS, label))

    def moved(self, word: int, moves: Sequence[tuple[str, Number]]) -> None:
        """An instruction, to whose fields registers are added."""
        reckoner = Reckoner()
        fills = [(FILLED.index((f"descriptor_{side}", 0)), reckoner.register(number)) for side, number in moves]
        if reckoner.operations:
            self.operations(reckoner.operations)
        self.words.append(with_fills(word, fills))

    def all(self) -> list[int]:
        """All words, with the numbers that branches go to."""
        words = list(self.words)
        for at, turn, label in self._branches:
            words[at] |= self._labels[label] << OPERATIONS_AT + turn * OPERATION.width + OPERATION.offset("immediate")
        return words


def _unless(condition: Condition) -> list[int]:
    """Operations, the last one a branch that is taken unless the condition holds."""
    reckoner = Reckoner()
    register = reckoner.register(condition.number)
    op = SeqOp.BRANCH_EQUAL if condition.holds_if else SeqOp.BRANCH_UNLIKE
    return [*reckoner.operations, operation(op, 0, register, ZERO)]


def queue_words(
    steps: Sequence[Step],
    words: Sequence[int],
    encode: Callable[[Instruction], int],
    place: Callable[[Register], int],
    moves: Mapping[int, Sequence[tuple[str, Number]]] | None = None,
) -> list[int]:
    """Words of a queue with these steps. `words`: its instructions, all of them; `encode` makes such a word; `place`:
    the number of a register's 32-bit word in HBM. `moves`: of instructions by their number, what registers add to which
    field of their descriptor.

    What stands in for what is left out lies behind it, so that a run which leaves a block goes on in one place, and
    from there straight ahead: a word far away costs a fetch.
    """
    made = _Words()
    instead: dict[int, list[tuple[Guard, object]]] = {}
    jump = operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO)
    for step in steps:
        if isinstance(step, Items):
            for n in range(step.begin, step.end):
                made.moved(words[n], (moves or {}).get(n, ()))
        elif isinstance(step, Read):
            made.words += map(encode, step.waits)
            index = step.register.index
            load = operation(SeqOp.LOAD, index, ZERO, None, place(step.register))
            bound = operation(SeqOp.BOUND, index, index, None, step.register.high)
            made.words.append(sequence(load, bound, fence=True))
        elif isinstance(step, Guard):
            label = object()
            instead.setdefault(id(step.region), []).append((step, label))
            made.operations(_unless(step.condition), label)
        else:
            end = id(step.region)
            for guard, label in instead.pop(end):
                made.operations([jump], end)
                made.place(label)
                made.words += map(encode, guard.instead)
            made.place(end)
    return made.all()
