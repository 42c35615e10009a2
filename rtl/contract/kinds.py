"""What a beat of the tensor array carries: bits 6:4 of its mode; bits 3:0 are the dtype code.

Both operands of a matmul have the same kind, of the same class: what is loaded as one class means nothing to the other.
"""

from enum import IntEnum

__all__ = ["DOTS", "Kind"]


class Kind(IntEnum):
    """How the bits of a row are taken."""

    ONE = 0  # one number: bf16, fp16 in 16 bits, e4m3fn, e4m3, e5m2 in 8, tf32 in 32
    PAIR = 1  # two 8-bit floats in 16 bits, no scale
    QUAD = 2  # four 8-bit floats in 32 bits, E8M0 scale beside
    QUAD_E4M3 = 3  # the same, E4M3FN scale
    HIGH = 4  # an FP32, of which its upper half counts
    LOW = 5  # an FP32, of which the rest counts
    SPARSE = 6
    RAW = 7  # 32 bits to be transposed; stationary only


DOTS = (Kind.PAIR, Kind.QUAD, Kind.QUAD_E4M3)
"""Kinds of dot products; the others but RAW are of one class, numbers."""
