"""Golden model of the scalar engine's functions, on arrays of FP32 codes: NumPy float32, one rounding an operation."""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.activation_tables import ENTRIES, FunctionTable
from verif.golden.numeric import canonical

__all__ = ["direct", "pre", "through_table"]

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]


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


def through_table(x: U32, table: FunctionTable) -> U32:
    """((c3 t + c2) t + c1) t + c0, times the power of two of the entry; NaN gives NaN."""
    codes = np.ascontiguousarray(x, np.uint32).astype(np.int64)
    row0 = np.array([e.row for e in table.entries])
    bits = np.array([e.bits for e in table.entries])
    scale = np.array([e.scale for e in table.entries])
    rows = np.array(table.rows, dtype=np.uint32).view(np.float32)
    sign, field, mantissa = codes >> 31, codes >> 23 & 0xFF, codes & 0x7FFFFF
    zero = codes & 0x7FFFFFFF == 0
    entry = sign * (ENTRIES // 2) + np.where(zero, 255, field)
    rest_bits = 23 - bits[entry]
    special = zero | (field == 255)
    row = row0[entry] + np.where(special, zero, mantissa >> rest_bits)
    t = np.where(special, 0, mantissa & ((1 << rest_bits) - 1)).astype(np.float32)
    t = np.ldexp(t, -rest_bits).astype(np.float32)
    c = rows[row]
    with np.errstate(all="ignore"):
        y: F32 = c[:, 3]
        for i in (2, 1, 0):
            y = (y * t).astype(np.float32) + c[:, i]
        y = np.ldexp(y, scale[entry]).astype(np.float32)
        return canonical(np.where(np.isnan(x.view(np.float32)), np.float32(np.nan), y).astype(np.float32))
