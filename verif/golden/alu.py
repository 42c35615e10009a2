"""Golden model of the vector engine's operators and reductions, on arrays of FP32 codes."""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.isa import AluOp
from verif.golden.numeric import canonical

__all__ = ["alu", "fold", "partial_sum", "reduce"]

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
PARTIALS = 8


def _largest(a: F32, b: F32) -> U32:
    """max with NaN if either is, and -0 < +0."""
    out = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    return canonical(np.where(np.isnan(a) | np.isnan(b), np.float32(np.nan), out).astype(np.float32))


def alu(op: AluOp, x: U32, y: U32, reverse: bool = False) -> U32:
    """x op y, element by element; shapes broadcast."""
    x, y = np.broadcast_arrays(np.asarray(x, np.uint32), np.asarray(y, np.uint32))
    if reverse:
        x, y = y, x
    a, b = (np.ascontiguousarray(v).view(np.float32) for v in (x, y))
    minus = np.uint32(1 << 31)
    with np.errstate(all="ignore"):
        match op:
            case AluOp.BYPASS:
                return np.array(x)
            case AluOp.ADD:
                return canonical(a + b)
            case AluOp.SUBTRACT:
                return canonical(a - b)
            case AluOp.MULTIPLY:
                return canonical(a * b)
            case AluOp.MAX:
                return _largest(a, b)
            case AluOp.MIN:
                return np.where(np.isnan(a) | np.isnan(b), np.uint32(0x7FC00000), _largest(-a, -b) ^ minus)
            case AluOp.ABSMAX:
                return _largest(np.abs(a), np.abs(b))
            case AluOp.ABSMIN:
                return alu(AluOp.MIN, x & ~minus, y & ~minus)
            case AluOp.ABS:
                return canonical(np.abs(a))
            case AluOp.SQUARE:
                return canonical(a * a)
            case AluOp.RELU:
                return _largest(a, np.zeros_like(a))
            case AluOp.BIT_AND:
                return x & y
            case AluOp.BIT_OR:
                return x | y
            case AluOp.BIT_XOR:
                return x ^ y
            case AluOp.BIT_NOT:
                return ~x
            case AluOp.SHIFT_LEFT:
                return x << (y & np.uint32(31))
            case AluOp.SHIFT_RIGHT:
                return x >> (y & np.uint32(31))
        truth = {
            AluOp.EQ: a == b,
            AluOp.NE: a != b,
            AluOp.GT: a > b,
            AluOp.GE: a >= b,
            AluOp.LT: a < b,
            AluOp.LE: a <= b,
            AluOp.AND: (a != 0) & (b != 0),
            AluOp.OR: (a != 0) | (b != 0),
            AluOp.XOR: (a != 0) ^ (b != 0),
        }[op]
        return np.where(truth, np.uint32(0x3F800000), np.uint32(0)).astype(np.uint32)


def partial_sum(x: U32) -> U32:
    """Sums along the last axis: element i to partial sum i mod 8, from +0 each, then the tree."""
    count = x.shape[-1]
    rounds = -(-count // PARTIALS)
    partials = np.zeros((*x.shape[:-1], PARTIALS), np.float32)
    values = np.ascontiguousarray(x).view(np.float32)
    with np.errstate(all="ignore"):
        for r in range(rounds):
            part = values[..., r * PARTIALS : (r + 1) * PARTIALS]
            partials[..., : part.shape[-1]] += part
        while partials.shape[-1] > 1:
            partials = (partials[..., 0::2] + partials[..., 1::2]).astype(np.float32)
        return canonical(partials[..., 0])


_IDENTITY = {
    AluOp.MAX: 0xFF800000,
    AluOp.MIN: 0x7F800000,
    AluOp.ABSMAX: 0,
    AluOp.ABSMIN: 0x7F800000,
}


def reduce(x: U32, op: AluOp) -> U32:
    """Along the last axis with ADD, MAX, MIN, ABSMAX or ABSMIN."""
    if op == AluOp.ADD:
        return partial_sum(x)
    out = alu(op, np.array(_IDENTITY[op], np.uint32), x)
    while out.shape[-1] > 1:  # any order gives the same: halves against each other
        half = out.shape[-1] // 2
        out = np.concatenate((alu(op, out[..., :half], out[..., half : 2 * half]), out[..., 2 * half :]), axis=-1)
    out = out[..., 0]
    return out


def fold(op: AluOp, earlier: U32, now: U32) -> U32:
    """What an accumulator becomes."""
    return alu(op, earlier, now)
