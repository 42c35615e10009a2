"""Tables of the activation functions: what they mean, their words, their file.

A number is looked up by function, sign and exponent field in the *directory*: an entry names the first row of
its binade, how many leading mantissa bits choose among the rows (k, 0 to 9), a power of two for the result, and a
mode. A *row* is a cubic in t, the rest of the mantissa as a fraction in [0, 1): FP32 codes c0 to c3. Mode BACK: t is
measured back from the end of the segment, in [-1, 0), so that a zero there is met exactly. Modes 2 to 7: numbers
beyond mode/8 of the binade count as that number, so that rows end where the function has become 0 or infinite.
The entry of exponent field 255 has two rows: for infinity, and for zero, which is asked before the entry of field 0.
Binades whose cubics differ by a power of two only share rows. Source of the idea: semantics of the scalar
engine of Trainium, piecewise cubics in loadable sets (NKI documentation, activation).

Functions with a POSITIVE domain (log, sqrt, rsqrt) give NaN below zero without a look-up. The entries of sign 1 serve
their subnormal numbers: x * 2^RAISED, which is normal, is looked up there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rtl.contract.isa import Function

__all__ = [
    "BACK",
    "ENTRIES",
    "FIRST_TABLE_FUNCTION",
    "INDEX_BITS_MAX",
    "MODE_BITS",
    "POSITIVE",
    "RAISED",
    "ROW_BITS",
    "ROW_WORDS",
    "SCALE_BITS",
    "TABLE_FILE",
    "Entry",
    "FunctionTable",
    "image",
    "load_words",
    "table",
]

TABLE_FILE = Path(__file__).with_suffix(".txt")
FIRST_TABLE_FUNCTION = 16
"""isa.Function from here on needs a table."""
ENTRIES = 512
"""Of a function: 2 signs, 256 exponent fields."""
ROW_WORDS = 4
ROW_BITS = 16
"""Bits of a row number; a configuration says how many rows there are (scalar.table_rows)."""
INDEX_BITS_MAX = 9
SCALE_BITS = 9
MODE_BITS = 3
BACK = 1
"""The mode in which t is measured from the end of the segment; 0 is none, others are eighths of the binade."""
POSITIVE = (Function.LOG, Function.SQRT, Function.RSQRT)
"""They have values for positive numbers only."""
RAISED = 24
"""Binades by which a subnormal number is raised to be looked up in the tables of POSITIVE."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One binade: its first row, leading mantissa bits that choose among 2^bits rows, power of two of the result,
    and mode: 0, BACK, or the eighth of the binade beyond which all numbers count as one."""

    row: int
    bits: int
    scale: int
    mode: int = 0

    def word(self, base: int = 0) -> int:
        """Bits 15:0 row (from `base`), 19:16 bits, 28:20 scale in two's complement, 31:29 mode."""
        return (self.row + base) | self.bits << 16 | (self.scale & ((1 << SCALE_BITS) - 1)) << 20 | self.mode << 29


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """`entries[sign * 256 + exponent field]`, and rows of four FP32 codes, numbered from 0."""

    entries: tuple[Entry, ...]
    rows: tuple[tuple[int, int, int, int], ...]
    positive: bool = False  # one of POSITIVE


@cache
def _tables() -> dict[str, FunctionTable]:
    found: dict[str, FunctionTable] = {}
    name = ""
    entries: list[Entry] = []
    rows: list[tuple[int, int, int, int]] = []

    def close() -> None:
        if name:
            if len(entries) != ENTRIES:
                raise ValueError(f"{TABLE_FILE.name}: {name} has {len(entries)} entries; it must have {ENTRIES}")
            positive = Function[name.upper()] in POSITIVE
            found[name] = FunctionTable(tuple(entries), tuple(rows), positive)

    for line in TABLE_FILE.read_text().splitlines():
        kind, *words = line.split()
        if kind == "function":
            close()
            name, entries, rows = words[0], [], []
        elif kind == "e":  # entries alike but for the scale, which moves by a step
            row, bits, mode, scale, step, count = map(int, words)
            entries += [Entry(row, bits, scale + step * i, mode) for i in range(count)]
        elif kind == "r":
            c0, c1, c2, c3 = (int(w, 16) for w in words)
            rows.append((c0, c1, c2, c3))
    close()
    return found


def table(name: str) -> FunctionTable:
    """The table of a function of isa.Function, by its name in lower case. KeyError if it needs none."""
    return _tables()[name]


def load_words(names: Sequence[str], rows: int) -> list[tuple[int, int]]:
    """(address, word) of everything that tells the hardware these functions; rows: how many it has.

    Addresses: 4 * row + coefficient; from 2^20 on 2^20 + (function code - 16) * 512 + entry.
    Errors: ValueError if a function has no table or the rows do not suffice.
    """
    words: list[tuple[int, int]] = []
    base = 0
    for name in names:
        if name not in _tables():
            raise ValueError(f"there is no table of {name!r}; there are {', '.join(_tables())}")
        one = table(name)
        code = Function[name.upper()] - FIRST_TABLE_FUNCTION
        words += [(4 * (base + r) + c, word) for r, row in enumerate(one.rows) for c, word in enumerate(row)]
        words += [((1 << 20) + code * ENTRIES + i, e.word(base)) for i, e in enumerate(one.entries)]
        base += len(one.rows)
    if base > rows:
        raise ValueError(f"the tables of {', '.join(names)} have {base} rows, more than scalar.table_rows ({rows})")
    return words


def image(names: Sequence[str], rows: int, partitions: int) -> list[list[int]]:
    """The operand of LOAD_TABLE: for each partition a list of addresses and words in turn, all equally long.

    Every word comes with its address (load_words), so any order will do; pair i lies on partition i mod partitions,
    and the last pair fills the rest. Errors: ValueError as load_words, or if there are no names.
    """
    pairs = load_words(names, rows)
    if not pairs:
        raise ValueError("a table needs at least one function")
    pairs += pairs[-1:] * (-len(pairs) % partitions)
    return [[number for pair in pairs[p::partitions] for number in pair] for p in range(partitions)]
