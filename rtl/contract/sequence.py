"""What a queue works out by itself: words of operations on its registers, and fields of instructions that they fill.

A queue has 64 registers of 32 bits, signed, 0 at the start of a program. A word of SEQUENCE is executed by the queue's
sequencer in front of the check; no engine sees it, and it neither waits, updates nor retires. Any other word may name
registers that are added to its fields; the check sees what came out. docs/sequencer.md tells how.
"""

from enum import IntEnum

from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import COPY_AT, INSTRUCTION
from rtl.contract.memmap import ADDRESS
from rtl.contract.words import Field, Word

__all__ = [
    "BRANCHES",
    "FILL",
    "FILLED",
    "FILLS",
    "FILL_AT",
    "OPERATION",
    "OPERATIONS",
    "OPERATIONS_AT",
    "REGISTERS",
    "SEQUENCE",
    "SEQUENCE_HEADER",
    "WRAPPING",
    "SeqOp",
    "filled_place",
]

REGISTERS = 64
OPERATIONS = 8
"""Of a word, executed in order; a branch that is taken leaves out what is behind it."""

FILLS = 4
"""Registers that an instruction may name."""

SEQUENCE = 2
"""Opcode of a word of operations, in every queue."""


class SeqOp(IntEnum):
    """What an operation does. a, b: registers, or the immediate for b; numbers are signed, sums wrap."""

    NONE = 0
    ADD = 1  # d = a + b
    SUBTRACT = 2
    MULTIPLY = 3  # the low 32 bits
    SHIFT_LEFT = 4  # by b mod 32
    SHIFT_RIGHT = 5  # by b mod 32; copies of the sign come in
    AND = 6
    OR = 7
    MIN = 8
    MAX = 9
    EQUAL = 10  # d = 1 if a == b, else 0
    LESS = 11  # d = 1 if a < b, else 0
    SEMAPHORE = 12  # d = semaphore b; in a word with `fence` only
    LOAD = 13  # d = the 32 bits at byte 4 * (a + b) of HBM; in a word with `fence` only
    BOUND = 14  # d = a; refused unless a is from 0 to b
    BRANCH_EQUAL = 16  # to the word of the immediate's number, if register a is register b
    BRANCH_UNLIKE = 17
    BRANCH_LESS = 18  # a < b
    BRANCH_NOT_LESS = 19


BRANCHES = tuple(op for op in SeqOp if op >= SeqOp.BRANCH_EQUAL)

OPERATION = Word(
    "operation",
    64,
    (
        Field("op", 5, "SeqOp"),
        Field("immediate_b", 1, "b is the immediate, not a register; not with a branch"),
        Field("d", 6, "register that takes the result"),
        Field("a", 6, "register"),
        Field("b", 6, "register"),
        Field("reserved", 8),
        Field(
            "immediate", 32, "b, or the word that a branch goes to, counted from the first of the program", signed=True
        ),
    ),
)

SEQUENCE_HEADER = Word(
    "sequence_header",
    256,
    (
        Field("opcode", 8, "SEQUENCE"),
        Field("fence", 1, "first wait until all instructions before it have been dispatched"),
    ),
)
"""The first 256 bits of such a word. Behind it come OPERATIONS operations, from bit OPERATIONS_AT on; the rest is 0."""

OPERATIONS_AT = SEQUENCE_HEADER.width


def _patterns() -> tuple[str, ...]:
    parts = (
        "offset",
        "partition_start",
        "partition_count",
        *(f"{what}{n}" for n in range(4) for what in ("step", "count")),
    )
    return tuple(f"{operand}_{part}" for operand in ("src0", "src1", "dst") for part in parts)


_OF_COPY = "descriptor_"
_DESCRIPTOR = ("source", "destination", "row_bytes") + tuple(
    name for n in range(3) for name in (f"count{n}", f"source_step{n}", f"destination_step{n}")
)

FILLED: tuple[tuple[str, int], ...] = (
    ("", 0),  # code 0: nothing is filled
    *((name, 0) for name in _patterns()),
    *((name, 0) for name in ("wait0_value", "wait1_value", "update_value")),
    *((name, 0) for name in ("wait0_semaphore", "wait1_semaphore", "update_semaphore")),
    *((name, half) for name in ("imm0", "imm1", "imm2") for half in (0, 32)),
    *((_OF_COPY + name, 0) for name in _DESCRIPTOR),
)
"""By its code, a field that a register may be added to, and from which of its bits on; of immediates each half, of a
DMA_COPY what its descriptor has there."""


WRAPPING = frozenset(name for name, _ in FILLED if name.startswith("imm") or name.endswith("_value"))
"""Fields of 32 bits (immediates: each half): their sums wrap. Of all others a sum that does not fit is refused."""


def filled_place(name: str, from_bit: int = 0) -> tuple[int, int, bool]:
    """First bit of one of FILLED in the word, its bits, and whether it is signed. Of an address its offset."""
    of_copy, short = name.startswith(_OF_COPY), name.removeprefix(_OF_COPY)
    word, at = (DESCRIPTOR, COPY_AT) if of_copy else (INSTRUCTION, 0)
    found = next(f for f in word if f.name == short)
    parts = {ADDRESS.width: ADDRESS.fields[0].width if of_copy else 32}
    return at + word.offset(short) + from_bit, parts.get(found.width, found.width), found.signed


FILL = Word("fill", 16, (Field("field", 6, "code of FILLED; 0: none"), Field("register", 6), Field("reserved", 4)))
FILL_AT = INSTRUCTION.offset("header_pad")
"""Bit at which the first of FILLS words FILL stands in an instruction."""
