"""Rows of four products whose scaled sum is hard to round, and accumulators that are hard to add to it."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS
from verif.agents.elements import element_values, kinds
from verif.agents.values import companions

__all__ = ["FLAVOURS", "accumulators", "corner_rows", "hard_rows"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]

FLAVOURS = ("bits", "cancel", "tie", "wide", "subnormal", "overflow", "special", "narrow", "twice")
"""bits: uniform codes. cancel: products of opposite signs, often to exactly zero. tie: a large product, half of its
last place, and little or nothing below. wide: the same on top of the largest two products. subnormal, overflow: scales
put the sum at that end of FP32. special: many infinities, NaN, zeros, ends of scales. narrow: few exponents. twice:
subnormal results that rounding to 24 bits first would make ties. The bits above an E2M1 code are don't care."""

SPECIALS = {
    "e4m3fn": (0x00, 0x80, 0x7F, 0xFF, 0x7E, 0xFE, 0x78, 0x01, 0x81),
    "e4m3": (0x00, 0x80, 0x78, 0xF8, 0x79, 0xFF, 0x77, 0x01, 0x81),
    "e5m2": (0x00, 0x80, 0x7C, 0xFC, 0x7D, 0xFF, 0x7B, 0x01, 0x81),
    "e2m1": (0x00, 0x08, 0x07, 0x0F, 0x01, 0x09),
}


@cache
def _powers(name: str) -> tuple[int, U8]:
    """(lowest exponent, codes of 2^lowest, 2^(lowest + 1), ...) of a format."""
    fmt = FORMATS[name]
    lowest = 1 - fmt.bias - fmt.mantissa
    fields = (1 << fmt.exponent) - fmt.infinities - 1
    codes = [1 << k for k in range(fmt.mantissa)] + [f << fmt.mantissa for f in range(1, fields + 1)]
    return lowest, np.array(codes, np.uint8)


def _power_product(rng: np.random.Generator, wanted: I64, fmt_a: str, fmt_b: str) -> tuple[U8, U8]:
    """Codes whose products are 2^wanted, as far as the formats reach."""
    (low_a, codes_a), (low_b, codes_b) = _powers(fmt_a), _powers(fmt_b)
    high_a, high_b = low_a + len(codes_a) - 1, low_b + len(codes_b) - 1
    wanted = np.clip(wanted, low_a + low_b, high_a + high_b)
    first = np.maximum(low_a, wanted - high_b)
    last = np.minimum(high_a, wanted - low_b)
    exponent = rng.integers(first, last + 1)
    return codes_a[exponent - low_a], codes_b[wanted - exponent - low_b]


def _negative(codes: U8, name: str, where: NDArray[np.bool_]) -> U8:
    return (codes ^ np.where(where, 1 << (FORMATS[name].bits - 1), 0)).astype(np.uint8)


def _steps(rng: np.random.Generator, n: int, fmt_a: str, fmt_b: str, top: I64) -> tuple[U8, U8]:
    """Products 2^top, half of its last place, something far below or nothing, an odd last place or nothing."""
    lowest = _powers(fmt_a)[0] + _powers(fmt_b)[0]
    below = rng.integers(np.minimum(lowest, top - 26), np.maximum(top - 24, lowest + 1))
    below = np.where(rng.random(n) < 0.3, lowest, below)
    exponents = np.stack([top, top - 24, below, top - 23], axis=1)
    a, b = _power_product(rng, exponents, fmt_a, fmt_b)
    a[:, 2:] = np.where(rng.random((n, 2)) < 0.4, 0, a[:, 2:])
    return _negative(a, fmt_a, rng.random((n, 4)) < 0.3), b


