"""Fits the tables of the activation functions and writes rtl/contract/activation_tables.txt.

    python -m verif.activations.fit [--out FILE]

A segment is the numbers of one sign, one exponent and the same k leading mantissa bits. Its cubic goes through the
function at 0, 1/4, 3/4 and 1 of the segment, so that neighbours join, and a BF16 number is met exactly, but for
rounding, where k is 7 or more. k of a binade is the least that keeps the error of the cubic below TOLERANCE and of
every BF16 number within one place. A binade takes the rows of the one or two before it, times a power of two, where
that is as near as SHARED.
"""

import argparse
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from rtl.contract.activation_tables import INDEX_BITS_MAX, TABLE_FILE
from verif.activations.functions import FUNCTIONS, LIMITS, TABLED

__all__ = ["Binade", "binade_of", "fit", "text"]

mp: Any = mpmath.mp

Row = tuple[int, int, int, int]
Binade = tuple[int, int, tuple[Row, ...]]
"""Leading bits, power of two, rows."""

PRECISION = 80
TOLERANCE = mp.mpf(2) ** -19
SHARED = mp.mpf(2) ** -22
TOP = mp.mpf(2) ** 128
MINUS_ZERO = 1 << 31
TINY = mp.mpf(2) ** -151
"""Numbers below have become 0, even in units of the smallest FP32."""
SUBNORMAL_BITS = 3
"""Of the binade of subnormal inputs: outside of every documented range where this is not near enough."""
BETWEEN = (0.109375, 0.5, 0.890625)


def _code(value: Any) -> int:
    """FP32 code of a real number, or of a float that is infinite or NaN."""
    if isinstance(value, float) and (value == 0 or not np.isfinite(value)):  # with the sign of a zero
        return 0x7FC00000 if value != value else int(np.float32(value).view(np.uint32))
    with np.errstate(all="ignore"):
        return int(np.float32(_nearest(mp.mpf(value))).view(np.uint32))


def _nearest(value: Any) -> float:
    """The FP32 number nearest to a real one, as a float: one rounding, to 24 bits; subnormals to 2^-149."""
    if value == 0:
        return 0.0
    exponent = max(int(mp.frexp(value)[1]) - 24, -149)
    return float(mp.ldexp(mp.nint(mp.ldexp(value, -exponent)), exponent))


def _still(value: float) -> Row:
    """The row of a constant. A negative zero has four of them: with +0 it would become positive."""
    code = _code(value)
    rest = code if code == MINUS_ZERO else 0
    return code, rest, rest, rest


def _constant(value: float) -> Binade:
    return 0, 0, (_still(value),)


def _cubic(at: list[Any]) -> list[Any]:
    """Coefficients of the cubic through the values at 0, 1/4, 3/4, 1: Newton's divided differences, expanded."""
    y0, y1, y2, y3 = at
    d1, d12, d23 = 4 * (y1 - y0), 2 * (y2 - y1), 4 * (y3 - y2)
    d2 = (d12 - d1) * 4 / 3
    d3 = (d23 - d12) * 4 / 3 - d2
    return [y0, d1 - d2 / 4 + d3 * 3 / 16, d2 - d3, d3]


def _real(code: int) -> Any:
    return mp.mpf(float(np.uint32(code).view(np.float32)))


def _value(row: Row, t: Any, power: int) -> Any:
    """What a row gives at t, without the roundings on the way."""
    c0, c1, c2, c3 = (_real(c) for c in row)
    return mp.ldexp(((c3 * t + c2) * t + c1) * t + c0, power)


