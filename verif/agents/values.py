"""Random codes of float formats that go where the bugs are: specials, subnormals, ties, cancellation."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS, Format

__all__ = ["FLAVOURS", "companions", "random_codes", "single_bit_codes", "special_codes"]

FLAVOURS = ("bits", "normal", "special", "subnormal", "narrow")
"""bits: uniform codes. normal: values about 1. special: zeros, infinities, NaN, largest, smallest, and one bit alone.
subnormal: FP32 sums of products are subnormal or nearly. narrow: few exponents and mantissas, so that sums cancel and
tie."""


@cache
def special_codes(fmt: Format) -> NDArray[np.uint32]:
    """Zeros, infinities, NaNs, largest and smallest normal and subnormal, one and its neighbours, both signs.

    Not to be written to.
    """
    top = ((1 << fmt.exponent) - 1) << fmt.mantissa
    one = fmt.bias << fmt.mantissa
    smallest = 1 << fmt.mantissa
    some = [0, 1, 2, 3, smallest - 1, smallest, smallest + 1, one - 1, one, one + 1, top - 1, top, top + 1]
    some += [top | 1 << (fmt.mantissa - 1), top | (smallest - 1), one | 1 << (fmt.mantissa - 1)]
    sign = 1 << (fmt.bits - 1)
    codes = np.array([c | s for s in (0, sign) for c in some], dtype=np.uint32)
    codes.flags.writeable = False
    return codes


@cache
def single_bit_codes(fmt: Format) -> NDArray[np.uint32]:
    """Subnormal numbers and NaNs with one bit of the fraction, both signs: each bit must count.

    Not to be written to.
    """
    top = ((1 << fmt.exponent) - 1) << fmt.mantissa
    sign = 1 << (fmt.bits - 1)
    codes = np.array([c | s | 1 << n for s in (0, sign) for c in (0, top) for n in range(fmt.mantissa)], np.uint32)
    codes.flags.writeable = False
    return codes


def random_codes(rng: np.random.Generator, shape: tuple[int, ...], name: str, flavour: str) -> NDArray[np.uint32]:
    """Codes of format `name` in one of the FLAVOURS."""
    fmt = FORMATS[name]
    bits = rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64).astype(np.uint32)
    fraction = np.uint32((1 << fmt.mantissa) - 1)
    sign = np.uint32(1 << (fmt.bits - 1))
    if flavour == "bits":
        return bits
    if flavour == "special":
        special, single = special_codes(fmt), single_bit_codes(fmt)
        kind = rng.random(shape)
        other = np.where(kind < 0.4, special[rng.integers(0, len(special), shape)], bits)
        return np.where(kind > 0.9, single[rng.integers(0, len(single), shape)], other)
    if flavour == "normal":
        field = rng.integers(fmt.bias - 4, fmt.bias + 4, shape)
        few = bits & fraction
    elif flavour == "narrow":
        field = rng.integers(fmt.bias - 1, fmt.bias + 2, shape)
        few = bits & fraction & ~np.uint32(fraction >> 2)
    elif flavour == "subnormal":
        # A product of two is about 2^-149 to 2^-120; where the format does not reach, its own subnormals.
        low = max(fmt.bias - 74, 0)
        field = rng.integers(low, low + 14, shape) if fmt.exponent == 8 else rng.integers(0, 2, shape)
        few = bits & fraction
    else:
        raise ValueError(f"values come in the flavours {', '.join(FLAVOURS)}, not {flavour}")
    return (bits & sign) | (field.astype(np.uint32) << np.uint32(fmt.mantissa)) | few


def companions(rng: np.random.Generator, codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """FP32 codes that make adding to `codes` (FP32) hard: nearly opposite, or up to 30 binades away, or special."""
    count = len(codes)
    opposite = (codes ^ np.uint32(1 << 31)) + rng.integers(-3, 4, count).astype(np.uint32)
    field = (codes >> np.uint32(23)) & np.uint32(0xFF)
    moved = (field + rng.integers(-30, 31, count).astype(np.uint32)) & np.uint32(0xFF)
    random = random_codes(rng, (count,), "fp32", "bits")
    few = np.where(rng.random(count) < 0.5, random, random & np.uint32(0xFFFC0000))
    apart = (few & np.uint32(0x807FFFFF)) | moved << np.uint32(23)
    kind = rng.integers(0, 4, count)
    return np.select(
        [kind == 0, kind == 1, kind == 2],
        [opposite, apart, random_codes(rng, (count,), "fp32", "special")],
        random,
    ).astype(np.uint32)
