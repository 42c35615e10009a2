"""MX quantisation: blocks of 32 numbers become elements of 8 or 4 bits and one E8M0 scale, in integers.

Source: OCP Microscaling Formats v1.0, section 6.3; the exponent rules and what a block with NaN or Inf gives are those
of docs/numerics.md.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.contract.formats import MX_BLOCK, MX_EMAX, MX_SCALE_NAN
from verif.golden.conversion import magnitudes, to_fp32

__all__ = ["RULES", "quantize_mx"]

RULES = ("ocp", "emax-1")
"""By how much the scale's exponent lies below that of the largest number: Emax, or one less."""

_SCALE_MOST = 254


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
