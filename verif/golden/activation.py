"""Golden model of the scalar engine's functions, on arrays of FP32 codes: NumPy float32, one rounding an operation."""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.activation_tables import ENTRIES, FIRST_TABLE_FUNCTION, ROW_WORDS, FunctionTable
from verif.golden.numeric import canonical

__all__ = ["TableMemory", "direct", "pre", "through_table"]

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


def _evaluate(x: U32, row0: I64, bits: I64, scale: I64, rows: F32) -> U32:
    """Functions by directory (512 entries each as arrays) and rows [n, 4]; NaN gives NaN. Shape: any."""
    codes = np.ascontiguousarray(x, np.uint32).astype(np.int64)
    sign, field, mantissa = codes >> 31, codes >> 23 & 0xFF, codes & 0x7FFFFF
    zero = codes & 0x7FFFFFFF == 0
    entry = sign * (ENTRIES // 2) + np.where(zero, 255, field)
    rest_bits = 23 - bits[entry]
    special = zero | (field == 255)
    row = row0[entry] + np.where(special, zero, mantissa >> rest_bits)
    t = np.where(special, 0, mantissa & ((1 << rest_bits) - 1)).astype(np.float32)
    t = np.ldexp(t, -rest_bits).astype(np.float32)
    c = rows[row % len(rows)]
    with np.errstate(all="ignore"):
        y: F32 = c[..., 3]
        for i in (2, 1, 0):
            y = (y * t).astype(np.float32) + c[..., i]
        y = np.ldexp(y, scale[entry]).astype(np.float32)
        return canonical(np.where(np.isnan(x.view(np.float32)), np.float32(np.nan), y).astype(np.float32))


def through_table(x: U32, table: FunctionTable) -> U32:
    """((c3 t + c2) t + c1) t + c0, times the power of two of the entry; NaN gives NaN."""
    row0 = np.array([e.row for e in table.entries])
    bits = np.array([e.bits for e in table.entries])
    scale = np.array([e.scale for e in table.entries])
    return _evaluate(x, row0, bits, scale, np.array(table.rows, dtype=np.uint32).view(np.float32))


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
        scale = (words >> 20 & 1023) - (words >> 19 & 1024)
        return _evaluate(x, words & 0xFFFF, words >> 16 & 15, scale, self._rows.view(np.float32))
