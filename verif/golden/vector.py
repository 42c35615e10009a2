"""What the vector engine computes, on bit patterns: conversions between floating-point formats and tensor_copy.

Everything is integer arithmetic on the fields of rtl.contract.formats, so it owes nothing to NumPy's
or ml_dtypes' casts, which the tests hold against it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.contract.formats import FORMATS, Format

__all__ = ["canonical_nan", "container", "convert", "tensor_copy"]

_FLOATS = ("fp32", "bf16", "fp16")


def container(name: str) -> np.dtype:
    """The unsigned integer type that holds one element of format `name`. ValueError if none does."""
    return np.dtype(f"uint{_known(name).bits}")


def canonical_nan(name: str) -> int:
    """The NaN that every conversion to `name` gives: positive, quiet, no payload."""
    fmt = _known(name)
    return ((1 << fmt.exponent) - 1) << fmt.mantissa | 1 << (fmt.mantissa - 1)


def _known(name: str) -> Format:
    if name not in _FLOATS:
        raise ValueError(f"conversion knows {', '.join(_FLOATS)}, not {name!r}")
    return FORMATS[name]


def _unpack(
    codes: NDArray[np.int64], fmt: Format
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Sign, significand and exponent (value = significand * 2^exponent), is infinite, is NaN."""
    top = (1 << fmt.exponent) - 1
    sign = codes >> (fmt.exponent + fmt.mantissa)
    field = codes >> fmt.mantissa & top
    fraction = codes & ((1 << fmt.mantissa) - 1)
    significand = np.where(field == 0, fraction, fraction | 1 << fmt.mantissa)
    exponent = np.maximum(field, 1) - fmt.bias - fmt.mantissa
    special = field == top
    return sign, significand, exponent, special & (fraction == 0), special & (fraction != 0)


def _pack(
    sign: NDArray[np.int64], significand: NDArray[np.int64], exponent: NDArray[np.int64], fmt: Format
) -> NDArray[np.int64]:
    """Round to nearest even, with gradual underflow; too large a value becomes infinite."""
    infinity = ((1 << fmt.exponent) - 1) << fmt.mantissa
    # frexp counts bits exactly: significands have at most 24 of them
    length = np.frexp(significand.astype(np.float64))[1].astype(np.int64)
    leading = np.maximum(exponent + length - 1, 1 - fmt.bias)
    shift = leading - fmt.mantissa - exponent  # bits of the significand below the last kept one
    right = np.clip(shift, 0, 40)
    left = np.clip(-shift, 0, 40)
    shifted = significand << left
    kept = shifted >> right
    rest = shifted - (kept << right)
    half = np.int64(1) << right >> 1
    up = (right > 0) & ((rest > half) | ((rest == half) & (kept & 1 == 1)))
    # a subnormal has leading + bias = 1, so the field is 0 until `kept` reaches the hidden bit;
    # a carry out of `kept` moves into the exponent by itself
    code = (leading + fmt.bias - 1 << fmt.mantissa) + kept + up
    code = np.where(significand == 0, 0, np.minimum(code, infinity))
    return sign << (fmt.exponent + fmt.mantissa) | code


def convert(bits: ArrayLike, src: str, dst: str, saturate: bool = False) -> NDArray[np.unsignedinteger]:
    """Codes of format `src` to codes of format `dst`, element by element.

    Equal formats: the bits pass unchanged. Else round to nearest even, overflow to infinity, subnormals
    kept, any NaN to canonical_nan(dst). `saturate`: every infinite result is the largest finite number.
    Shape: any; the result has it too, in container(dst).
    """
    source, target = _known(src), _known(dst)
    codes = np.asarray(bits)
    if codes.dtype != container(src):
        codes = codes.astype(container(src))
    if src == dst:
        return codes.copy()
    sign, significand, exponent, infinite, nan = _unpack(codes.astype(np.int64), source)
    code = _pack(sign, significand, exponent, target)
    infinity = ((1 << target.exponent) - 1) << target.mantissa
    code = np.where(infinite, sign << (target.exponent + target.mantissa) | infinity, code)
    if saturate:
        # Codes of one sign ascend, so the largest finite number is the one below infinity.
        magnitude = code & ((1 << (target.exponent + target.mantissa)) - 1)
        code = np.where(magnitude == infinity, code - 1, code)
    code = np.where(nan, canonical_nan(dst), code)
    return code.astype(container(dst))


def tensor_copy(source: ArrayLike, src: str, dst: str) -> NDArray[np.unsignedinteger]:
    """The instruction TENSOR_COPY on [partitions, elements] codes: what its destination then holds."""
    return convert(source, src, dst)
