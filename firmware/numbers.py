"""Values to bit patterns and back, for the dtypes that programs use; NumPy only.

Bits are unsigned arrays as wide as an element: uint32 for fp32, uint16 for bf16, uint8 for e4m3fn and so on. A packed
format like e4m3fn_x4 or bf16_x4 is four such elements side by side, the first one lowest: what a row of the array
takes at once.
"""

from functools import cache

import numpy as np

from rtl.contract.formats import FORMATS
from rtl.contract.sparsity import SPARSE_FORMATS

__all__ = ["bits_dtype", "decode", "element_bytes", "encode", "split_format"]

_FORMATS = tuple(name for name, f in FORMATS.items() if f.bits >= 8)
_PACKED = {
    f"{base}_x{n}": (base, n)
    for n, bases in ((2, ("e4m3fn", "e4m3", "e5m2", *SPARSE_FORMATS)), (4, ("e4m3fn", "e5m2", "e2m1", *SPARSE_FORMATS)))
    for base in bases
}


def split_format(dtype: str) -> tuple[str, int]:
    """Format of a single element, and how many of them one element of `dtype` is."""
    return _PACKED.get(dtype, (dtype, 1))


def bits_dtype(dtype: str) -> np.dtype:
    """The unsigned NumPy dtype that holds one element. ValueError if programs do not use the format."""
    if dtype not in _FORMATS and dtype not in _PACKED:
        raise ValueError(f"dtype must be one of {', '.join((*_FORMATS, *_PACKED))}, not {dtype!r}")
    base, count = split_format(dtype)
    return np.dtype(f"uint{FORMATS[base].bits * count}")


def element_bytes(dtype: str) -> int:
    """Bytes of an element in memory."""
    return bits_dtype(dtype).itemsize


@cache
def _values(dtype: str) -> np.ndarray:
    """What each code of a float of 4 or 8 bits is worth."""
    fmt = FORMATS[dtype]
    code = np.arange(1 << fmt.bits)
    field, fraction = code >> fmt.mantissa & ((1 << fmt.exponent) - 1), code & ((1 << fmt.mantissa) - 1)
    significand = np.where(field == 0, fraction, fraction | 1 << fmt.mantissa)
    values = np.ldexp(significand.astype(np.float32), np.maximum(field, 1) - fmt.bias - fmt.mantissa)
    if fmt.infinities:
        top = field == (1 << fmt.exponent) - 1
        values = np.where(top, np.where(fraction == 0, np.inf, np.nan), values)
    elif fmt.nans:
        values = np.where(code & 0x7F == 0x7F, np.nan, values)
    return np.where(code >> fmt.bits - 1 == 1, -values, values).astype(np.float32)


def _encode_small(x: np.ndarray, dtype: str) -> np.ndarray:
    """Nearest code of a float of 4 or 8 bits, of two equally near ones the even one; overflow to infinity or NaN.
    E2M1 has neither: numbers up to 6 only."""
    values = _values(dtype)
    sign = len(values) // 2
    finite = np.flatnonzero(np.isfinite(values[:sign]))
    sizes = np.append(values[finite], 2 * values[finite[-1]] - values[finite[-2]]).astype(np.float64)
    with np.errstate(invalid="ignore"):  # NaNs are cast too
        size = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(sizes, size), 1, len(sizes) - 1)
    middle = (sizes[above - 1] + sizes[above]) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    code = np.where(up, above, above - 1)
    if FORMATS[dtype].nans:
        code = np.where(np.isnan(x), np.flatnonzero(np.isnan(values))[0], code)
    if FORMATS[dtype].infinities:
        code = np.where(np.isnan(x), code | 1 << (FORMATS[dtype].mantissa - 1), code)
    return (code | np.where(np.signbit(x) & ~np.isnan(x), sign, 0)).astype(np.uint8)


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values to bits, rounded to nearest even; a NaN becomes the canonical quiet NaN.

    Integer formats take whole numbers of their range, as any type.
    """
    kind = np.dtype(np.uint8) if dtype == "e2m1" else bits_dtype(dtype)
    if dtype not in FORMATS or dtype == "e8m0":
        raise ValueError(f"single numbers are encoded, {dtype} is packed or a scale")
    if FORMATS[dtype].integer:
        whole = np.asarray(values).astype(np.int64)
        return whole.astype(kind)
    x = np.asarray(values, np.float32)
    if dtype == "fp32":
        return x.view(kind)
    if dtype == "fp16":
        with np.errstate(over="ignore"):
            return np.where(np.isnan(x), np.uint16(0x7E00), x.astype(np.float16).view(np.uint16))
    if FORMATS[dtype].bits <= 8:
        return _encode_small(x, dtype)
    drop = 13 if dtype == "tf32" else 16
    bits = x.view(np.uint32)
    rounded = bits + ((1 << drop - 1) - 1 + ((bits >> drop) & 1)) >> drop  # only a NaN can wrap
    if dtype == "tf32":
        return np.where(np.isnan(x), np.uint32(0x7FC00000), rounded << drop).astype(kind)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded.astype(kind))


def decode(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Bits to float32 values, exactly; integers become integers of their kind."""
    b = np.asarray(bits, np.uint8 if dtype == "e2m1" else bits_dtype(dtype))
    fmt = FORMATS[split_format(dtype)[0]]
    if dtype not in FORMATS or dtype == "e8m0":
        raise ValueError(f"single numbers are decoded, {dtype} is packed or a scale")
    if fmt.integer:
        return b.view(f"int{fmt.bits}") if fmt.signed else b
    if dtype in ("fp32", "tf32"):
        return b.view(np.float32)
    if dtype == "fp16":
        return b.view(np.float16).astype(np.float32)
    if fmt.bits <= 8:
        return _values(dtype)[b]
    return (b.astype(np.uint32) << 16).view(np.float32)
