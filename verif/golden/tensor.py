"""Golden model of the systolic array: what its weights are and what each column chain gives.

No time in here. All waves (moving, stationary, swap) cross the array at the same speed, so the order
in which beats enter is the order in which every PE sees them, and the array behaves as if each beat
acted on all PEs at once.
"""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.kinds import DOTS, Kind
from verif.golden.numeric import F32, U32, canonical
from verif.golden.tensor_cells import CELL, Cells, dot_chain, number_cells, sparse_chain

__all__ = ["TensorState", "chain"]

MASK = NDArray[np.bool_]


def chain(weights: F32, moving: F32, active: MASK | None = None) -> U32:
    """Column sums: weights [K, M], moving [K, N] to codes [M, N].

    Each sum starts from +0 and takes the rows in ascending order, one fused multiply-add with one
    rounding to FP32 a row. `active` [K] or [K, N]: rows outside leave the sum as it is.
    """
    rows, columns = weights.shape
    count = moving.shape[1]
    mask = np.ones((rows, 1), dtype=np.bool_) if active is None else np.asarray(active, dtype=np.bool_)
    mask = mask.reshape(rows, -1)
    with np.errstate(invalid="ignore"):  # NaNs are cast too
        w = weights.astype(np.float64)
        x = moving.astype(np.float64)
    acc = np.zeros((columns, count), dtype=np.float32)
    exact = np.empty((columns, count), dtype=np.float64)
    with np.errstate(all="ignore"):
        for row in range(rows):
            if not mask[row].any():
                continue
            np.multiply.outer(w[row], x[row], out=exact)
            exact += acc
            if mask[row].all():
                acc[...] = exact
            else:
                np.copyto(acc, exact.astype(np.float32), where=mask[row][None, :])
    return canonical(acc)


def _cells(values: F32 | Cells) -> Cells:
    return values if values.dtype == CELL else number_cells(values)  # type: ignore[return-value, arg-type]


def _chain(weights: Cells, moving: F32 | Cells, active: MASK, kind: Kind, first: int = 0) -> U32:
    """What the kind of the moving beats says: `chain`, dot_chain or sparse_chain. `first`: row of the first weights."""
    cells = _cells(moving)
    mask = np.broadcast_to(np.asarray(active, dtype=np.bool_).reshape(len(weights), -1), cells.shape)
    if kind in DOTS:
        return dot_chain(weights, cells, mask, kind)
    if kind == Kind.SPARSE:
        return sparse_chain(weights, cells, mask, first)
    return chain(weights["value"], cells["value"], active)


class TensorState:
    """Shadow and working weights of an array of `rows` x `cols` PEs; all +0 at first.

    The rows are `groups` row groups. An instruction works on a row tile: one of `tiles` equal parts of the rows,
    each a whole number of groups, the one in which its operand's partitions lie.
    """

    def __init__(self, rows: int, cols: int, groups: int = 1):
        self.rows = rows
        self.cols = cols
        self.groups = groups
        self.shadow: Cells = np.zeros((rows, cols), CELL)
        self.working: Cells = np.zeros((rows, cols), CELL)
        self._loaded: MASK = np.zeros(groups, dtype=np.bool_)  # since the swap of the group

    def _span(self, start: int, count: int, tiles: int) -> tuple[slice, slice]:
        """Rows of an operand, and the groups of the tile that has them."""
        size = self.rows // tiles
        if tiles > self.groups or start < 0 or start // size != (start + count - 1) // size:
            raise ValueError(
                f"rows {start} to {start + count - 1} are not in one of {tiles} tiles of an array of {self.rows} rows"
            )
        each = self.groups // tiles
        first = start // size * each
        return slice(start, start + count), slice(first, first + each)

    def push(self, column: F32 | Cells, active: MASK) -> None:
        """One stationary beat: active rows of the shadow plane move one PE east, `column` [rows] enters."""
        self.shadow[active, 1:] = self.shadow[active, :-1]
        self.shadow[active, 0] = _cells(column)[active]
        self._loaded[:] = True

    def shift(self, groups: MASK, heads: MASK) -> list[U32]:
        """The shadow weights of `groups` move one row south; the raw bits that leave each group's last row, [cols].

        Above a group's first row is the last row of the group above, if that shifts too and the group has no head.
        """
        size = self.rows // self.groups
        out: list[U32] = []
        for group in reversed(range(self.groups)):
            first, last = group * size, (group + 1) * size - 1
            leaving = self.shadow[last]
            out.append(np.where(leaving["raw"], leaving["bits"], 0).astype(np.uint32))
            if not groups[group]:
                continue
            self.shadow[first + 1 : last + 1] = self.shadow[first:last].copy()
            from_above = group > 0 and groups[group - 1] and not heads[group]
            self.shadow[first] = self.shadow[first - 1] if from_above else np.zeros(self.cols, CELL)
            self._loaded[group] = True
        return out[::-1]

    def load(self, columns: F32 | Cells, partition_start: int, tiles: int = 1) -> None:
        """LOAD_STATIONARY of [K, M] into rows from `partition_start`: the columns enter last one first."""
        count, width = columns.shape
        if not 1 <= width <= self.cols:
            raise ValueError(f"a load has 1 to {self.cols} columns, not {width}")
        rows, groups = self._span(partition_start, count, tiles)
        self.shadow[rows, width:] = self.shadow[rows, : self.cols - width].copy()
        self.shadow[rows, :width] = _cells(columns)
        self._loaded[groups] = True

    def swap(self, rows: MASK | slice = slice(None)) -> None:
        """The shadow weights of `rows` become their working weights; the shadow keeps them too."""
        self.working[rows] = self.shadow[rows]

    def multiply(self, moving: F32 | Cells, active: MASK, kind: Kind = Kind.ONE) -> U32:
        """Sums of moving beats [rows, N] with the working weights, [cols, N]; see `chain` for `active`."""
        return _chain(self.working, moving, active, kind)

    def matmul(self, moving: F32 | Cells, partition_start: int, tiles: int = 1, kind: Kind = Kind.ONE) -> U32:
        """MULTIPLY_MOVING of [K, N] on rows from `partition_start`, [cols, N].

        First the row groups of its tile that a load reached since their last swap take their shadow weights.
        """
        rows, groups = self._span(partition_start, moving.shape[0], tiles)
        swapping = np.zeros(self.groups, dtype=np.bool_)
        swapping[groups] = self._loaded[groups]
        self.swap(np.repeat(swapping, self.rows // self.groups))
        self._loaded[groups] = False
        return _chain(self.working[rows], moving, np.ones(moving.shape, dtype=np.bool_), kind, partition_start)
