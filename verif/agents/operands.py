"""Values to the operand format of processing elements."""

import numpy as np
from numpy.typing import NDArray

from rtl.numeric.pe.operand import EXPONENT_BIAS, EXPONENT_BITS, EXPONENT_SPECIAL, INFINITY, NAN, SIGNIFICAND_BITS

__all__ = ["operand_words", "random_wide_values"]


def operand_words(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Words of the operand layout for float32 values. ValueError if one has more than 12 significant bits."""
    exact = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(exact) & (exact != 0)
    fraction, exponent = np.frexp(np.where(finite, np.abs(exact), 1.0))
    significand = fraction * (1 << SIGNIFICAND_BITS)
    if (significand != np.floor(significand)).any():
        raise ValueError("an operand has at most 12 significant bits")
    field = np.where(finite, exponent - 1 + EXPONENT_BIAS, 0)
    significand = np.where(finite, significand, 0).astype(np.int64)
    special = ~np.isfinite(exact)
    field = np.where(special, EXPONENT_SPECIAL, field).astype(np.int64)
    significand = np.where(special, np.where(np.isnan(exact), NAN, INFINITY), significand)
    sign = np.signbit(exact).astype(np.int64)
    return (significand | field << SIGNIFICAND_BITS | sign << (SIGNIFICAND_BITS + EXPONENT_BITS)).astype(np.uint32)


def random_wide_values(rng: np.random.Generator, count: int, spread: int) -> NDArray[np.float32]:
    """Float32 values of 12 significant bits, exponents up to `spread` from 0; the halves of an FP32 reach 2^-149."""
    significand = rng.integers(1 << (SIGNIFICAND_BITS - 1), 1 << SIGNIFICAND_BITS, count)
    significand &= ~((1 << rng.integers(0, SIGNIFICAND_BITS, count)) - 1)
    exponent = rng.integers(-min(spread, 149), min(spread, 127) + 1, count)
    lost = np.maximum(-149 + SIGNIFICAND_BITS - 1 - exponent, 0)  # bits below the last place of FP32
    significand = (significand >> lost) << lost
    values = np.ldexp(significand.astype(np.float64), exponent - (SIGNIFICAND_BITS - 1))
    return np.where(rng.random(count) < 0.5, -values, values).astype(np.float32)
