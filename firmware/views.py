"""Views of tensors in HBM and of tiles in SBUF and PSUM: what a kernel slices and hands to engines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from operator import index as index_of
from typing import Any

from firmware.decisions.numbers import Number
from firmware.errors import KernelError
from firmware.loops.lazy import later
from firmware.numbers import element_bytes
from firmware.program import HbmTensor
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space

__all__ = ["BlockView", "Box", "CopyView", "HbmView", "KernelError", "MemoryFullError", "Tile", "TileView"]

Box = tuple[tuple[int, int], ...]
"""Half-open ranges, one an axis."""

Index = int | slice | Number


class MemoryFullError(KernelError):
    """A tile that its memory has no room for."""


def _range(index: Index, size: int, what: str, axis: str) -> tuple[int, int, int]:
    """(first, count, step) of an index of axis `axis`. Negative indices and steps are refused: they hide mistakes."""
    if isinstance(index, slice):
        start = 0 if index.start is None else _whole(index.start, what)
        stop = size if index.stop is None else _whole(index.stop, what)
        step = 1 if index.step is None else _whole(index.step, what)
    else:
        start, stop, step = _whole(index, what), _whole(index, what) + 1, 1
    if step < 1 or not 0 <= start < stop <= size:
        raise KernelError(
            f"{what} has {size} elements along axis {axis}; the index {start}:{stop}:{step} is not inside"
        )
    return start, -(-(stop - start) // step), step


def _inside(number: Number, size: int, what: str, axis: int) -> None:
    """KernelError unless a number of the run is an index of the axis in every run."""
    if not 0 <= number.low <= number.high < size:
        raise KernelError(
            f"{what} has {size} elements along axis {axis}, and {number!r} may be from {number.low} to {number.high}"
        )


def _whole(index: Any, what: str) -> int:
    """A number in an index, a NumPy one too. KernelError for anything else."""
    try:
        return index_of(index)
    except TypeError:
        raise KernelError(f"{what} is indexed with {index!r}; an index is a whole number or a range of them") from None


def _order(axes: Any, count: int, what: str) -> tuple[int, ...]:
    """An order of `count` axes. KernelError if it is none."""
    if not isinstance(axes, Iterable) or sorted(axes, key=repr) != sorted(range(count), key=repr):
        raise KernelError(f"{what} has {count} axes to put in order; {axes!r} is no order of them")
    return tuple(axes)


def _cut(axis: Any, sizes: Sequence[int], inner: Any, what: str) -> None:
    """KernelError unless `inner` divides the axis."""
    axis, inner = _whole(axis, what), _whole(inner, what)
    if not 0 <= axis < len(sizes):
        raise KernelError(f"{what} has {len(sizes)} axes here, from 0; there is no axis {axis} to split")
    if inner < 1 or sizes[axis] % inner:
        raise KernelError(f"{what} has {sizes[axis]} elements along axis {axis}, no multiple of {inner}")


def _times(count: Any, what: str) -> int:
    """How often to repeat. KernelError below 1."""
    if _whole(count, what) < 1:
        raise KernelError(f"{what} is repeated {count} times; it must be at least once")
    return _whole(count, what)


@dataclass(frozen=True, slots=True)
class HbmView:
    """Part of a tensor: `offset` and `strides` in elements; `box` is what it may touch, an axis each. `moved`: numbers
    of the run, and by how many elements each moves its place."""

    tensor: HbmTensor
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: Box
    sliced: bool = True  # the axes are still those of the tensor, so that slicing narrows the box
    moved: tuple[tuple[Number, int], ...] = field(default=(), compare=False)

    @property
    def dtype(self) -> str:
        """Number format of an element."""
        return self.tensor.dtype

    @property
    def core(self) -> int:
        """The core whose HBM it is in."""
        return self.tensor.core

    @later
    def __getitem__(self, index: Index | tuple[Index, ...]) -> "HbmView":
        """Slices narrow an axis, integers remove it; so does a number of the run, from 0 to less than its size."""
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > len(self.shape):
            raise KernelError(f"{self.tensor.name} has {len(self.shape)} axes here, not {len(indices)}")
        offset, shape, strides, box = self.offset, [], [], list(self.box)
        keeps_axes, moved = self.sliced, list(self.moved)
        for axis, size in enumerate(self.shape):
            one = indices[axis] if axis < len(indices) else slice(None)
            if isinstance(one, Number):
                _inside(one, size, self.tensor.name, axis)
                moved.append((one, self.strides[axis]))
                keeps_axes = False
                continue
            start, count, step = _range(one, size, self.tensor.name, str(axis))
            offset += start * self.strides[axis]
            if self.sliced and self.box[axis][1] - self.box[axis][0] == size:
                low = self.box[axis][0] + start
                box[axis] = (low, low + (count - 1) * step + 1)
            if isinstance(one, slice):
                shape.append(count)
                strides.append(self.strides[axis] * step)
            else:
                keeps_axes = False
        return HbmView(self.tensor, offset, tuple(shape), tuple(strides), tuple(box), keeps_axes, tuple(moved))

    @later
    def split(self, axis: int, inner: int) -> "HbmView":
        """Cut an axis in (size / inner, inner). KernelError if `inner` does not divide it."""
        _cut(axis, self.shape, inner, self.tensor.name)
        size = self.shape[axis]
        shape = (*self.shape[:axis], size // inner, inner, *self.shape[axis + 1 :])
        step = self.strides[axis]
        strides = (*self.strides[:axis], step * inner, step, *self.strides[axis + 1 :])
        return replace(self, shape=shape, strides=strides, sliced=False)

    @later
    def permute(self, axes: Sequence[int]) -> "HbmView":
        """The same elements with the axes in another order."""
        axes = _order(axes, len(self.shape), self.tensor.name)
        shape, strides = (tuple(sizes[a] for a in axes) for sizes in (self.shape, self.strides))
        return replace(self, shape=shape, strides=strides, sliced=False)

    @later
    def repeat(self, count: int) -> "HbmView":
        """A new first axis of `count` that reads the same elements each time (a source only)."""
        count = _times(count, self.tensor.name)
        return replace(self, shape=(count, *self.shape), strides=(0, *self.strides), sliced=False)

    def axes_bytes(self) -> list[tuple[int, int]]:
        """(count, bytes to the next) of each axis, outermost first."""
        size = element_bytes(self.dtype)
        return [(n, s * size) for n, s in zip(self.shape, self.strides, strict=True)]


@dataclass(frozen=True, slots=True)
class Tile:
    """A named allocation: `columns` elements at byte `offset` of `partitions` partitions from `start`."""

    name: str
    space: Space
    start: int
    partitions: int
    offset: int
    columns: int
    dtype: str
    core: int = 0  # whose SBUF or PSUM it is (memmap.core_id)
    memory: str = ""  # what others share with it, if its bytes are not its own for ever

    @later
    def __getitem__(self, index: Index | tuple[Index, ...]) -> "TileView":
        """A view: the first index picks partitions (step 1), the second columns."""
        return self.view()[index]

    @later
    def reinterpret(self, dtype: str) -> "Tile":
        """The same bytes as elements of another format. KernelError if they do not come out even."""
        try:
            element_bytes(dtype)
        except ValueError as error:
            raise KernelError(f"{self.name} is read anew: {error}") from None
        size = self.columns * element_bytes(self.dtype)
        if size % element_bytes(dtype):
            raise KernelError(f"{self.name} has {size} bytes of each partition, no whole number of {dtype} elements")
        return replace(self, dtype=dtype, columns=size // element_bytes(dtype))

    def view(self) -> "TileView":
        """All of it."""
        return TileView(self, self.start, self.partitions, self.offset, ((1, self.columns),))


@dataclass(frozen=True, slots=True)
class TileView:
    """Part of a tile: partitions, first byte, and (step, count) in elements, outermost first.

    A tile has one free axis; `split` makes two of it, `permute` and `repeat` order and repeat them.
    """

    tile: Tile
    start: int
    partitions: int
    offset: int
    dims: tuple[tuple[int, int], ...]

    @property
    def dtype(self) -> str:
        """Number format of an element."""
        return self.tile.dtype

    @property
    def core(self) -> int:
        """The core whose SBUF or PSUM it is in."""
        return self.tile.core

    @property
    def shape(self) -> tuple[int, ...]:
        """Partitions, then the free axes."""
        return (self.partitions, *(count for _, count in self.dims))

    @property
    def elements(self) -> int:
        """Elements of a partition."""
        return prod(count for _, count in self.dims)

    @later
    def __getitem__(self, index: Index | tuple[Index, ...]) -> "TileView":
        """Slices narrow partitions and free axes; an integer keeps the axis with one element."""
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > 1 + len(self.dims):
            raise KernelError(f"{self.tile.name} has {1 + len(self.dims)} axes here, not {len(indices)}")
        start, partitions, step = _range(indices[0], self.partitions, self.tile.name, "0 (partitions)")
        if step != 1:
            raise KernelError(f"{self.tile.name} is sliced with a partition step of {step}; it must be 1")
        offset, dims = self.offset, list(self.dims)
        for axis, one in enumerate(indices[1:]):
            inner, count = self.dims[axis]
            first, length, stride = _range(one, count, self.tile.name, str(1 + axis))
            offset += first * inner * element_bytes(self.dtype)
            dims[axis] = (inner * stride, length)
        return TileView(self.tile, self.start + start, partitions, offset, tuple(dims))

    @later
    def split(self, axis: int, inner: int) -> "TileView":
        """Cut free axis `axis` (from 0) in (count / inner, inner). KernelError unless `inner` divides it."""
        _cut(axis, [count for _, count in self.dims], inner, self.tile.name)
        step, count = self.dims[axis]
        dims = (*self.dims[:axis], (step * inner, count // inner), (step, inner), *self.dims[axis + 1 :])
        return TileView(self.tile, self.start, self.partitions, self.offset, dims)

    @later
    def repeat(self, count: int) -> "TileView":
        """A new first free axis of `count` that reads the same elements each time (a source only)."""
        return TileView(
            self.tile, self.start, self.partitions, self.offset, ((0, _times(count, self.tile.name)), *self.dims)
        )

    @later
    def permute(self, axes: Sequence[int]) -> "TileView":
        """The same elements with the free axes (from 0) in another order."""
        axes = _order(axes, len(self.dims), self.tile.name)
        dims = tuple(self.dims[a] for a in axes)
        return TileView(self.tile, self.start, self.partitions, self.offset, dims)

    @property
    def box(self) -> Box:
        """Partitions and bytes it may touch."""
        size = element_bytes(self.dtype)
        last = self.offset + sum(step * (count - 1) for step, count in self.dims) * size
        return (self.start, self.start + self.partitions), (self.offset, last + size)

    @property
    def first_byte(self) -> int:
        """Offset in the space's address map."""
        return self.start * PARTITION_STRIDE_BYTES + self.offset

    def axes_bytes(self) -> list[tuple[int, int]]:
        """(count, bytes to the next) of each axis, outermost first."""
        size = element_bytes(self.dtype)
        return [
            (self.partitions, PARTITION_STRIDE_BYTES),
            *((count, step * size) for step, count in self.dims),
        ]


