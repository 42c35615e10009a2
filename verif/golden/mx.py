"""Golden model of the MX dot product and of FP8 at double rate: exact sums in integers, on whole arrays.

A finite element is an integer number of 2^-16 and less than 2^32 of them. Split at 2^0 into a high and a low half of
16 bits each, an element times another is below 2^48 for either half, so that the sums of four and their products
with two E4M3FN significands (up to 15 each) stay below 2^58: two int64 hold the exact value
high * 2^-16 + low * 2^-32.
Source: OCP MX 1.0 section 6.1 (dot product of two blocks), IEEE 754-2019 section 4.3.1.
"""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.contract.formats import CANONICAL_NAN_FP32, FORMATS
from verif.golden.numeric import fp32_add

__all__ = ["ELEMENT_FORMATS", "SCALE_FORMATS", "dot_pair", "dot_product", "mixes", "mx_dot"]

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
ELEMENT_FORMATS = ("e4m3fn", "e4m3", "e5m2", "e2m1")
SCALE_FORMATS = ("e8m0", "e4m3fn")
_ONE = 16  # an element counts in units of 2^-16
_INFINITY, _NAN = 1, 2


@cache
def _table(name: str) -> tuple[I64, NDArray[np.uint8], NDArray[np.uint8]]:
    """Of every u8: value in units of 2^-16 (0 if there is none), 0 or _INFINITY or _NAN, sign."""
    if name not in ELEMENT_FORMATS:
        raise ValueError(f"an element is {', '.join(ELEMENT_FORMATS)}, not {name!r}")
    fmt = FORMATS[name]
    values, kinds, signs = [], [], []
    top = (1 << fmt.exponent) - 1
    for byte in range(256):
        code = byte & ((1 << fmt.bits) - 1)
        field, fraction = code >> fmt.mantissa & top, code & ((1 << fmt.mantissa) - 1)
        kind = 0
        if fmt.infinities and field == top:
            kind = _NAN if fraction else _INFINITY
        if name == "e4m3fn" and code & 0x7F == 0x7F:
            kind = _NAN
        size = (fraction + (1 << fmt.mantissa if field else 0)) << (max(field, 1) - fmt.bias - fmt.mantissa + _ONE)
        sign = code >> (fmt.bits - 1)
        values.append(0 if kind else -size if sign else size)
        kinds.append(kind)
        signs.append(sign)
    return np.array(values, np.int64), np.array(kinds, np.uint8), np.array(signs, np.uint8)


def mixes(fmt_a: str, fmt_b: str) -> bool:
    """Whether the two sides may meet: the two E4M3 may not."""
    return {fmt_a, fmt_b} != {"e4m3", "e4m3fn"}


def _scales(codes: NDArray[np.uint8], name: str) -> tuple[I64, I64, NDArray[np.bool_]]:
    """Scale codes as (significand with its sign, exponent of two, whether it is a NaN)."""
    wide = codes.astype(np.int64)
    if name == "e8m0":
        return np.ones_like(wide), wide - FORMATS[name].bias, wide == 255
    if name not in SCALE_FORMATS:
        raise ValueError(f"a scale is {', '.join(SCALE_FORMATS)}, not {name!r}")
    fmt = FORMATS[name]
    field, fraction = wide >> fmt.mantissa & 15, wide & 7
    significand = np.where(field > 0, fraction + 8, fraction)
    return (
        np.where(wide >> 7, -significand, significand),
        np.maximum(field, 1) - fmt.bias - fmt.mantissa,
        wide & 127 == 127,
    )


def _length(x: I64) -> I64:
    """Bits of non-negative numbers."""
    high = x >> 32
    low = np.where(high > 0, high, x)
    return np.frexp(low.astype(np.float64))[1].astype(np.int64) + np.where(high > 0, 32, 0)


