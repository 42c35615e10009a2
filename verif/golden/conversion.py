"""Conversion between number formats, by way of FP32: on whole arrays of codes, in integers.

It owes nothing to NumPy's or ml_dtypes' casts, which the tests hold against it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.contract.formats import FORMATS, Format

__all__ = ["canonical_nan", "container", "convert", "from_fp32", "magnitudes", "to_fp32"]

I64 = NDArray[np.int64]
_FP32 = FORMATS["fp32"]
_NAN = {"e4m3fn": 0x7F, "e2m1": 0x8, "e8m0": 0xFF}
"""NaNs that are not the first quiet one. E2M1 has none: ml_dtypes makes a negative zero of it."""


def _known(name: str) -> Format:
    if name not in FORMATS:
        raise ValueError(f"conversion knows {', '.join(FORMATS)}, not {name!r}")
    return FORMATS[name]


def container(name: str) -> np.dtype:
    """The unsigned integer type that holds one code of format `name`. ValueError if there is no such format."""
    return np.dtype(f"uint{max(8, _known(name).bits)}")


def canonical_nan(name: str) -> int:
    """What every NaN becomes in `name`: positive, quiet, no payload; 0 in integers."""
    fmt = _known(name)
    if fmt.integer:
        return 0
    if name in _NAN:
        return _NAN[name]
    quiet = ((1 << fmt.exponent) - 1) << fmt.mantissa | 1 << (fmt.mantissa - 1)
    return quiet << 13 if name == "tf32" else quiet


def _bit_length(x: I64) -> I64:
    """Of numbers below 2^53."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


def _nearest(significand: I64, right: I64) -> I64:
    """significand / 2^right to the nearest integer, ties to even; a negative `right` multiplies."""
    shift = np.clip(right, 0, 60)
    shifted = significand << np.clip(-right, 0, 30)
    kept = shifted >> shift
    rest = shifted - (kept << shift)
    half = np.int64(1) << shift >> 1
    return kept + ((shift > 0) & ((rest > half) | ((rest == half) & (kept & 1 == 1))))


def _pack(sign: I64, significand: I64, exponent: I64, fmt: Format) -> I64:
    """Codes of significand * 2^exponent without an upper limit: a carry moves into the exponent by itself."""
    leading = np.maximum(exponent + _bit_length(significand) - 1, 1 - fmt.bias)
    kept = _nearest(significand, leading - fmt.mantissa - exponent)
    # a subnormal has leading + bias = 1, so the field is 0 until `kept` reaches the hidden bit
    code = np.where(significand == 0, 0, (leading + fmt.bias - 1 << fmt.mantissa) + kept)
    return code


def to_fp32(bits: ArrayLike, src: str) -> NDArray[np.uint32]:
    """FP32 codes of codes of format `src`, any shape. Exact but for 32-bit integers, which round to nearest even.

    NaNs become the canonical one, but for FP32 itself, which passes unchanged.
    """
    fmt = _known(src)
    codes = np.asarray(bits).astype(np.int64) & ((1 << fmt.bits) - 1)
    if src == "fp32":
        return codes.astype(np.uint32)
    if fmt.integer:
        if fmt.signed:
            codes = np.where(codes >> (fmt.bits - 1), codes - (1 << fmt.bits), codes)
        sign = (codes < 0).astype(np.int64)
        return (sign << 31 | _pack(sign, np.abs(codes), np.zeros_like(codes), _FP32)).astype(np.uint32)
    if src == "e8m0":
        values = np.where(codes == 0, 1 << 22, codes << 23)
        return np.where(codes == 255, canonical_nan("fp32"), values).astype(np.uint32)
    if src == "tf32":
        codes >>= 13
    sign = codes >> (fmt.exponent + fmt.mantissa)
    top = (1 << fmt.exponent) - 1
    field, fraction = codes >> fmt.mantissa & top, codes & ((1 << fmt.mantissa) - 1)
    significand = np.where(field == 0, fraction, fraction | 1 << fmt.mantissa)
    code = _pack(sign, significand, np.maximum(field, 1) - fmt.bias - fmt.mantissa, _FP32)
    special = (field == top) & fmt.infinities
    code = np.where(special, 0x7F800000, code) | sign << 31
    nan = special & (fraction != 0)
    if src == "e4m3fn":
        nan = codes & 0x7F == 0x7F
    return np.where(nan, canonical_nan("fp32"), code).astype(np.uint32)


