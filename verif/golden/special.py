"""What the special units of the vector engine compute: eight largest, positions, replacement, statistics, moves.

Arrays are [partitions, elements]. But for `transpose` and `shuffle`, which move bits of any integer type, elements
are FP32 codes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.contract.isa import SHUFFLE_KEEP, AluOp
from verif.golden.alu import alu
from verif.golden.reciprocal import reciprocal

__all__ = [
    "ABSENT",
    "bn_aggr",
    "bn_stats",
    "find_index8",
    "match_replace8",
    "max8",
    "shuffle",
    "transpose",
]

U32 = NDArray[np.uint32]
Bits = NDArray[np.unsignedinteger]
VALUES = 8
ABSENT = 0xFFFFFFFF
"""Position of a value that FIND_INDEX8 does not find; 16-bit destinations hold its low half."""
_SIGN = np.uint32(1 << 31)


def _codes(x: ArrayLike) -> U32:
    return np.array(x, np.uint32, order="C")


def _is_nan(x: U32) -> NDArray[np.bool_]:
    return (x & ~_SIGN) > 0x7F800000


def _order(x: U32) -> U32:
    """Unsigned numbers in the order of MAX: -0 below +0, NaN above everything."""
    key = np.where(x & _SIGN, ~x, x | _SIGN)
    return np.where(_is_nan(x), np.uint32(0xFFFFFFFF), key)


def max8(x: ArrayLike) -> U32:
    """[P, 8]: the largest eight of each row, descending; equal ones repeat, NaN (then canonical) is the largest."""
    codes = _codes(x)
    codes[_is_nan(codes)] = CANONICAL_NAN_FP32
    order = np.argsort(~_order(codes), axis=1, kind="stable")[:, :VALUES]
    return np.take_along_axis(codes, order, axis=1)


def _claims(x: U32, values: U32) -> NDArray[np.int64]:
    """[P, 8]: for j = 0..7 the first position with values[j] that no value before has taken, else -1."""
    rows, same = x.copy(), values.copy()
    rows[rows == _SIGN] = 0
    same[same == _SIGN] = 0
    taken = np.zeros(rows.shape, np.bool_)
    found = np.full(same.shape, -1, np.int64)
    lanes = np.arange(rows.shape[0])
    for j in range(same.shape[1]):
        free = (rows == same[:, j : j + 1]) & ~taken & ~_is_nan(rows)
        first = free.argmax(axis=1)
        hit = free.any(axis=1)
        found[hit, j] = first[hit]
        taken[lanes[hit], first[hit]] = True
    return found


def find_index8(x: ArrayLike, values: ArrayLike) -> U32:
    """[P, 8]: where in its row each of the eight values is; zeros are equal, NaN is never found, ABSENT if nowhere.

    Equal values take successive positions.
    """
    return (_claims(_codes(x), _codes(values)) & ABSENT).astype(np.uint32)


def match_replace8(x: ArrayLike, values: ArrayLike, a: ArrayLike) -> U32:
    """x, with `a` (one number, or one a row) where FIND_INDEX8 would find one of the eight values."""
    out = _codes(x)
    found = _claims(out, _codes(values))
    lane, which = np.nonzero(found >= 0)
    out[lane, found[lane, which]] = np.broadcast_to(np.asarray(a, np.uint32), out.shape[:1])[lane]
    return out


def transpose(x: Bits, block: int) -> Bits:
    """Blocks of `block` x `block` are transposed where they stand; both sizes are multiples of `block`."""
    rows, columns = x.shape
    tiles = x.reshape(rows // block, block, columns // block, block)
    return np.ascontiguousarray(tiles.transpose(0, 3, 2, 1)).reshape(x.shape)


def shuffle(x: Bits, old: Bits, mask: Sequence[int], block: int) -> Bits:
    """Partition j of each block becomes partition mask[j] of the block in x; of `old`, where that is SHUFFLE_KEEP."""
    out = np.array(old)
    for start in range(0, x.shape[0], block):
        for j in range(block):
            if mask[j] != SHUFFLE_KEEP:
                out[start + j] = x[start + mask[j]]
    return out


def _add(x: U32, y: U32) -> U32:
    return alu(AluOp.ADD, x, y)


def _subtract(x: U32, y: U32) -> U32:
    return alu(AluOp.SUBTRACT, x, y)


def _multiply(x: U32, y: U32) -> U32:
    return alu(AluOp.MULTIPLY, x, y)


def _four_sums(x: U32) -> U32:
    """Element i to partial sum i mod 4, each in order from +0; then (0+1)+(2+3)."""
    partials = np.zeros((x.shape[0], 4), np.uint32)
    for i in range(x.shape[1]):
        partials[:, i % 4] = _add(partials[:, i % 4], x[:, i])
    pairs = _add(partials[:, 0::2], partials[:, 1::2])
    return _add(pairs[:, 0], pairs[:, 1])


def bn_stats(x: ArrayLike) -> U32:
    """[P, 6]: count, mean, count times variance of the even elements, then of the odd ones.

    One pass over the differences from element 0; docs/vector-special.md has the formulas.
    """
    codes = _codes(x)
    out = np.zeros((codes.shape[0], 6), np.uint32)
    origin = codes[:, 0]
    shifted = _subtract(codes, origin[:, None])
    squares = _multiply(shifted, shifted)
    for half in range(min(2, codes.shape[1])):
        count = len(range(half, codes.shape[1], 2))
        n = np.full(codes.shape[0], count, np.float32).view(np.uint32)
        total = _four_sums(shifted[:, half::2])
        mean = _multiply(total, reciprocal(n))
        spread = _subtract(_four_sums(squares[:, half::2]), _multiply(total, mean))
        out[:, 3 * half] = n
        out[:, 3 * half + 1] = _add(origin, mean)
        out[:, 3 * half + 2] = alu(AluOp.MAX, spread, np.zeros_like(spread))
    return out


def bn_aggr(x: ArrayLike) -> U32:
    """[P, 2]: mean and variance of what triples (count, mean, count times variance) describe, merged in order."""
    codes = _codes(x)
    n, mean, spread, inverse = (np.zeros(codes.shape[0], np.uint32) for _ in range(4))
    empty = np.ones(codes.shape[0], np.bool_)
    for at in range(0, codes.shape[1], 3):
        more, center, width = (codes[:, at + i] for i in range(3))
        total = _add(n, more)
        empty = total & ~_SIGN == 0
        inverse = reciprocal(total)
        apart = _subtract(center, mean)
        share = np.where(empty, np.uint32(0), _multiply(more, inverse))
        between = _multiply(_multiply(apart, apart), _multiply(n, share))
        mean = _add(mean, _multiply(apart, share))
        spread = _add(_add(spread, width), between)
        n = total
    variance = np.where(empty, np.uint32(0), _multiply(spread, inverse))
    return np.stack([mean, variance], axis=1)