def _rounded(negative: NDArray[np.bool_], whole: I64, exponent: I64) -> U32:
    """FP32 codes nearest to whole * 2^exponent; 0 is +0. The last bit of a `whole` above 2^27 may be a sticky one."""
    last = np.maximum(exponent + _length(whole) - 24, -149)  # weight of the result's last place
    up = np.clip(exponent - last, 0, 24)
    down = np.clip(last - exponent, 0, 62)
    kept = (whole << up) >> down
    rest = whole - (kept << down)
    twice = rest << 1
    kept += (down > 0) & ((twice > np.int64(1) << down) | ((twice == np.int64(1) << down) & (kept & 1 == 1)))
    code = np.minimum((last + 149 << 23) + kept, 0x7F800000)
    return np.where(whole == 0, 0, code | np.where(negative, 1 << 31, 0)).astype(np.uint32)


def dot_product(
    a: ArrayLike, b: ArrayLike, sa: ArrayLike, sb: ArrayLike, fmt_a: str, fmt_b: str, scale_fmt: str = "e8m0"
) -> U32:
    """RN32(sum over k of a[:, k] * b[:, k], times both scales), one rounding.

    a, b: u8 [n, k], k up to 4; sa, sb: u8 [n]; a length of 1 broadcasts. Result: u32 [n].

    An exact zero is +0. NaN: any NaN element or scale, infinity times zero, infinities of both signs.
    """
    if not mixes(fmt_a, fmt_b):
        raise ValueError("e4m3 and e4m3fn are not mixed")
    left, right = (np.asarray(x, np.uint8) for x in (a, b))
    (xa, ka, na), (xb, kb, nb) = (tuple(t[x] for t in _table(f)) for x, f in ((left, fmt_a), (right, fmt_b)))
    (ma, ea, ua), (mb, eb, ub) = (_scales(np.asarray(s, np.uint8), scale_fmt) for s in (sa, sb))
    times = ma * mb
    high = ((xa >> _ONE) * xb).sum(axis=1) * times
    low = ((xa & ((1 << _ONE) - 1)) * xb).sum(axis=1) * times
    high, low = high + (low >> _ONE), low & ((1 << _ONE) - 1)
    negative = high < 0
    borrow = negative & (low != 0)
    low = np.where(borrow, (1 << _ONE) - low, low)
    high = np.where(negative, -high - borrow, high)
    large = high >= 1 << 40
    whole = np.where(large, high | (low != 0), (np.where(large, 0, high) << _ONE) + low)
    code = _rounded(negative, whole, np.where(large, -_ONE, -2 * _ONE) + ea + eb)

    infinite = (ka == _INFINITY) | (kb == _INFINITY)
    zero = ((ka == 0) & (xa == 0)) | ((kb == 0) & (xb == 0))
    minus = na ^ nb
    plus_infinity, minus_infinity = ((infinite & (minus == s)).any(axis=1) for s in (0, 1))
    nan = ((ka == _NAN) | (kb == _NAN) | (infinite & zero)).any(axis=1) | ua | ub | (plus_infinity & minus_infinity)
    endless = plus_infinity | minus_infinity
    nan |= endless & (times == 0)
    code = np.where(endless, np.where(minus_infinity ^ (times < 0), 0xFF800000, 0x7F800000), code)
    return np.where(nan, CANONICAL_NAN_FP32, code).astype(np.uint32)


def mx_dot(
    a: ArrayLike,
    b: ArrayLike,
    sa: ArrayLike,
    sb: ArrayLike,
    acc: ArrayLike,
    fmt_a: str,
    fmt_b: str,
    scale_fmt: str = "e8m0",
) -> U32:
    """dot_product and then the FP32 addition of acc u32 [n]: two roundings in all."""
    product = dot_product(a, b, sa, sb, fmt_a, fmt_b, scale_fmt)
    return fp32_add(product, np.asarray(acc, np.uint32))


def dot_pair(a: ArrayLike, b: ArrayLike, acc: ArrayLike, fmt_a: str, fmt_b: str) -> U32:
    """FP8 at double rate: RN32(RN32(a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]) + acc); a, b u8 [n, 2]."""
    return mx_dot(a, b, 127, 127, acc, fmt_a, fmt_b)
