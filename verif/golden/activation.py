"""Golden model of the scalar engine's functions, on arrays of FP32 codes: NumPy float32, one rounding an operation."""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.activation_tables import BACK, ENTRIES, FIRST_TABLE_FUNCTION, POSITIVE, ROW_WORDS, FunctionTable
from verif.golden.numeric import canonical

__all__ = ["TableMemory", "cubic", "direct", "pre", "through_table"]

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
FUNCTIONS = 16  # that need a table


def pre(x: U32, scale: U32, bias: U32) -> U32:
    """x * scale + bias, rounded twice; a bias of zero is not added, so that zeros keep their sign."""
    with np.errstate(all="ignore"):
        product = x.view(np.float32) * scale.view(np.float32)
        total = product + bias.view(np.float32)
        return canonical(np.where(bias.view(np.float32) == 0, product, total).astype(np.float32))


def direct(x: U32, name: str, slope: U32) -> U32:
    """The functions that need no table: copy, abs, square, relu, prelu, leaky_relu, sign."""
    with np.errstate(all="ignore"):
        value = x.view(np.float32)
        nan = np.isnan(value)
        match name:
            case "copy":
                out = value
            case "abs":
                out = np.abs(value)
            case "square":
                out = value * value
            case "relu":
                out = np.where(value > 0, value, np.float32(0))
            case "prelu" | "leaky_relu":
                out = np.where(value > 0, value, value * slope.view(np.float32))
            case "sign":
                out = np.where(value == 0, value, np.copysign(np.float32(1), value))
            case _:
                raise ValueError(f"there is no function {name!r} without a table")
        return canonical(np.where(nan, np.float32(np.nan), out).astype(np.float32))


def cubic(rows: F32, t: F32, scale: I64) -> F32:
    """((c3 t + c2) t + c1) t + c0, each operation rounded, times 2^scale; rows: [..., 4]."""
    with np.errstate(all="ignore"):
        y: F32 = rows[..., 3]
        for i in (2, 1, 0):
            y = (y * t).astype(np.float32) + rows[..., i]
        return np.ldexp(y, scale).astype(np.float32)


def _raised(codes: I64) -> tuple[I64, I64, I64]:
    """Sign, field and mantissa under which a function of positive numbers looks up x: of subnormal ones x * 2^24."""
    sign, field, mantissa = codes >> 31, codes >> 23 & 0xFF, codes & 0x7FFFFF
    small = (sign == 0) & (field == 0) & (mantissa != 0)
    length = np.frexp(mantissa.astype(np.float64))[1].astype(np.int64)  # 1 to 23
    moved = mantissa << (24 - length) & 0x7FFFFF
    return np.where(small, 1, sign), np.where(small, length + 1, field), np.where(small, moved, mantissa)


def _evaluate(x: U32, directory: I64, rows: F32, positive: bool) -> U32:
    """A function by the words of its directory and rows [n, 4]; NaN gives NaN. Shape: any."""
    codes = np.ascontiguousarray(x, np.uint32).astype(np.int64)
    sign, field, mantissa = codes >> 31, codes >> 23 & 0xFF, codes & 0x7FFFFF
    zero = codes & 0x7FFFFFFF == 0
    special = zero | (field == 255)
    nan = np.isnan(x.view(np.float32)) | (positive & (sign == 1) & ~zero)
    if positive:
        sign, field, mantissa = _raised(codes)
    entry = directory[sign * (ENTRIES // 2) + np.where(zero, 255, field)]
    row0, bits, mode = entry & 0xFFFF, entry >> 16 & 15, entry >> 29 & 7
    scale = (entry >> 20 & 511) - (entry >> 19 & 512)
    mantissa = np.where(mode > BACK, np.minimum(mantissa, mode << 20), mantissa)
    rest_bits = 23 - bits
    row = row0 + np.where(special, zero, mantissa >> rest_bits)
    t = np.where(special, 0, mantissa & ((1 << rest_bits) - 1)).astype(np.float32)
    t = np.ldexp(t, -rest_bits).astype(np.float32) - np.where(~special & (mode == BACK), np.float32(1), np.float32(0))
    y = cubic(rows[row % len(rows)], t, scale)
    return canonical(np.where(nan, np.float32(np.nan), y).astype(np.float32))


def through_table(x: U32, table: FunctionTable) -> U32:
    """A function by its table; NaN gives NaN."""
    words = np.array([e.word() for e in table.entries], np.int64)
    return _evaluate(x, words, np.array(table.rows, dtype=np.uint32).view(np.float32), table.positive)


class TableMemory:
    """The loadable table of the scalar engine: a directory of all functions and `rows` rows."""

    def __init__(self, rows: int):
        self._directory = np.zeros(FUNCTIONS * ENTRIES, np.uint32)
        self._rows = np.zeros((rows, ROW_WORDS), np.uint32)

    def load(self, image: U32) -> None:
        """Take the operand of LOAD_TABLE, [partitions, elements]: (address, word) pairs, first those of all partitions.

        Addresses as in rtl.contract.activation_tables.load_words; what is beyond a memory's end wraps around.
        """
        pairs = image.reshape(image.shape[0], -1, 2).swapaxes(0, 1).reshape(-1, 2).astype(np.int64)
        address, word = pairs[:, 0], pairs[:, 1].astype(np.uint32)
        entry = address >> 20 & 1 == 1
        self._directory[address[entry] % self._directory.size] = word[entry]
        self._rows.reshape(-1)[address[~entry] % self._rows.size] = word[~entry]

    def function(self, x: U32, code: int) -> U32:
        """The function with this code (of isa.Function, from 16) of FP32 codes, shape: any."""
        first = (code - FIRST_TABLE_FUNCTION) * ENTRIES
        words = self._directory[first : first + ENTRIES].astype(np.int64)
        return _evaluate(x, words, self._rows.view(np.float32), code in POSITIVE)
