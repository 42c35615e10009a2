"""Golden model of the exp unit: exp(RN32(x - m)) of FP32 codes, bit-exact, on whole arrays.

Integers up to the power of two before rounding; NumPy's float64 to float32 then rounds once, for 35 bits
and any exponent down to 2^-186 are exact in float64. The truth of it is mpmath
(tests/unit/test_golden_exp.py).
"""

import numpy as np
from numpy.typing import NDArray

from rtl.contract import exp_table as numbers
from verif.golden.numeric import canonical

__all__ = ["exp", "power"]

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


def power(f: I64) -> I64:
    """2^(f * 2^-T_BITS) in units of 2^-POWER_BITS, for 0 <= f < 2^T_BITS."""
    index, rest = np.divmod(f, 1 << numbers.REST_BITS)
    table = np.array(numbers.TABLE, dtype=np.uint64)[index]
    r = rest.astype(np.uint64)
    bend = (r * np.uint64(numbers.C2)) >> np.uint64(numbers.T_BITS + numbers.C2_BITS - numbers.C1_BITS)
    rise = (r * (np.uint64(numbers.C1) + bend)) >> np.uint64(numbers.C1_BITS)
    return (table + ((table * rise) >> np.uint64(numbers.T_BITS))).astype(np.int64)


def _binary_exponent(d: NDArray[np.float32]) -> I64:
    """floor of d * log2(e) in units of 2^-T_BITS, towards zero; d is finite and below 128 in size."""
    fraction, exponent = np.frexp(np.abs(d))
    significand = np.ldexp(fraction.astype(np.float64), 24).astype(np.uint64)
    product = significand * np.uint64(numbers.LOG2E)
    places = 24 + numbers.LOG2E_BITS - numbers.T_BITS - exponent.astype(np.int64)
    size = np.where(places < 64, product >> np.minimum(places, 63).astype(np.uint64), np.uint64(0))
    return np.where(np.signbit(d), -1, 1) * size.astype(np.int64)


def exp(x: U32, m: U32) -> U32:
    """Codes in, codes out, one dimension; gradual underflow, canonical NaN."""
    with np.errstate(all="ignore"):
        d = np.asarray(np.ascontiguousarray(x, np.uint32).view(np.float32) - m.view(np.float32))
        large = ~(np.abs(d) < 128)  # and NaN
        t = _binary_exponent(np.where(large, np.float32(0), d))
        whole = t >> numbers.T_BITS
        inside = power(t - (whole << numbers.T_BITS)).astype(np.float64)
        value = np.ldexp(inside, whole - numbers.POWER_BITS).astype(np.float32)
        limit = np.where(np.isnan(d), d, np.where(d > 0, np.float32(np.inf), np.float32(0)))
        return canonical(np.where(large, limit, value).astype(np.float32))
