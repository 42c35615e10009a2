"""Arguments of the operators of firmware/gpsimd/lib, as a GP_RUN carries them: imm1 below imm2, 128 bits.

The kernel language packs them, `plexus/operators.h` is generated from them. No field crosses a word of 32 bits.
"""

from enum import IntEnum

from rtl.contract.words import Field, Word

__all__ = [
    "ARGUMENTS",
    "BINS_MAX",
    "K_MAX",
    "ROUTED_MAX",
    "Gather",
    "Integer",
    "Reduction",
    "Relation",
]

K_MAX = 64
"""Of topk and route: what a core keeps of a row while it looks at it."""

BINS_MAX = 512
"""Of histogram: counts of a row, in local memory."""

ROUTED_MAX = 8192
"""Of route: choices of all tokens, a byte each in the memory that cores share."""


class Integer(IntEnum):
    """What `integer` does to 32-bit integers x and y; results wrap around."""

    ADD = 0
    SUBTRACT = 1  # x - y
    MULTIPLY = 2
    BIT_AND = 3
    BIT_OR = 4
    BIT_XOR = 5
    SHIFT_LEFT = 6  # by y mod 32, as both others
    SHIFT_RIGHT = 7  # zeros come in
    SHIFT_RIGHT_SIGNED = 8  # the sign comes in
    MAX = 9  # signed, as MIN
    MIN = 10


class Relation(IntEnum):
    """How `affine_select` compares a value with 0."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class Reduction(IntEnum):
    """What `partition_reduce` makes of partitions."""

    SUM = 0  # wraps around
    MAX = 1  # signed, as MIN
    MIN = 2


class Gather(IntEnum):
    """What an index of `gather` names."""

    COLUMNS = 0  # a column of its own partition
    SHARED = 1  # a column of all partitions of its core: index i is in its partition i mod L, column i / L
    PARTITIONS = 2  # a partition, at its own column


_STEPS = tuple(Field(f"step{n}", 16, "of axis n, innermost first", signed=True) for n in range(4))

ARGUMENTS: dict[str, Word] = {
    word.name: word
    for word in (
        Word("iota", 128, (Field("offset", 32), Field("multiplier", 32, "of a partition's number"), *_STEPS)),
        Word(
            "affine_select",
            128,
            (
                Field("fill", 32, "bits of what is taken where the relation does not hold"),
                Field("offset", 24, signed=True),
                Field("relation", 8, "Relation"),
                Field("multiplier", 16, "of a partition's number", signed=True),
                *_STEPS[:3],
            ),
        ),
        Word("gather", 128, (Field("mode", 32, "Gather"), Field("fill", 32, "bits, for an index that is outside"))),
        Word("topk", 128, (Field("k", 32),)),
        Word("nonzero", 128, ()),
        Word("partition_reduce", 128, (Field("op", 32, "Reduction"),)),
        Word("partition_broadcast", 128, ()),
        Word("integer", 128, (Field("op", 16, "Integer"), Field("by_number", 16), Field("number", 32, "y"))),
        Word("prefix_sum", 128, (Field("exclusive", 32, "without the element itself"),)),
        Word("histogram", 128, ()),
        Word("route", 128, (Field("tokens", 32), Field("experts", 16), Field("k", 16))),
    )
}
"""By name of an operator, which is that of its entry."""
