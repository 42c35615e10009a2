"""Numbers of the exp unit: log2(e), the table of 2^(i/128), the polynomial of 2^r below 1/128.

Made at import from integers alone, so that they are the same everywhere. docs/exp.md says how far each
is from the truth and why that is enough.
"""

from fractions import Fraction
from math import isqrt

__all__ = [
    "C1",
    "C1_BITS",
    "C2",
    "C2_BITS",
    "INDEX_BITS",
    "LOG2E",
    "LOG2E_BITS",
    "POWER_BITS",
    "REST_BITS",
    "TABLE",
    "T_BITS",
]

LOG2E_BITS = 39
"""Fractional bits of LOG2E; a product with 24 bits then fits 64."""
T_BITS = 36
"""Fractional bits of t = d * log2(e)."""
INDEX_BITS = 7
"""Leading fractional bits of t: which entry of TABLE."""
REST_BITS = T_BITS - INDEX_BITS
"""Those behind: r, in units of 2^-T_BITS."""
POWER_BITS = 34
"""Fractional bits of TABLE and of the power before rounding."""
C1_BITS = 32
C2_BITS = 27

_WORK = 200  # bits of everything below


def _ln2() -> Fraction:
    """ln 2 = 2 atanh(1/3), to 2^-_WORK."""
    total = Fraction(0)
    k = 1
    while 3**k < 1 << _WORK:
        total += Fraction(2, k * 3**k)
        k += 2
    return total


def _root(times: int) -> Fraction:
    """2^(2^-times), by `times` square roots, to about 2^-_WORK."""
    x = 2 << 2 * _WORK  # 2 in units of 2^(-2 * _WORK)
    for _ in range(times):
        x = isqrt(x << 2 * _WORK)
    return Fraction(x, 1 << 2 * _WORK)


def _nearest(x: Fraction, bits: int) -> int:
    return int(x * (1 << bits) + Fraction(1, 2))


def _table() -> tuple[int, ...]:
    step = _nearest(_root(INDEX_BITS), _WORK)
    entries: list[int] = []
    power = 1 << _WORK
    for _ in range(1 << INDEX_BITS):
        entries.append(_nearest(Fraction(power, 1 << _WORK), POWER_BITS))
        power = power * step >> _WORK
    return tuple(entries)


def _coefficients() -> tuple[int, int]:
    """The parabola through 2^r - 1 at r = 0, h/2 and h = 1/128, a little less steep.

    Exact at both ends, so that an entry's end meets the next entry's start. C1 is lowered by _LESS so
    that rounding of the table never lets an entry's end pass the next start: the unit stays monotone.
    """
    h = Fraction(1, 1 << INDEX_BITS)
    half = _root(INDEX_BITS + 1) - 1
    whole = _root(INDEX_BITS) - 1
    c1 = (4 * half - whole) / h
    c2 = (2 * whole - 4 * half) / (h * h)
    return int(c1 * (1 << C1_BITS)) - _LESS, int(c2 * (1 << C2_BITS))


_LESS = 32  # lowers an entry's end by 2^-34, a last place of the table

LOG2E = _nearest(1 / _ln2(), LOG2E_BITS)
TABLE = _table()
C1, C2 = _coefficients()
