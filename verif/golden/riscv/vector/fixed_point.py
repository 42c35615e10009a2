"""Fixed-point operations: results, and which of them were clipped. Source: RVV 1.0, sections 3.8 and 12."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verif.golden.riscv.vector.integer import Operation

__all__ = ["FIXED_POINT"]

Array = NDArray[Any]
Clipped = tuple[Array, "Array | None"]
NEAREST_UP, NEAREST_EVEN, DOWN, ODD = range(4)  # vxrm


def _rounded(value: Array, shift: "Array | np.int64", mode: int) -> Array:
    """`value` / 2^`shift`, of numbers of 64 bits."""
    half = np.int64(1) << np.maximum(shift - 1, 0)
    kept, rest = value >> shift, value & (np.int64(1) << shift) - 1
    if mode == NEAREST_UP:
        up = (rest & half) != 0
    elif mode == NEAREST_EVEN:
        up = (rest > half) | ((rest == half) & (kept & 1 == 1))
    elif mode == DOWN:
        return kept
    else:
        up = (rest != 0) & (kept & 1 == 0)
    return kept + (up & (shift > 0))


def _clip(value: Array, signed: bool, bits: int) -> Clipped:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    found = np.clip(value, low, high)
    return found, found != value


def _saturating(ufunc: np.ufunc, signed: bool) -> Callable[[Array, Array, int], Clipped]:
    return lambda a, b, mode: _clip(ufunc(a, b, dtype=np.int64), signed, 8 * a.dtype.itemsize)


def _averaging(ufunc: np.ufunc) -> Callable[[Array, Array, int], Clipped]:
    return lambda a, b, mode: (_rounded(ufunc(a, b, dtype=np.int64), np.int64(1), mode), None)


def _amount(b: Array, bits: int) -> Array:
    return (b & b.dtype.type(bits - 1)).astype(np.int64)


def _scaling(a: Array, b: Array, mode: int) -> Clipped:
    return _rounded(a.astype(np.int64), _amount(b, 8 * a.dtype.itemsize), mode), None


def _product(a: Array, b: Array, mode: int) -> Clipped:
    """Of two fractions: only -1 times -1 is clipped."""
    bits = 8 * a.dtype.itemsize
    return _clip(_rounded(np.multiply(a, b, dtype=np.int64), np.int64(bits - 1), mode), True, bits)


def _narrow(signed: bool) -> Callable[[Array, Array, int], Clipped]:
    def compute(a: Array, b: Array, mode: int) -> Clipped:
        bits = 8 * a.dtype.itemsize
        return _clip(_rounded(a.astype(np.int64), _amount(b, bits), mode), signed, bits // 2)

    return compute


FIXED_POINT: dict[str, Operation] = {
    "vsaddu": Operation(_saturating(np.add, False)),
    "vsadd": Operation(_saturating(np.add, True), "ii"),
    "vssubu": Operation(_saturating(np.subtract, False)),
    "vssub": Operation(_saturating(np.subtract, True), "ii"),
    "vaaddu": Operation(_averaging(np.add)),
    "vaadd": Operation(_averaging(np.add), "ii"),
    "vasubu": Operation(_averaging(np.subtract)),
    "vasub": Operation(_averaging(np.subtract), "ii"),
    "vsmul": Operation(_product, "ii"),
    "vssrl": Operation(_scaling, amount=True),
    "vssra": Operation(_scaling, "iu", amount=True),
    "vnclipu": Operation(_narrow(False), vs2=2, amount=True),
    "vnclip": Operation(_narrow(True), "iu", vs2=2, amount=True),
}
"""`compute(a, b, vxrm)` gives the result and, of operations that clip, where it did."""
