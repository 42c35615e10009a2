"""Golden model of the number hardware: decoding, fused multiply-add, addition, on whole arrays.

Everything goes through float64, which is exact here: a product of two significands of up to 12 bits
has 24, both addends then have at most 24, and 53 >= 2 * 24 + 2, so that rounding the sum to float64 and
then to float32 gives what one rounding would give, subnormal results and overflow included
(Figueroa 1995; tests/unit/test_golden_numeric.py compares with exact integers).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import CANONICAL_NAN_FP32

__all__ = ["bf16_mac", "canonical", "decode", "fp16_mac", "fp32_add", "fp32_halves", "fp32_multiply", "fused"]

F32 = NDArray[np.float32]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]


def canonical(values: F32) -> U32:
    """Bits of float32 values, any shape, every NaN as the canonical one."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return np.where(np.isnan(values), np.uint32(CANONICAL_NAN_FP32), bits).astype(np.uint32)


def decode(bits: NDArray[Any], fmt: str) -> F32:
    """Values of codes, any shape: BF16, FP16, E4M3FN, E4M3, E5M2 exact; TF32 takes FP32 codes and rounds them first.

    ValueError for another format.
    """
    codes = np.ascontiguousarray(bits).astype(np.uint32)
    if fmt == "bf16":
        return (codes << np.uint32(16)).view(np.float32)
    if fmt == "tf32":
        last = np.uint32(1 << 13)
        rounded = (codes + (last // 2 - np.uint32(1)) + (codes >> np.uint32(13) & np.uint32(1))) & ~(
            last - np.uint32(1)
        )
        return np.where(codes & np.uint32(0x7F800000) == 0x7F800000, codes, rounded).astype(np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        if fmt == "fp16":
            return codes.astype(np.uint16).view(np.float16).astype(np.float32)
        if fmt == "e5m2":  # the upper half of an FP16
            return ((codes & np.uint32(0xFF)) << np.uint32(8)).astype(np.uint16).view(np.float16).astype(np.float32)
    if fmt in ("e4m3fn", "e4m3"):
        field, few = codes >> np.uint32(3) & np.uint32(15), (codes & np.uint32(7)).astype(np.float64)
        size = np.where(field > 0, np.ldexp(8 + few, field.astype(np.int64) - 10), np.ldexp(few, -9))
        if fmt == "e4m3":
            size = np.where(field == 15, np.where(few > 0, np.nan, np.inf), size)
        else:
            size = np.where(codes & np.uint32(0x7F) == 0x7F, np.nan, size)
        return np.where(codes & np.uint32(0x80), -size, size).astype(np.float32)
    raise ValueError(f"a tensor operand is bf16, fp16, tf32, e4m3fn, e4m3 or e5m2, not {fmt}")


def fp32_halves(codes: U32) -> tuple[F32, F32]:
    """(high, low) of FP32 codes, any shape: rounded to 12 significant bits, nearest even, and what that leaves.

    A high half of 2^128 is infinite; the low half is 0 where the high one is not finite.
    """
    x = np.ascontiguousarray(codes, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        fraction, exponent = np.frexp(np.where(np.isfinite(wide), wide, 0))
        high = np.where(np.isfinite(wide), np.ldexp(np.rint(fraction * (1 << 12)), exponent - 12), wide)
        narrow = high.astype(np.float32)
        low = np.where(np.isfinite(narrow), wide - high, 0.0)
    return narrow, (low + 0.0).astype(np.float32)


def fused(a: F32, b: F32, acc: F32) -> F32:
    """RN32(a * b + acc) for a and b of up to 12 significant bits; shapes broadcast. NaNs are not canonical."""
    with np.errstate(all="ignore"):
        exact = np.asarray(a, dtype=np.float64) * np.asarray(b, dtype=np.float64)
        return np.asarray(exact + np.asarray(acc, dtype=np.float32)).astype(np.float32)


def _mac(a: U16, b: U16, acc: U32, fmt: str) -> U32:
    start = np.ascontiguousarray(acc, dtype=np.uint32).view(np.float32)
    return canonical(fused(decode(a, fmt), decode(b, fmt), start))


def bf16_mac(a: U16, b: U16, acc: U32) -> U32:
    """Codes in, codes out: RN32(a * b + acc), canonical NaN."""
    return _mac(a, b, acc, "bf16")


def fp16_mac(a: U16, b: U16, acc: U32) -> U32:
    """Codes in, codes out: RN32(a * b + acc), canonical NaN."""
    return _mac(a, b, acc, "fp16")


def fp32_add(a: U32, b: U32) -> U32:
    """Codes in, codes out: RN32(a + b), gradual underflow, canonical NaN."""
    with np.errstate(all="ignore"):
        total = np.ascontiguousarray(a, dtype=np.uint32).view(np.float32).astype(np.float64) + np.ascontiguousarray(
            b, dtype=np.uint32
        ).view(np.float32)
        return canonical(total.astype(np.float32))


def fp32_multiply(a: U32, b: U32) -> U32:
    """Codes in, codes out: RN32(a * b), gradual underflow, canonical NaN. The product is exact in float64."""
    with np.errstate(all="ignore"):
        product = np.ascontiguousarray(a, dtype=np.uint32).view(np.float32).astype(np.float64) * np.ascontiguousarray(
            b, dtype=np.uint32
        ).view(np.float32)
        return canonical(product.astype(np.float32))
