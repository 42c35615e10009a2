"""What a vector instruction is, as the parts of the vector unit see it."""

from amaranth.hdl import Mux, Value
from amaranth.lib import data, enum

__all__ = ["LANE", "OPERANDS", "VECTOR", "Kind", "Result", "Second", "Source", "log_of_whole", "unread"]


class Kind(enum.IntEnum, shape=4):
    """Which part of the unit does it."""

    CONFIG = 0  # vsetvli and its like
    LANES = 1  # each element from the elements beside it
    DIVIDE = 2
    REDUCE = 3
    BITS = 4  # logic of mask registers
    COUNT = 5  # vcpop, vfirst
    FIRST = 6  # vmsbf, vmsif, vmsof
    IOTA = 7  # viota, vid
    PERMUTE = 8
    MOVE_OUT = 9  # vmv.x.s
    MEMORY = 10


class Result(enum.IntEnum, shape=4):
    """What an element's unit gives."""

    SUM = 0
    AND = 1
    OR = 2
    XOR = 3
    PICK = 4  # one of both operands
    SECOND = 5
    LEFT = 6  # shifts
    RIGHT = 7
    SATURATED = 8
    AVERAGE = 9
    LOW = 10  # products from here on: half of them
    HIGH = 11
    FRACTION = 12
    ADDED = 13  # to the third operand, or subtracted from it


class Second(enum.IntEnum, shape=2):
    """What stands beside vs2."""

    VECTOR = 0
    SCALAR = 1
    IMMEDIATE = 2  # sign-extended
    UNSIGNED = 3  # immediate, zero-extended


class Source(enum.IntEnum, shape=3):
    """Where a permutation finds the number of the element that it moves."""

    VECTOR = 0  # vrgather.vv
    HALVES = 1  # vrgatherei16
    SAME = 2  # vrgather.vx, .vi
    UP = 3
    DOWN = 4
    UP_ONE = 5
    DOWN_ONE = 6
    COMPRESS = 7


LANE = data.StructLayout(
    {
        "result": Result,
        "subtract": 1,  # the second from the first operand; of ADDED: the product from the third
        "carries": 1,  # the mask is added or subtracted, too
        "signed": 1,  # operands, but of products
        "signed_first": 1,  # operands of a product
        "signed_second": 1,
        "rounds": 1,  # a shift to the right
        "chooses": 1,  # PICK: the mask chooses, not the comparison
        "inverts": 1,  # a comparison
        "on_less": 1,  # what is compared: less, or carry, and equal
        "on_equal": 1,
    }
)
"""What the units of all elements do."""

OPERANDS = data.StructLayout(
    {
        "swaps": 1,  # vs2 and what is beside it
        "accumulates": 1,  # vd is read
        "to_third": 1,  # vs2 is added to the product of vd and the second operand
        "widens_first": 1,  # vs2 has half the width of the result
        "widens_second": 1,
        "signed_first": 1,  # ... and is extended with its sign
        "signed_second": 1,
        "quarters": 1,  # vs2 has a quarter
        "narrows": 1,  # vs2 has twice the width of the result
        "clips": 1,
        "clips_signed": 1,
    }
)

VECTOR = data.StructLayout(
    {
        "kind": Kind,
        "illegal": 1,  # whatever vtype is
        "masked": 1,
        "vd": 5,
        "vs1": 5,  # or rs1, or the immediate
        "vs2": 5,
        "second": Second,
        "lane": LANE,
        "operands": OPERANDS,
        "mask_result": 1,  # vd is a mask
        "carry_in": 1,  # v0 is an operand, not a mask
        "scalar_result": 1,  # vmv.s.x: element 0 only
        "whole": 3,  # registers moved, loaded or stored whole, less one
        "is_whole": 1,
        "bits": 3,  # BITS: vs2 inverted, vs1 inverted, result inverted; COUNT, FIRST, IOTA: which one
        "source": Source,
        "writes_x": 1,
        "store": 1,
        "width": 2,  # of an element in memory, or of an index: 1 << width bytes
        "strided": 1,
        "indexed": 1,
        "fields": 3,  # of a segment, less one
        "first_only": 1,  # vle*ff: only the first element may fault
        "is_mask": 1,  # vlm, vsm
    }
)


def log_of_whole(less_one: Value) -> Value:
    """Logarithm of 1, 2, 4 or 8 registers, of VECTOR's `whole`."""
    return Mux(less_one[2], 3, Mux(less_one[1], 2, less_one[0]))


def unread(i: Value) -> Value:
    """vs2 is no operand of the VECTOR `i`: vmv.v."""
    return i.carry_in & ~i.masked & (i.lane.result == Result.SECOND)
