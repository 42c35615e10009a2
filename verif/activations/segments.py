"""One binade of a function: its points, the cubics of its segments, and how near they are as the hardware computes.

A segment is the numbers of one sign, one exponent and the same k leading mantissa bits.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
from numpy.typing import NDArray

from rtl.contract.activation_tables import BACK, POSITIVE, RAISED
from rtl.contract.isa import Function
from verif.activations.functions import FUNCTIONS, LIMITS
from verif.activations.truth import BF16, FP32, decided, least, nearly, places_off
from verif.golden.activation import cubic

__all__ = ["TOP", "Row", "Segments", "still"]

mp: Any = mpmath.mp
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

Row = tuple[int, int, int, int]

TOP = mp.mpf(2) ** 128
MINUS_ZERO = 1 << 31
NAN = 0x7FC00000
EACH = 16
"""Points at which a segment is judged, beside all of its BF16 numbers."""
NUDGES = 40
"""Last places by which c0 may move so that all BF16 results of a segment become right."""


def code_of(value: Any) -> int:
    """FP32 code of a real number, or of a float that is infinite, NaN or a zero."""
    if isinstance(value, float) and (value == 0 or not np.isfinite(value)):  # with the sign of a zero
        return NAN if value != value else int(np.float32(value).view(np.uint32))
    value = mp.mpf(value)
    if value == 0:
        return 0
    exponent = max(int(mp.frexp(value)[1]) - 24, -149)
    with np.errstate(all="ignore"):
        return int(np.float32(float(mp.ldexp(mp.nint(mp.ldexp(value, -exponent)), exponent))).view(np.uint32))


def still(value: float) -> Row:
    """The row of a constant. A negative zero has four of them: with +0 it would become positive."""
    code = code_of(value)
    rest = code if code == MINUS_ZERO else 0
    return code, rest, rest, rest


def _nodes() -> tuple[float, ...]:
    """Where, in [0, 1], a cubic that is exact at 0 is to meet the function to deviate nearly least: Chebyshev's four
    places, stretched so that the first is 0, without that one. To 30 bits, the same on every machine."""
    with mp.workprec(80):
        four = [(1 - mp.cos((2 * j + 1) * mp.pi / 8)) / 2 for j in range(4)]
        return tuple(float(mp.nint(2**30 * (t - four[0]) / (1 - four[0]))) / 2**30 for t in four[1:])


_NODES = _nodes()


def _through(at: list[Any], values: list[Any]) -> list[Any]:
    """Coefficients of the polynomial through the values: Newton's divided differences, expanded."""
    d, n = list(values), len(at)
    for level in range(1, n):
        for i in range(n - 1, level - 1, -1):
            d[i] = (d[i] - d[i - 1]) / (at[i] - at[i - level])
    c = [d[-1]]
    for i in range(n - 2, -1, -1):
        lower = [d[i], *c]
        c = [a - at[i] * b for a, b in zip(lower, [*c, mp.mpf(0)], strict=True)]
    return c


def _bf16(x: F32) -> F32:
    with np.errstate(all="ignore"):
        return x.astype(ml_dtypes.bfloat16).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Points:
    """Where segments are judged. `want` is as long as there are BF16 mantissas, which come first."""

    mantissa: I64
    x: F64
    want: F32
    truth: F64
    floor: F64


