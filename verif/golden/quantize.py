"""MX quantisation: blocks of 32 numbers become elements of 8 or 4 bits and one E8M0 scale, in integers.

Source: OCP Microscaling Formats v1.0, section 6.3; the exponent rules and what a block with NaN or Inf gives are those
of docs/numerics.md.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.contract.formats import MX_BLOCK, MX_EMAX, MX_SCALE_NAN
from verif.golden.conversion import magnitudes, to_fp32

__all__ = ["RULES", "columns", "quantize_mx"]

RULES = ("ocp", "emax-1")
"""By how much the scale's exponent lies below that of the largest number: Emax, or one less."""

_SCALE_MOST = 254
_ROWS, _FOUR = 8, 4
"""A block in memory: 8 partitions, four neighbours in each."""


def quantize_mx(
    x: ArrayLike, fmt: str, rule: str = "ocp", src: str = "bf16"
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Elements [n, 32] and scales [n] of the codes x [n, 32] of format `src`; `fmt`: e4m3fn, e5m2 or e2m1.

    The scale is floor(log2 max) less what the rule says, clamped to 2^-127 and up; elements are x / scale, rounded once
    to nearest even, at most the largest number of the format. A block with NaN or Inf: scale 0xFF, elements 0.
    """
    if fmt not in MX_EMAX or rule not in RULES or src not in ("bf16", "fp16"):
        raise ValueError(f"quantize_mx knows {', '.join(MX_EMAX)}, {', '.join(RULES)}, bf16 and fp16")
    codes = to_fp32(x, src).astype(np.int64)
    if codes.ndim != 2 or codes.shape[1] != MX_BLOCK:
        raise ValueError(f"quantize_mx takes rows of {MX_BLOCK}, not an array of shape {codes.shape}")
    sign, field, fraction = codes >> 31, codes >> 23 & 0xFF, codes & 0x7FFFFF
    poisoned = (field == 0xFF).any(axis=1)
    significand = np.where(field == 0, fraction, fraction | 1 << 23)
    exponent = np.maximum(field, 1) - 150
    # floor(log2) of a code is the exponent of its leading bit; FP32 codes grow with their magnitude
    largest = np.where(poisoned, 0, (codes & 0x7FFFFFFF).max(axis=1))
    top = np.frexp(largest.astype(np.uint32).view(np.float32).astype(np.float64))[1].astype(np.int64) - 1
    scale = np.clip(top - MX_EMAX[fmt] + (rule == "emax-1") + 127, 0, _SCALE_MOST)
    scale = np.where(largest == 0, 0, scale)
    bits = {"e4m3fn": 7, "e5m2": 7, "e2m1": 3}[fmt]
    elements = magnitudes(significand, exponent - (scale - 127)[:, None], fmt, saturate=True) | sign << bits
    elements = np.where(poisoned[:, None], 0, elements)
    return elements.astype(np.uint8), np.where(poisoned, MX_SCALE_NAN, scale).astype(np.uint8)


def columns(
    x: NDArray[np.unsignedinteger], fmt: str, rule: str, src: str
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint8]]:
    """What QUANTIZE_MX stores of x [P, 4 F]: columns [P, F] of four elements side by side, scales [P / 8, F].

    A column is a u32, of E2M1 a u16, the first element lowest. Block (b, c): partitions 8b to 8b + 7, elements 4c to
    4c + 3 of each.
    """
    partitions, count = x.shape[0], x.shape[1] // _FOUR
    blocks = x.reshape(partitions // _ROWS, _ROWS, count, _FOUR).transpose(0, 2, 1, 3)
    elements, scale = quantize_mx(blocks.reshape(-1, MX_BLOCK), fmt, rule, src)
    fours = elements.reshape(-1, count, _ROWS, _FOUR).transpose(0, 2, 1, 3).reshape(partitions, count, _FOUR)
    bits = 4 if fmt == "e2m1" else 8
    wide = np.zeros((partitions, count), np.uint32)
    for q in range(_FOUR):
        wide |= fours[:, :, q].astype(np.uint32) << np.uint32(bits * q)
    return wide.astype(np.uint16 if fmt == "e2m1" else np.uint32), scale.reshape(-1, count)
