"""Strided views of tensors in HBM whose boxes are rows and columns of the tensor, whatever their axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from firmware.program import HbmTensor
from firmware.views import Box, HbmView

__all__ = ["Array", "row_strides"]


def row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of an array whose rows are contiguous, in elements."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


@dataclass(frozen=True, slots=True)
class Array:
    """Elements of `tensor` from `offset` on; strides in elements, 0 where an axis repeats."""

    tensor: HbmTensor
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def dtype(self) -> str:
        """Number format of an element."""
        return self.tensor.dtype

    @property
    def elements(self) -> int:
        """How many there are, repeated ones as often as they are."""
        return prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one behind the other."""
        expected = row_strides(self.shape)
        return all(n == 1 or a == b for n, a, b in zip(self.shape, self.strides, expected, strict=True))

    def reshape(self, shape: Sequence[int]) -> "Array":
        """The same elements under another shape; contiguous ones only."""
        assert self.contiguous and prod(shape) == self.elements
        return Array(self.tensor, self.offset, tuple(shape), row_strides(shape))

    def permute(self, axes: Sequence[int]) -> "Array":
        """Axes in another order."""
        return self.strided(0, [self.shape[a] for a in axes], [self.strides[a] for a in axes])

    def expand(self, shape: Sequence[int]) -> "Array":
        """Broadcast as NumPy does."""
        new = len(shape) - len(self.shape)
        strides = [0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)]
        return self.strided(0, shape, [0] * new + strides)

    def strided(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> "Array":
        """Any other elements, from `offset` behind the first one."""
        return Array(self.tensor, self.offset + offset, tuple(shape), tuple(strides))

    def part(self, axis: int, start: int, size: int) -> "Array":
        """`size` elements of an axis."""
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        return self.strided(start * self.strides[axis], shape, self.strides)

    def at(self, axis: int, index: int) -> "Array":
        """Without an axis."""
        shape, strides = list(self.shape), list(self.strides)
        step = strides.pop(axis)
        shape.pop(axis)
        return self.strided(index * step, shape, strides)

    def view(self) -> HbmView:
        """What copies take."""
        return HbmView(self.tensor, self.offset, self.shape, self.strides, self._box(), False)

    def _box(self) -> Box:
        width = self.tensor.shape[-1]
        row, column = divmod(self.offset, width)
        rows = columns = 0
        for n, stride in zip(self.shape, self.strides, strict=True):
            down, right = divmod(stride, width)
            rows, columns = rows + down * (n - 1), columns + right * (n - 1)
        if column + columns < width:
            return (row, row + rows + 1), (column, column + columns + 1)
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (row, last // width + 1), (0, width)