@dataclass(frozen=True, slots=True)
class BlockView:
    """The view `first` and the same `step` partitions further, `blocks` in all: an end of a copy. Engines know one run
    of partitions only."""

    first: TileView
    blocks: int
    step: int

    @property
    def tile(self) -> Tile:
        """What it is part of."""
        return self.first.tile

    @property
    def dtype(self) -> str:
        """Number format of an element."""
        return self.first.dtype

    @property
    def core(self) -> int:
        """The core whose SBUF it is in."""
        return self.first.core

    @property
    def shape(self) -> tuple[int, ...]:
        """Blocks, partitions of each, then the free axes."""
        return (self.blocks, *self.first.shape)

    @property
    def box(self) -> Box:
        """Partitions and bytes it may touch, and those between the blocks."""
        (first, end), columns = self.first.box
        return (first, end + (self.blocks - 1) * self.step), columns

    @property
    def first_byte(self) -> int:
        """Offset in the space's address map."""
        return self.first.first_byte

    def axes_bytes(self) -> list[tuple[int, int]]:
        """(count, bytes to the next) of each axis, outermost first."""
        return [(self.blocks, self.step * PARTITION_STRIDE_BYTES), *self.first.axes_bytes()]


CopyView = TileView | BlockView | HbmView
"""An end of a copy."""