def _largest(fmt: Format) -> int:
    """Magnitude of the largest finite number."""
    if fmt.name == "e4m3fn":
        return 0x7E
    if not fmt.infinities:
        return (1 << (fmt.bits - 1)) - 1
    return (((1 << fmt.exponent) - 1) << fmt.mantissa) - 1


def magnitudes(significand: I64, exponent: I64, dst: str, saturate: bool) -> I64:
    """Codes without sign of significand * 2^exponent, once rounded to nearest even; too large as in `from_fp32`."""
    fmt = _known(dst)
    rounded = _pack(np.zeros_like(significand), significand, exponent, fmt)
    largest = _largest(fmt)
    return np.where(rounded > largest, largest if saturate or dst == "e2m1" else largest + 1, rounded)


def _to_integer(sign: I64, significand: I64, exponent: I64, infinite: NDArray[np.bool_], fmt: Format) -> I64:
    low = -(1 << (fmt.bits - 1)) if fmt.signed else 0
    high = (1 << (fmt.bits - fmt.signed)) - 1
    size = _nearest(significand, -np.minimum(exponent, 20))
    size = np.where(infinite, 1 << 40, size)
    return np.clip(np.where(sign == 1, -size, size), low, high) & ((1 << fmt.bits) - 1)


def _to_e8m0(codes: I64, saturate: bool) -> I64:
    """As ml_dtypes: the nearest power of two, of equally near ones the larger; between 2^-127 and 2^-126 always the
    larger. 0 and negative numbers give NaN."""
    field, fraction = codes >> 23 & 0xFF, codes & 0x7FFFFF
    near = np.where(field == 0, fraction > 1 << 22, field + (fraction >> 22))
    near = np.where((near == 255) & saturate, 254, near)
    return np.where((codes >> 31 == 1) | (codes == 0), 255, near)


def from_fp32(bits: ArrayLike, dst: str, saturate: bool = False) -> NDArray[np.unsignedinteger]:
    """Codes of format `dst` of FP32 codes: nearest even, subnormals kept, NaN to canonical_nan(dst).

    Overflow and infinities: infinity; in e4m3fn NaN, in e2m1 the largest number; with `saturate` the
    largest finite number. Integers always saturate. Shape: any.
    """
    fmt = _known(dst)
    codes = np.asarray(bits).astype(np.int64) & 0xFFFFFFFF
    if dst == "fp32" and not saturate:
        return codes.astype(np.uint32)
    sign, field, fraction = codes >> 31, codes >> 23 & 0xFF, codes & 0x7FFFFF
    infinite, nan = (field == 255) & (fraction == 0), (field == 255) & (fraction != 0)
    significand = np.where(field == 0, fraction, fraction | 1 << 23)
    exponent = np.maximum(field, 1) - 150
    if dst == "fp32":
        code = np.where(infinite, codes - 1, codes)
    elif fmt.integer:
        code = _to_integer(sign, significand, exponent, infinite, fmt)
    elif dst == "e8m0":
        code = _to_e8m0(codes, saturate)
    else:
        # beyond the largest number: infinity, or the NaN of e4m3fn
        code = magnitudes(significand, np.where(infinite, 1 << 10, exponent), dst, saturate)
        code |= sign << (fmt.exponent + fmt.mantissa)
        if dst == "tf32":
            code = code << 13
    code = np.where(nan, canonical_nan(dst), code)
    return code.astype(container(dst))


def convert(bits: ArrayLike, src: str, dst: str, saturate: bool = False) -> NDArray[np.unsignedinteger]:
    """Codes of format `src` to codes of format `dst`, by way of FP32; equal formats pass unchanged."""
    if src == dst:
        return (np.asarray(bits).astype(np.int64) & ((1 << _known(src).bits) - 1)).astype(container(src))
    return from_fp32(to_fp32(bits, src), dst, saturate)
