"""Values to bit patterns and back, for the dtypes that programs use; NumPy only.

Bits are unsigned arrays as wide as an element: uint32 for fp32, uint16 for bf16, uint8 for e4m3fn and so on.
"""

from functools import cache

import numpy as np

from rtl.contract.formats import FORMATS

__all__ = ["bits_dtype", "decode", "element_bytes", "encode"]

_FORMATS = tuple(name for name, f in FORMATS.items() if f.bits >= 8 and name != "e8m0")


def bits_dtype(dtype: str) -> np.dtype:
    """The unsigned NumPy dtype that holds one element. ValueError if programs do not use the format."""
    if dtype not in _FORMATS:
        raise ValueError(f"dtype must be one of {', '.join(_FORMATS)}, not {dtype!r}")
    return np.dtype(f"uint{FORMATS[dtype].bits}")


def element_bytes(dtype: str) -> int:
    """Bytes of an element in memory."""
    bits_dtype(dtype)
    return FORMATS[dtype].bytes


@cache
def _values(dtype: str) -> np.ndarray:
    """What each of the 256 codes of an 8-bit float is worth."""
    fmt = FORMATS[dtype]
    code = np.arange(256)
    field, fraction = code >> fmt.mantissa & ((1 << fmt.exponent) - 1), code & ((1 << fmt.mantissa) - 1)
    significand = np.where(field == 0, fraction, fraction | 1 << fmt.mantissa)
    values = np.ldexp(significand.astype(np.float32), np.maximum(field, 1) - fmt.bias - fmt.mantissa)
    if fmt.infinities:
        top = field == (1 << fmt.exponent) - 1
        values = np.where(top, np.where(fraction == 0, np.inf, np.nan), values)
    else:
        values = np.where(code & 0x7F == 0x7F, np.nan, values)
    return np.where(code >> 7 == 1, -values, values).astype(np.float32)


def _encode_small(x: np.ndarray, dtype: str) -> np.ndarray:
    """Nearest code of an 8-bit float, of two equally near ones the even one; overflow to infinity or NaN."""
    values = _values(dtype)
    finite = np.flatnonzero(np.isfinite(values[:128]))
    sizes = np.append(values[finite], 2 * values[finite[-1]] - values[finite[-2]]).astype(np.float64)
    with np.errstate(invalid="ignore"):  # NaNs are cast too
        size = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(sizes, size), 1, len(sizes) - 1)
    middle = (sizes[above - 1] + sizes[above]) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    code = np.where(up, above, above - 1)
    code = np.where(np.isnan(x), np.flatnonzero(np.isnan(values))[0], code)
    if FORMATS[dtype].infinities:
        code = np.where(np.isnan(x), code | 1 << (FORMATS[dtype].mantissa - 1), code)
    return (code | np.where(np.signbit(x) & ~np.isnan(x), 128, 0)).astype(np.uint8)


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values to bits, rounded to nearest even; a NaN becomes the canonical quiet NaN.

    Integer formats take whole numbers of their range, as any type.
    """
    kind = bits_dtype(dtype)
    if FORMATS[dtype].integer:
        whole = np.asarray(values).astype(np.int64)
        return whole.astype(kind)
    x = np.asarray(values, np.float32)
    if dtype == "fp32":
        return x.view(kind)
    if dtype == "fp16":
        with np.errstate(over="ignore"):
            return np.where(np.isnan(x), np.uint16(0x7E00), x.astype(np.float16).view(np.uint16))
    if FORMATS[dtype].bits == 8:
        return _encode_small(x, dtype)
    drop = 13 if dtype == "tf32" else 16
    bits = x.view(np.uint32)
    rounded = bits + ((1 << drop - 1) - 1 + ((bits >> drop) & 1)) >> drop  # only a NaN can wrap
    if dtype == "tf32":
        return np.where(np.isnan(x), np.uint32(0x7FC00000), rounded << drop).astype(kind)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded.astype(kind))


def decode(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Bits to float32 values, exactly; integers become integers of their kind."""
    b = np.asarray(bits, bits_dtype(dtype))
    fmt = FORMATS[dtype]
    if fmt.integer:
        return b.view(f"int{fmt.bits}") if fmt.signed else b
    if dtype in ("fp32", "tf32"):
        return b.view(np.float32)
    if dtype == "fp16":
        return b.view(np.float16).astype(np.float32)
    if fmt.bits == 8:
        return _values(dtype)[b]
    return (b.astype(np.uint32) << 16).view(np.float32)