class Segments:
    """A function on the numbers of one sign and exponent field. What the tables of functions of positive numbers
    call sign 1 are raised subnormal numbers."""

    def __init__(self, name: str, sign: int, field: int):
        self.name, self.field = name, field
        self.raised = bool(sign) and Function[name.upper()] in POSITIVE
        power = max(field, 1) - 127 - (RAISED if self.raised else 0)
        self.unit = -(2.0**power) if sign and not self.raised else 2.0**power
        self.cache: dict[float, Any] = {}
        self._points: dict[int, Points] = {}
        self._want: F32 | None = None
        self.limit = LIMITS[name][2 + sign]

    def x(self, fraction: Any) -> Any:
        """The number at a fraction of the binade."""
        return self.unit * ((self.field > 0) + fraction)

    def at(self, fraction: float) -> Any:
        """The function there; where 0 lies and it has no bound, more than any format shows."""
        if fraction not in self.cache:
            x = mp.mpf(self.unit) * ((self.field > 0) + mp.mpf(fraction))
            endless = not x and np.isinf(self.limit)
            self.cache[fraction] = TOP * TOP * np.sign(self.limit) if endless else FUNCTIONS[self.name](x)
        return self.cache[fraction]

    def row(self, bits: int, index: int, power: int, back: bool) -> Row:
        """The cubic of a segment in units of 2^power, exact at the segment's start, or at its end if t counts back."""
        start, wide = index / (1 << bits), 1 / (1 << bits)
        ends = self.at(start), self.at(start + wide)
        exact = ends[back]
        places = [1 - t if back else t for t in _NODES]
        values = [self.at(start + wide * t) for t in places]
        if all(abs(v) >= TOP for v in (*ends, *values)):
            return still(float("-inf") if values[0] < 0 else float("inf"))
        at = [mp.mpf(t) - back for t in places]
        c = [exact, *_through(at, [(v - exact) / t for v, t in zip(values, at, strict=True)])]
        largest = max(abs(v) for v in c)
        c = [v if abs(v) > largest * mp.mpf(2) ** -50 else mp.mpf(0) for v in c]
        c0, c1, c2, c3 = (code_of(mp.ldexp(v, -power)) for v in c)
        return c0, c1, c2, c3

    def points(self, bits: int) -> Points:
        """Where 2^bits segments are judged: first all BF16 mantissas, then EACH places in every segment."""
        if bits not in self._points:
            wide = 1 << (23 - bits)
            inside = (np.arange(EACH, dtype=np.int64) * wide // (EACH - 1)).clip(max=wide - 1)
            narrow = np.arange(128, dtype=np.int64) << 16
            dense = (np.arange(1 << bits, dtype=np.int64)[:, None] * wide + inside).ravel()
            mantissa = np.concatenate([narrow, dense])
            mantissa = mantissa[(mantissa != 0) | (self.field > 0)]
            x = np.asarray(self.x(mantissa / 2.0**23), np.float64)
            if self._want is None:
                self._want = self._wanted(x[: narrow.size - (self.field == 0)])
            self._points[bits] = Points(mantissa, x, self._want, nearly(self.name, x), least(self.name, x))
        return self._points[bits]

    def _wanted(self, x: F64) -> F32:
        """The BF16 results that are to come out; NaN where x is no BF16 number (raised ones are not, always), or where
        no FP32 result that is near the truth rounds to the right one."""
        right, best = decided(self.name, x, BF16), decided(self.name, x, FP32)
        with np.errstate(all="ignore"):
            possible = (_bf16(best.astype(np.float32)) == right) & (x * 2.0**133 % 1 == 0)
        return np.where(possible, right, np.nan).astype(np.float32)

    def last_eighth(self) -> int:
        """The eighth (2 to 7) of the binade from where on all results are the same FP32 number; 0 if there is none."""
        place = np.linspace(0, 1, 1025)[:-1]
        result = decided(self.name, np.asarray(self.x(place), np.float64), FP32)
        for eighth in range(2, 8):
            if (result[eighth * 128 :] == result[-1]).all():
                return eighth
        return 0

    def judge(self, rows: NDArray[np.uint32], bits: int, power: int, mode: int) -> tuple[F64, NDArray[np.bool_]]:
        """Of every point of `points`: FP32 places off the truth, and whether a BF16 result is wrong."""
        p = self.points(bits)
        mantissa = np.minimum(p.mantissa, mode << 20) if mode > BACK else p.mantissa
        rest = mantissa & ((1 << (23 - bits)) - 1)
        t = np.ldexp(rest.astype(np.float32), bits - 23) - np.float32(mode == BACK)
        got = cubic(rows.view(np.float32)[mantissa >> (23 - bits)], t, np.array(power, np.int64))
        wrong = np.zeros(got.size, bool)
        count = p.want.size
        wrong[:count] = ~np.isnan(p.want) & (_bf16(got[:count]) != p.want)
        return places_off(got.astype(np.float64), p.truth, p.floor), wrong

    def nudged(self, rows: NDArray[np.uint32], bits: int, power: int, mode: int) -> NDArray[np.uint32]:
        """The rows with c0 moved by as few last places as make all BF16 results right, where some do."""
        segment = self.points(bits).mantissa >> (23 - bits)
        found = rows.copy()
        bad = np.unique(segment[self.judge(rows, bits, power, mode)[1]])
        for step in range(1, NUDGES + 1):
            for move in (step, -step):
                if not bad.size:
                    return found
                tried = found.copy()
                tried[bad, 0] = rows[bad, 0] + np.uint32(move & 0xFFFFFFFF)
                still_bad = np.unique(segment[self.judge(tried, bits, power, mode)[1]])
                good = np.setdiff1d(bad, still_bad)
                found[good] = tried[good]
                bad = np.setdiff1d(bad, good)
        return found
