"""Fits the tables of the activation functions and writes rtl/contract/activation_tables.txt.

    python -m verif.activations.fit [--out FILE]

The cubic of a segment meets the function where the segment begins and at three more places, so that it deviates nearly
least. k of a binade is the least that keeps results, computed as the hardware does, within ALLOWED last places of
FP32 of the truth, and makes every BF16 result the right one; for that c0 may move by some places. A binade takes the
rows of the one or two before it, times a power of two, where results are within SHARED places. Where a function becomes
constant inside a binade the rows end there; where it is 0 at the end of one, t counts back from there.
"""

import argparse
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from rtl.contract.activation_tables import BACK, INDEX_BITS_MAX, POSITIVE, RAISED, TABLE_FILE
from rtl.contract.isa import Function
from verif.activations.functions import LIMITS, TABLED
from verif.activations.segments import TOP, Row, Segments, still

__all__ = ["Binade", "binade_of", "fit", "text"]

mp: Any = mpmath.mp

Binade = tuple[int, int, int, tuple[Row, ...]]
"""Leading bits, mode, power of two, rows."""

PRECISION = 200
TIGHT = ("exp", "tanh", "sigmoid", "silu", "erf")
ALLOWED = {True: 5.0, False: 36.0}
"""Last places of FP32, for TIGHT functions and others."""
SHARED = 2.5
TINY = mp.mpf(2) ** -151
"""Numbers below have become 0, even in units of the smallest FP32."""


def _constant(value: float) -> Binade:
    return 0, 0, 0, (still(value),)


def _array(rows: list[Row] | tuple[Row, ...]) -> Any:
    return np.array(rows, np.uint32)


def _fields(name: str, sign: int) -> range:
    """Exponent fields of a sign that are looked up."""
    if Function[name.upper()] not in POSITIVE:
        return range(255)
    return range(2, RAISED + 1) if sign else range(1, 255)


def binade_of(name: str, sign: int, field: int, before: list[Binade]) -> Binade:
    """Of one sign and exponent field below 255; `before` are those of the fields before it."""
    if field not in _fields(name, sign):
        return _constant(float("nan"))
    one = Segments(name, sign, field)
    ends = [one.at(t) for t in (2**-23, 0.25, 0.5, 0.75, 1)]
    if all(abs(v) < TINY for v in ends):
        return _constant(-0.0 if all(v < 0 for v in ends) else 0.0)
    if all(abs(v) >= TOP for v in ends):
        return _constant(float("-inf") if ends[0] < 0 else float("inf"))
    power = int(mp.frexp(max(abs(v) for v in ends[1:4] if abs(v) < TOP))[1])
    for bits, mode, _, rows in reversed(before[-2:] if field > 1 else []):
        moved = _shared_power(one, rows, bits, mode)
        if moved is not None:
            return bits, mode, moved, rows
    eighth = one.last_eighth()
    allowed = ALLOWED[name in TIGHT]
    for bits in range(INDEX_BITS_MAX + 1):
        mode = BACK if one.at(1.0) == 0 else eighth if bits >= 3 else 0
        rows = _rows(one, bits, power, mode)
        off, wrong = one.judge(rows, bits, power, mode)
        if bits < INDEX_BITS_MAX and off.max() > allowed:
            continue
        if wrong.any():
            rows = one.nudged(rows, bits, power, mode)
            off, wrong = one.judge(rows, bits, power, mode)
            if bits < INDEX_BITS_MAX and (off.max() > allowed or wrong.any()):
                continue
        last = (mode << (bits - 3)) + 1 if mode > BACK else 1 << bits
        return bits, mode, power, tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in rows[:last])
    raise AssertionError("the last round never goes on")


def _rows(one: Segments, bits: int, power: int, mode: int) -> Any:
    """All rows of a binade; where it ends early, those behind its last row are like that."""
    count = 1 << bits
    end = mode << (bits - 3) if mode > BACK else count
    rows = [one.row(bits, index, power, mode == BACK) for index in range(end)]
    if end < count:
        value = one.at(1.0)
        last = 0.0 if abs(value) < TINY else float("inf") if abs(value) >= TOP else 1.0
        rows += [still(-last if value < 0 else last)] * (count - end)
    return _array(rows)


def _shared_power(one: Segments, rows: tuple[Row, ...], bits: int, mode: int) -> int | None:
    """The power of two with which rows of a binade before serve this one too; None if they do not."""
    if mode or any(row[0] & 0x7F800000 == 0x7F800000 for row in rows):
        return None
    middle = one.at(0.5 / (1 << bits))
    c = [mp.mpf(float(v)) for v in _array(rows[:1]).view(np.float32)[0]]
    told = ((c[3] / 2 + c[2]) / 2 + c[1]) / 2 + c[0]
    if not told or not middle / told > 0:
        return None
    power = int(mp.nint(mp.log(middle / told, 2)))
    if not -256 <= power < 256:
        return None
    off, wrong = one.judge(_array(rows), bits, power, mode)
    return power if off.max() <= SHARED and not wrong.any() else None


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
        found[sign, 255] = (0, 0, 0, tuple(still(limits[n]) for n in (sign, 2 + sign)))
    return found


def _lines(name: str, binades: dict[tuple[int, int], Binade]) -> Iterator[str]:
    yield f"function {name}"
    bases: dict[tuple[Row, ...], int] = {}
    rows: list[Row] = []
    entries: list[tuple[int, int, int, int]] = []
    for _, (bits, mode, power, found) in sorted(binades.items()):
        if found not in bases:
            bases[found] = len(rows)
            rows.extend(found)
        entries.append((bases[found], bits, mode, power))
    at = 0
    while at < len(entries):
        *same, power = entries[at]
        count, step = 1, 0
        if at + 1 < len(entries) and list(entries[at + 1][:3]) == same:
            step = entries[at + 1][3] - power
        while at + count < len(entries) and list(entries[at + count]) == [*same, power + step * count]:
            count += 1
        yield f"e {' '.join(map(str, same))} {power} {step} {count}"
        at += count
    for r in rows:
        yield "r " + " ".join(f"{c:x}" for c in r)


def text(tables: dict[str, dict[tuple[int, int], Binade]]) -> str:
    """The file that rtl/contract/activation_tables.py reads."""
    return "\n".join(line for name, binades in tables.items() for line in _lines(name, binades)) + "\n"


def _fit(name: str) -> tuple[str, dict[tuple[int, int], Binade]]:
    return name, fit(name)


def main() -> None:
    """Fit all functions and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TABLE_FILE)
    out = parser.parse_args().out
    done: dict[str, dict[tuple[int, int], Binade]] = {}
    with Pool() as pool:
        for name, binades in pool.imap_unordered(_fit, TABLED, chunksize=1):
            done[name] = binades
            rows = sum(line.startswith("r ") for line in _lines(name, binades))
            print(f"{len(done):2} of {len(TABLED)}: {name}, {rows:,} rows", flush=True)
    out.write_text(text({name: done[name] for name in TABLED}))


if __name__ == "__main__":
    main()