class _Function:
    """A function on one binade."""

    def __init__(self, name: str, sign: int, field: int):
        self.name, self.field = name, field
        self.f = FUNCTIONS[name]
        self.scale = (-1) ** sign * mp.ldexp(1, max(field, 1) - 127)
        self.cache: dict[float, Any] = {}

    def at(self, t: float) -> Any:
        """At the fraction t of the binade. t is a multiple of a power of two."""
        if t not in self.cache:
            x = self.scale * ((self.field > 0) + mp.mpf(t))
            # Zero has a row of its own; the cubic beside it begins at the smallest numbers.
            self.cache[t] = self.f(x or mp.ldexp(self.scale, -40))
        return self.cache[t]

    def segment(self, bits: int, index: int, t: float) -> Any:
        """At the fraction t of a segment."""
        return self.at((index + t) / (1 << bits))

    def near(self, row: Row, power: int, bits: int, index: int, tolerance: Any) -> bool:
        """Whether a row is as near as `tolerance` inside the segment, and BF16 numbers within one place."""
        ends = [self.segment(bits, index, t) for t in (0, 1)]
        largest = max(abs(y) for y in ends)
        for t in (*BETWEEN, *((0, 0.25, 0.75, 1) if tolerance == SHARED else ())):
            y = self.segment(bits, index, t)
            if abs(y) >= TOP:
                continue
            allowed = max(tolerance * max(abs(y), largest / 256), mp.ldexp(1, -151))
            if not abs(_value(row, mp.mpf(t), power) - y) <= allowed:
                return False
        return self._near_bf16(row, power, bits, index)

    def _near_bf16(self, row: Row, power: int, bits: int, index: int) -> bool:
        """Relative to a BF16 number's own size, where the function crosses zero too."""
        if bits >= 7:
            return True
        count = 1 << (7 - bits)
        for i in range(0, count, max(1, count // 8)):
            y = self.segment(bits, index, i / count)
            place = mp.ldexp(1, max(int(mp.frexp(y)[1]) - 8, -133)) if y else mp.ldexp(1, -133)
            if abs(y) < TOP and not abs(_value(row, mp.mpf(i) / count, power) - y) <= place / 256:
                return False
        return True


def _row(function: _Function, bits: int, index: int, power: int) -> Row | None:
    """The row of a segment in units of 2^power; None if the function has no value there."""
    values = [function.segment(bits, index, t) for t in (0, 0.25, 0.75, 1)]
    if any(mp.isnan(v) for v in values):
        return None
    if abs(values[0]) >= TOP or mp.isinf(values[0]):
        return (_code(float("-inf") if values[0] < 0 else float("inf")), 0, 0, 0)
    if any(mp.isinf(v) for v in values):
        return None
    c0, c1, c2, c3 = (_code(mp.ldexp(c, -power)) for c in _cubic(values))
    return (c0, c1, c2, c3)


def binade_of(name: str, sign: int, field: int, before: list[Binade]) -> Binade:
    """Of one sign and exponent field below 255; `before` are those of the fields before it."""
    function = _Function(name, sign, field)
    middle = [function.at(t) for t in (0.25, 0.5, 0.75)]
    if any(mp.isnan(v) for v in middle):
        return _constant(float("nan"))
    if all(abs(v) < TINY for v in middle):
        return _constant(-0.0 if all(v < 0 for v in middle) else 0.0)
    if all(abs(v) >= TOP or mp.isinf(v) for v in middle):
        return _constant(float("-inf") if middle[0] < 0 else float("inf"))
    power = int(mp.frexp(max(abs(v) for v in middle if not mp.isinf(v)))[1])
    for bits, _, rows in reversed(before[-2:] if field > 1 else []):
        moved = _shared_power(function, rows, bits)
        if moved is not None:
            return bits, moved, rows
    most = SUBNORMAL_BITS if field == 0 else INDEX_BITS_MAX
    for bits in range(most + 1):
        found: list[Row] = []
        for index in range(1 << bits):
            row = _row(function, bits, index, power)
            if row is None:
                if bits < most:
                    break
                row = (_code(float("nan")), 0, 0, 0)
            elif bits < most and row[0] & 0x7FFFFFFF < 0x7F800000:
                if not function.near(row, power, bits, index, TOLERANCE):
                    break
            found.append(row)
        else:
            return bits, power, tuple(found)
    raise AssertionError("the last round never breaks")


def _shared_power(function: _Function, rows: tuple[Row, ...], bits: int) -> int | None:
    """The power of two with which rows of a binade before serve this one too; None if they do not."""
    if any(row[0] & 0x7F800000 == 0x7F800000 for row in rows):
        return None
    y, told = function.segment(bits, 0, 0.5), _value(rows[0], mp.mpf(0.5), 0)
    if not told or mp.isinf(y) or not y / told > 0:
        return None
    power = int(mp.nint(mp.log(y / told, 2)))
    fits = all(function.near(row, power, bits, index, SHARED) for index, row in enumerate(rows))
    return power if fits else None


def fit(name: str, fields: range = range(255)) -> dict[tuple[int, int], Binade]:
    """(sign, exponent field) to binade; field 255 holds the rows of infinity and of zero."""
    mp.prec = PRECISION
    found: dict[tuple[int, int], Binade] = {}
    limits = LIMITS[name]
    for sign in (0, 1):
        before: list[Binade] = []
        for field in fields:
            before.append(binade_of(name, sign, field, before))
            found[sign, field] = before[-1]
        rows = tuple(_still(limits[n]) for n in (sign, 2 + sign))
        found[sign, 255] = (0, 0, rows)
    return found


def _lines(name: str, binades: dict[tuple[int, int], Binade]) -> Iterator[str]:
    yield f"function {name}"
    bases: dict[tuple[Row, ...], int] = {}
    rows: list[Row] = []
    entries: list[tuple[int, int, int]] = []
    for _, (bits, power, found) in sorted(binades.items()):
        if found not in bases:
            bases[found] = len(rows)
            rows.extend(found)
        entries.append((bases[found], bits, power))
    at = 0
    while at < len(entries):
        row, bits, power = entries[at]
        count, step = 1, 0
        if at + 1 < len(entries) and entries[at + 1][:2] == (row, bits):
            step = entries[at + 1][2] - power
        while at + count < len(entries) and entries[at + count] == (row, bits, power + step * count):
            count += 1
        yield f"e {row} {bits} {power} {step} {count}"
        at += count
    for r in rows:
        yield "r " + " ".join(f"{c:x}" for c in r)


def text(tables: dict[str, dict[tuple[int, int], Binade]]) -> str:
    """The file that rtl/contract/activation_tables.py reads."""
    return "\n".join(line for name, binades in tables.items() for line in _lines(name, binades)) + "\n"


def main() -> None:
    """Fit all functions and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TABLE_FILE)
    out = parser.parse_args().out
    with Pool() as pool:
        fitted = pool.map(fit, TABLED, chunksize=1)
    out.write_text(text(dict(zip(TABLED, fitted, strict=True))))


if __name__ == "__main__":
    main()