def _rows(
    rng: np.random.Generator, n: int, fmt_a: str, fmt_b: str, flavour: str, lost: NDArray[np.int64]
) -> tuple[U8, U8]:
    """Codes of both sides; `lost`: how many places the results of "twice" lie below FP32's normal numbers."""
    formats = (fmt_a, fmt_b)
    a, b = (rng.integers(0, 1 << FORMATS[f].bits, (n, 4), dtype=np.uint8) for f in formats)
    (low_a, powers_a), (low_b, powers_b) = _powers(fmt_a), _powers(fmt_b)
    low, high = low_a + low_b, low_a + low_b + len(powers_a) + len(powers_b) - 2  # exponents of products
    if flavour == "cancel":
        for second, often in ((1, 1.0), (3, 0.5)):
            same = rng.random(n) < often
            a[:, second] = np.where(same, _negative(a[:, second - 1], fmt_a, same), a[:, second])
            b[:, second] = np.where(same, b[:, second - 1], b[:, second])
    elif flavour == "tie":
        a, b = _steps(rng, n, fmt_a, fmt_b, rng.integers(min(low + 23, high), high + 1, n))
    elif flavour == "twice":
        top = rng.integers(max(low, high - 8), high + 1, n)
        places = top[:, None] + np.stack([np.zeros(n, np.int64), lost - 23, lost - 24, rng.integers(-40, -25, n)], 1)
        a, b = _power_product(rng, places, fmt_a, fmt_b)
        a[:, 3] ^= np.uint8(1 << (FORMATS[fmt_a].bits - 1))
        a = _negative(a, fmt_a, np.tile(rng.random(n) < 0.5, (4, 1)).T)
    elif flavour == "wide":
        largest = [int(np.argmax(element_values(f))) for f in formats]
        twice = 2 * float(np.prod([element_values(f)[c] for f, c in zip(formats, largest, strict=True)]))
        steps_a, steps_b = _steps(rng, n, fmt_a, fmt_b, np.full(n, int(np.frexp(twice)[1]) - 1))
        a[:, :2], b[:, :2] = largest
        a[:, 2:], b[:, 2:] = steps_a[:, 1:3], steps_b[:, 1:3]
    elif flavour == "narrow":
        for x, fmt in ((a, fmt_a), (b, fmt_b)):
            f = FORMATS[fmt]
            field = rng.integers(max(f.bias - 1, 0), f.bias + 2, (n, 4), dtype=np.uint8)
            rest = np.uint8(1 << (f.bits - 1) | (1 << f.mantissa) - 1)
            x[:] = x & rest | field << np.uint8(f.mantissa)
    elif flavour == "special":
        for x, fmt in ((a, fmt_a), (b, fmt_b)):
            x[:] = np.where(rng.random((n, 4)) < 0.3, rng.choice(np.array(SPECIALS[fmt], np.uint8), (n, 4)), x)
    if flavour not in ("bits", "special"):  # NaN and infinities would hide what these are about
        for x, fmt in ((a, fmt_a), (b, fmt_b)):
            x[:] = np.where(np.isin(kinds(x, fmt), ("nan", "infinity")), x & ~np.uint8(1 << FORMATS[fmt].mantissa), x)
    for x, fmt in ((a, fmt_a), (b, fmt_b)):
        if fmt == "e2m1":
            x |= rng.integers(0, 16, (n, 4), dtype=np.uint8) << np.uint8(4)
    order = rng.permuted(np.tile(np.arange(4), (n, 1)), axis=1)
    return np.take_along_axis(a, order, axis=1), np.take_along_axis(b, order, axis=1)


def _size(a: U8, b: U8, fmt_a: str, fmt_b: str) -> I64:
    """Exponent of the sum of the products, roughly; 0 of a sum of zero."""
    total = (element_values(fmt_a)[a] * element_values(fmt_b)[b]).sum(axis=1)
    return np.frexp(total)[1].astype(np.int64) - 1


