"""Golden model of the number hardware: decoding, fused multiply-add, addition, on whole arrays.

Everything goes through float64, which is exact here: a product of two significands of up to 12 bits
has 24, both addends then have at most 24, and 53 >= 2 * 24 + 2, so that rounding the sum to float64 and
then to float32 gives what one rounding would give, subnormal results and overflow included
(Figueroa 1995; tests/unit/test_golden_numeric.py compares with exact integers).
"""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import CANONICAL_NAN_FP32

__all__ = ["bf16_mac", "canonical", "decode", "fp16_mac", "fp32_add", "fp32_multiply", "fused"]

F32 = NDArray[np.float32]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]


def canonical(values: F32) -> U32:
    """Bits of float32 values, any shape, every NaN as the canonical one."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return np.where(np.isnan(values), np.uint32(CANONICAL_NAN_FP32), bits).astype(np.uint32)


def decode(bits: U16, fmt: str) -> F32:
    """Values of BF16 or FP16 codes, any shape; exact. ValueError for another format."""
    codes = np.ascontiguousarray(bits, dtype=np.uint16)
    if fmt == "bf16":
        return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if fmt == "fp16":
        with np.errstate(invalid="ignore"):
            return codes.view(np.float16).astype(np.float32)
    raise ValueError(f"a tensor operand is bf16 or fp16, not {fmt}")


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
