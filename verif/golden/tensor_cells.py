"""Golden model of what a processing element holds and multiplies, in every kind of beat."""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import by_code
from rtl.contract.kinds import DOTS, Kind
from rtl.contract.sparsity import Sparsity
from verif.golden.mx import mx_dot
from verif.golden.numeric import F32, U32, canonical, decode, fp32_halves

__all__ = ["CELL", "Cells", "cells_of", "dot_chain", "number_cells", "sparse_cells", "sparse_chain", "sparse_rows"]

CELL = np.dtype(
    [
        ("value", np.float32),  # as a number
        ("elements", np.uint8, (4,)),  # as part of a dot product
        ("dtype", np.uint8),  # code of their format; 0: blank, zeros of any
        ("scale", np.uint8),
        ("bits", np.uint32),  # as something to be transposed
        ("raw", np.bool_),
        ("numbers", np.float32, (4,)),  # as a row of a sparse moving beat
        ("source", np.uint8),  # as a sparse weight: which of the aligned four rows has the number that it meets
        ("place", np.uint8),  # and which of its numbers that is
    ]
)
"""A weight or one row of a moving beat. All zero: +0 in every kind."""

Cells = NDArray[np.void]
MASK = NDArray[np.bool_]


def number_cells(values: F32) -> Cells:
    """Cells of numbers, any shape."""
    cells = np.zeros(np.shape(values), CELL)
    cells["value"] = values
    return cells


def cells_of(codes: U32, scales: NDArray[np.uint8], kind: Kind, dtype: str) -> Cells:
    """Cells of what stands in the rows of a beat: codes u32, scales u8, one shape."""
    cells = np.zeros(codes.shape, CELL)
    if kind in DOTS:
        count = 2 if kind == Kind.PAIR else 4
        for k in range(count):
            cells["elements"][..., k] = codes >> np.uint32(8 * k)
        cells["dtype"] = _code(dtype)
        cells["scale"] = 127 if kind == Kind.PAIR else scales
    elif kind == Kind.RAW:
        cells["bits"] = codes
        cells["raw"] = True
    elif kind in (Kind.HIGH, Kind.LOW):
        cells["value"] = fp32_halves(codes)[0 if kind == Kind.HIGH else 1]
    else:
        cells["value"] = decode(codes, dtype)
    return cells


def sparse_cells(values: F32, tags: NDArray[np.uint8], pattern: Sparsity, first: int = 0) -> Cells:
    """Cells of sparse weights [K] or [K, M] that stand in the rows from `first` on; tags in the same shape.

    Row r's bus begins at row kept * floor(r / kept), and its number `tag` is the (tag mod ratio)-th of the row that
    lies floor(tag / ratio) below; beyond the aligned four rows it is counted from their top again.
    """
    cells = number_cells(values)
    rows = (first + np.arange(len(cells))).reshape(-1, *[1] * (cells.ndim - 1))
    below = tags.astype(np.int64) // pattern.ratio
    cells["source"] = (rows - rows % pattern.kept + below) % 4
    cells["place"] = tags % pattern.ratio
    return cells


def sparse_rows(numbers: F32) -> Cells:
    """Cells of the rows of sparse moving beats: numbers [..., ratio], ratio 2 to 4."""
    cells = np.zeros(numbers.shape[:-1], CELL)
    cells["numbers"][..., : numbers.shape[-1]] = numbers
    return cells


def sparse_chain(weights: Cells, moving: Cells, active: MASK, first: int = 0) -> U32:
    """Column sums of sparse beats: weights [K, M], moving [K, N] of the rows from `first` on, to codes [M, N].

    As `chain`, and each weight meets one of the sixteen numbers of its aligned four rows; rows that are not there
    have zeros. `active` [K, N]: rows outside leave the sum as it is, but still have numbers for the others.
    """
    rows, columns = weights.shape
    count = moving.shape[1]
    numbers = np.zeros((rows + 8, count, 4), np.float64)
    with np.errstate(invalid="ignore"):  # NaNs are cast too
        numbers[4 : rows + 4] = moving["numbers"]
        w = weights["value"].astype(np.float64)
    acc = np.zeros((columns, count), np.float32)
    for row in range(rows):
        top = row - (first + row) % 4
        x = numbers[4 + top + weights["source"][row].astype(np.int64), :, weights["place"][row]]
        with np.errstate(all="ignore"):
            exact = (w[row][:, None] * x + acc).astype(np.float32)
        np.copyto(acc, exact, where=active[row][None, :])
    return canonical(acc)


def _code(dtype: str) -> int:
    return next(code for code in range(16) if by_code(code).name == dtype)


def _formats(left: int, right: int) -> tuple[str, str]:
    """Names of two dtype codes; a blank has the format of the other side, for zero is zero in all."""
    names = [by_code(left or right or 4).name, by_code(right or left or 4).name]
    return names[0], names[1]


def dot_chain(weights: Cells, moving: Cells, active: MASK, kind: Kind) -> U32:
    """Column sums of dot products: weights [K, M], moving [K, N] to codes [M, N].

    Each sum starts from +0 and takes the rows in ascending order: the exact dot product rounded to FP32, then an
    FP32 addition. `active` [K, N]: rows outside leave the sum as it is.
    """
    rows, columns = weights.shape
    count = moving.shape[1]
    scale_format = "e4m3fn" if kind == Kind.QUAD_E4M3 else "e8m0"
    acc = np.zeros((columns, count), dtype=np.uint32)
    for row in range(rows):
        w, x = weights[row], moving[row]
        for left in np.unique(x["dtype"]).tolist():
            for right in np.unique(w["dtype"]).tolist():
                n = np.flatnonzero((x["dtype"] == left) & active[row])
                m = np.flatnonzero(w["dtype"] == right)
                if not len(n) or not len(m):
                    continue
                names = _formats(left, right)
                grid = np.ix_(m, n)
                sums = mx_dot(
                    np.tile(x["elements"][n], (len(m), 1)),
                    np.repeat(w["elements"][m], len(n), axis=0),
                    np.tile(x["scale"][n], len(m)),
                    np.repeat(w["scale"][m], len(n)),
                    acc[grid].ravel(),
                    *names,
                    scale_format,
                )
                acc[grid] = sums.reshape(len(m), len(n))
    return acc