def hard_rows(
    rng: np.random.Generator, n: int, fmt_a: str, fmt_b: str, scale_fmt: str, flavour: str
) -> tuple[U8, U8, U8, U8]:
    """a, b [n, 4] codes and sa, sb [n] scale codes in one of the FLAVOURS."""
    lost = rng.integers(1, 5, n)
    a, b = _rows(rng, n, fmt_a, fmt_b, flavour, lost)
    if scale_fmt == "e4m3fn":
        scales = rng.integers(0, 256, (2, n), dtype=np.uint8)
        plain = (rng.random((2, n)) < 0.5) & (flavour not in ("bits", "special"))  # a power of two keeps a tie
        powers = (scales & 0x80) | rng.integers(1, 16, (2, n), dtype=np.uint8) << np.uint8(3)
        scales = np.where(plain, powers, scales)
        return a, b, scales[0], scales[1]
    wanted = rng.integers(-20, 20, n)
    if flavour == "subnormal":
        wanted = rng.integers(-152, -123, n) - _size(a, b, fmt_a, fmt_b)
    elif flavour == "overflow":
        wanted = rng.integers(125, 130, n) - _size(a, b, fmt_a, fmt_b)
    elif flavour == "twice":
        wanted = -126 - lost - _size(a, b, fmt_a, fmt_b)
    elif flavour in ("tie", "wide"):  # the same tie, far off, or at the edge of the subnormals
        edge = rng.integers(-130, -125, n) - _size(a, b, fmt_a, fmt_b)
        wanted = np.where(rng.random(n) < 0.2, edge, wanted)
    total = np.clip(wanted + 254, 0, 508)
    sa = rng.integers(np.maximum(total - 254, 0), np.minimum(total, 254) + 1)
    sb = total - sa
    if flavour in ("bits", "special"):
        ends = rng.choice(np.array([0, 1, 127, 254, 255]), (2, n), p=[0.2, 0.1, 0.5, 0.15, 0.05])
        anywhere = rng.random(n) < 0.3
        sa, sb = np.where(anywhere, ends[0], sa), np.where(anywhere, ends[1], sb)
    return a, b, sa.astype(np.uint8), sb.astype(np.uint8)


def accumulators(rng: np.random.Generator, products: U32) -> U32:
    """FP32 codes that are hard to add to the products, and zeros of both signs for a quarter of them."""
    zeros = rng.integers(0, 2, len(products), dtype=np.uint32) << np.uint32(31)
    return np.where(rng.random(len(products)) < 0.25, zeros, companions(rng, products)).astype(np.uint32)


def corner_rows(fmt_a: str, fmt_b: str, scale_fmt: str) -> tuple[U8, U8, U8, U8]:
    """Every special class of row with every special class of scales: a, b [n, 4] codes and sa, sb [n] scale codes."""
    one_a, one_b = (FORMATS[f].bias << FORMATS[f].mantissa for f in (fmt_a, fmt_b))
    minus_a, minus_b = (1 << (FORMATS[f].bits - 1) for f in (fmt_a, fmt_b))
    rows = [
        ([0, minus_a, 0, minus_a], [0, 0, minus_b, minus_b]),
        ([minus_a, 0, 0, 0], [0, 0, 0, 0]),
        ([one_a, one_a, 0, 0], [one_b, one_b | minus_b, 0, 0]),
        ([0, one_a | minus_a, 0, 0], [0, one_b, 0, 0]),
    ]
    if fmt_a == fmt_b == "e5m2":  # 2^30 + 2^6 + 2^-32, and 6.125 * 2^30 + 2^8 + 2^-32, with and without the last
        rows += [
            (x, x) for x in ([0x78, 0x48, 0x01, 0], [0x78, 0x48, 0, 0], [0x7B, 0x7B, 0x4C, 1], [0x7B, 0x7B, 0x4C, 0])
        ]
    for fmt, one, other, turned in ((fmt_a, one_a, one_b, False), (fmt_b, one_b, one_a, True)):
        minus = 1 << (FORMATS[fmt].bits - 1)
        found = kinds(np.arange(256, dtype=np.uint8), fmt)
        some = [
            ([c if k == at else one for k in range(4)], [other] * 4)
            for at, c in enumerate(np.flatnonzero(found == "nan")[:4])
        ]
        for infinity in np.flatnonzero(found == "infinity")[:1]:
            some += [
                ([infinity, one, one, one], [other] * 4),
                ([one, one, infinity | minus, one], [other] * 4),
                ([one, infinity, one, infinity | minus], [other] * 4),
                ([infinity, one, one, one], [0, other, other, other]),
                ([one, one, one, infinity], [other, other, other, 0]),
            ]
        rows += [(y, x) if turned else (x, y) for x, y in some]
    scales = ((127, 127), (127, 255), (255, 0), (0, 0), (254, 254), (0, 126))
    if scale_fmt == "e4m3fn":
        first = (0x38, 0x7F, 0x38, 0xB8, 0x00, 0x38, 0x01, 0x81)
        scales = tuple(zip(first, (0x38, 0x38, 0xFF, 0x38, 0x38, 0x80, 0x38, 0x87), strict=True))
    left, right = (np.array([row[side] for row in rows for _ in scales], np.uint8) for side in (0, 1))
    sa, sb = np.tile(np.array(scales, np.uint8), (len(rows), 1)).T
    return left, right, sa, sb
