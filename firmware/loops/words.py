"""Words of a queue's sequencer: operations, words of them, instructions that name registers. docs/sequencer.md."""

from collections.abc import Iterable

from rtl.contract.sequence import FILL, FILL_AT, OPERATION, OPERATIONS, OPERATIONS_AT, SEQUENCE, SEQUENCE_HEADER, SeqOp

__all__ = ["operation", "sequence", "with_fills"]


def operation(op: SeqOp, d: int = 0, a: int = 0, b: int | None = None, immediate: int = 0) -> int:
    """An operation; b None: the immediate."""
    branch = op >= SeqOp.BRANCH_EQUAL
    return OPERATION.pack(
        op=op, d=d, a=a, b=b or 0, immediate_b=int(b is None and not branch), immediate=immediate
    )  # fmt: skip


def sequence(*operations: int, fence: bool = False) -> int:
    """A word of operations. ValueError if they are too many."""
    if len(operations) > OPERATIONS:
        raise ValueError(f"a word has {OPERATIONS} operations, not {len(operations)}")
    word = SEQUENCE_HEADER.pack(opcode=SEQUENCE, fence=int(fence))
    return word | sum(one << OPERATIONS_AT + n * OPERATION.width for n, one in enumerate(operations))


def with_fills(word: int, fills: Iterable[tuple[int, int]]) -> int:
    """`word` with registers named: (code of FILLED, register) each."""
    for n, (code, register) in enumerate(fills):
        word |= FILL.pack(field=code, register=register) << FILL_AT + n * FILL.width
    return word
