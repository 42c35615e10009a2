"""An array of an NKI kernel: in HBM, SBUF or PSUM, or what indices make of one."""

from collections.abc import Callable, Sequence
from math import prod
from sys import getrefcount
from typing import Any

import numpy as np

from firmware.nki.axes import Axis, Layout, indexed, reshaped
from firmware.nki.dtypes import DType, dtype_of
from firmware.nki.errors import MissingError
from firmware.nki.memory import Block, Blocks
from firmware.nki.patterns import patterned
from firmware.numbers import element_bytes
from firmware.program import HbmTensor
from firmware.views import HbmView, KernelError, TileView
from rtl.contract.memmap import Space

__all__ = ["Array", "Pending"]

_INNER = (
    "trace",
    "layout",
    "pending",
    "partial",
    "place",
    "put",
    "with_layout",
    "par",
    "tile",
    "hbm",
    "same",
    "free",
    "in_words",
)
Write = Callable[["Array"], None]


class Pending:
    """A result that has no place yet: `write` puts it into an array. `product`: it can be added to what PSUM holds;
    `sums`: an assignment adds it."""

    __slots__ = ("product", "sources", "sums", "write")

    def __init__(self, write: Write, sources: Sequence[Any], product: Write | None = None, sums: bool = False):
        self.write, self.product, self.sums = write, product, sums
        self.sources = [x for x in sources if isinstance(x, Array)]


class Array:
    """`dtype` is NKI's, `format` what memory holds: PSUM holds fp32 whatever the dtype."""

    __slots__ = ("__weakref__", "_place", "dtype", "format", "layout", "name", "partial", "pending", "space", "trace")

    def __init__(
        self,
        trace: Any,
        name: str,
        space: Space,
        dtype: DType,
        layout: Layout,
        place: Block | Blocks | HbmTensor | None,
        pending: Pending | None = None,
    ):
        self.trace, self.name, self.space, self.dtype, self.layout = trace, name, space, dtype, layout
        self.format = "fp32" if space == Space.PSUM else dtype.format
        self._place, self.pending = place, pending
        self.partial: np.ndarray | None = None  # a mask: what it leaves out has no meaning

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return len(self.layout.axes)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def buffer(self) -> str:
        return self.space.name.lower()

    @property
    def place(self) -> Any:
        """Where it lies; a pending one gets a place now."""
        if self.pending is not None:
            self.trace.settle()
        return self._place

    def put(self, place: Any) -> None:
        """A pending one gets its place."""
        self._place, self.pending = place, None

    def with_layout(self, layout: Layout) -> "Array":
        """The same memory seen in another way."""
        place = self.place
        if isinstance(place, Blocks):
            place, layout = self._block(place, layout)
        return Array(self.trace, self.name, self.space, self.dtype, layout, place)

    def _block(self, blocks: Blocks, layout: Layout) -> tuple[Block | Blocks, Layout]:
        """The block in which all of a layout lies, if it lies in one."""
        ends = [axis.f * (axis.count - 1) for axis in layout.axes]
        low, high = layout.f + sum(min(n, 0) for n in ends), layout.f + sum(max(n, 0) for n in ends)
        index = low // blocks.elements
        if high // blocks.elements != index:
            return blocks, layout
        first = layout.f - index * blocks.elements
        return self.trace.block(blocks, index), Layout(layout.p, first, layout.axes, layout.reaches)

    def __getitem__(self, key: Any) -> "Array":
        return self.with_layout(indexed(self.layout, key, self.name))

    def __setitem__(self, key: Any, value: Any) -> None:
        sole = getrefcount(value) <= _SOLE[0]
        self.trace.assign(self._target(key), value, sole)

    def _target(self, key: Any) -> "Array":
        """Where a value goes; it waits for its place until then."""
        if self.pending is not None:
            self.trace.settle()
        return self.with_layout(indexed(self.layout, key, self.name))

    @property
    def par(self) -> Axis | None:
        """The axis of partitions, if indices have left one."""
        return next((axis for axis in self.layout.axes if axis.par), None)

    @property
    def partitions(self) -> int:
        """How many partitions it lies on; of a broadcast one what it stands for."""
        axis = self.par
        return axis.count if axis else 1

    @property
    def free(self) -> list[Axis]:
        """Axes but that of partitions."""
        return [axis for axis in self.layout.axes if not axis.par]

    @property
    def elements(self) -> int:
        """Elements of a partition."""
        return prod(axis.count for axis in self.free)

    @property
    def on_chip(self) -> bool:
        return self.space != Space.HBM

    def same(self, other: "Array") -> bool:
        """Whether both are the same elements in the same order."""
        return self.place is other.place and self.layout == other.layout

    def offsets(self) -> set[int]:
        """Elements of a partition of its place."""
        at = np.array([self.layout.f])
        for axis in self.free:
            at = (at[:, None] + np.arange(axis.count) * axis.f).reshape(-1)
        return set(at.tolist())

    def tile(self, free: Sequence[Axis] | None = None) -> TileView:
        """For engines: what is in SBUF or PSUM, axes merged where steps allow it."""
        self.layout.check(self.name)
        if any(axis.p for axis in self.free if axis.count > 1):
            raise KernelError(f"{self.name} is indexed so that its free axes run over partitions")
        par = self.par
        if par and par.count > 1 and par.p != 1:
            raise KernelError(f"{self.name} is read with a partition step of {par.p}; it must be 1")
        block: Block = self.place
        if isinstance(block, Blocks):
            raise KernelError(
                f"{self.name} is used in several blocks at once, which lie apart; index the axes before par_dim"
            )
        size = element_bytes(self.format)
        dims: list[tuple[int, int]] = []
        for axis in self.free if free is None else free:
            if axis.count == 1:
                continue
            if free is None and dims and dims[-1][0] == axis.f * axis.count:
                dims[-1] = (axis.f, dims[-1][1] * axis.count)
            else:
                dims.append((axis.f, axis.count))
        offset = block.offset + self.layout.f * size
        tile = block.arena.tile.reinterpret(self.format)
        return TileView(tile, self.layout.p, self.partitions, offset, tuple(dims) or ((1, 1),))

    def hbm(self, axes: Sequence[Axis]) -> HbmView:
        """For copies: what is in HBM, with these axes."""
        self.layout.check(self.name)
        tensor: HbmTensor = self.place
        strides = [prod(tensor.shape[i + 1 :]) for i in range(len(tensor.shape))]

        def coordinates(at: int) -> list[int]:
            return [at // s % n for s, n in zip(strides, tensor.shape, strict=True)]

        low, high = coordinates(self.layout.f), coordinates(self.layout.f)
        for axis in axes:
            for i, step in enumerate(coordinates(axis.f)):
                high[i] += step * (axis.count - 1)
        box = tuple((a, b + 1) for a, b in zip(low, high, strict=True))
        if any(b > n for (_, b), n in zip(box, tensor.shape, strict=True)) or any(a.f < 0 for a in axes):
            box = tuple((0, n) for n in tensor.shape)
        shape, steps = tuple(a.count for a in axes), tuple(a.f for a in axes)
        return HbmView(tensor, self.layout.f, shape or (1,), steps or (1,), box, False)

    def reshape(self, *shape: Any) -> "Array":
        """Another shape of the same elements, where they lie."""
        sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else tuple(shape)
        sizes = tuple(int(n) for n in sizes)
        if -1 in sizes:
            rest = self.size // max(1, prod(n for n in sizes if n != -1))
            sizes = tuple(rest if n == -1 else n for n in sizes)
        self.layout.check(self.name)
        axes = reshaped(self.layout.axes, sizes, self.name)
        return self.with_layout(Layout(self.layout.p, self.layout.f, axes))

    def permute(self, order: Sequence[int]) -> "Array":
        """The same elements with axes in another order."""
        self.layout.check(self.name)
        return self.with_layout(Layout(self.layout.p, self.layout.f, tuple(self.layout.axes[i] for i in order)))

    def broadcast_to(self, *shape: Any) -> "Array":
        """Axes of one element repeated. KernelError if the shapes do not go together."""
        sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else tuple(shape)
        self.layout.check(self.name)
        axes = list(self.layout.axes)
        missing = len(sizes) - len(axes)
        if axes and axes[0].par:
            axes += [Axis(1, 0, 0)] * missing
        else:
            axes = [Axis(1, 0, 0, self.on_chip and i == 0 and not self.par) for i in range(missing)] + axes
        if len(axes) != len(sizes) or any(a.count not in (1, n) for a, n in zip(axes, sizes, strict=True)):
            raise KernelError(f"{self.name} of shape {self.shape} cannot be broadcast to {sizes}")
        made = [a if a.count == n else Axis(int(n), 0, 0, a.par) for a, n in zip(axes, sizes, strict=True)]
        return self.with_layout(Layout(self.layout.p, self.layout.f, tuple(made)))

    def view(self, dtype: Any) -> "Array":
        """The bits as another format of the same width. KernelError if there is none."""
        return self.trace.seen_as(self, dtype)

    def ap(
        self, pattern: Any, offset: int = 0, dtype: Any = None, scalar_offset: Any = None, vector_offset: Any = None,
        indirect_dim: Any = None,
    ) -> "Array":  # fmt: skip
        """A view by [step, count] pairs in elements, of another dtype if one is given."""
        if scalar_offset is not None or vector_offset is not None:
            raise KernelError(
                f"{self.name}.ap with an offset from memory: a program's addresses are known before it runs"
            )
        seen = self.dtype if dtype is None else dtype_of(dtype)
        width = element_bytes(self.format if dtype is None else seen.format)
        if self.space == Space.PSUM and seen != self.dtype:
            raise KernelError(f"{self.name} lies in PSUM, as FP32, and is not seen as {seen}")
        widths = element_bytes(self.format), width
        layout = patterned(self.layout, pattern, int(offset), self.on_chip, widths, self.name)
        place = self.place
        if isinstance(place, Blocks):
            return self.with_layout(layout)
        return Array(self.trace, self.name, self.space, seen, layout, place)

    def astype(self, dtype: Any) -> "Array":
        return self.trace.copied(self, dtype)

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(n for n in vars(Array) if not n.startswith("_") and n not in _INNER)
        raise MissingError(f"an array has no {name} here; it has {known}")

    def __bool__(self) -> bool:
        raise KernelError(f"{self.name} has no value when the kernel is built, so nothing can branch on it")

    __iter__ = None
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)} in {self.space.name}"


def _probe() -> tuple[int, int]:
    """References of a value that nobody else holds, in __setitem__ and in an operator in place."""
    found: list[int] = []

    class Probe:
        def __setitem__(self, key: Any, value: Any) -> None:
            found.append(getrefcount(value))

        def __iadd__(self, other: Any) -> "Probe":
            found.append(getrefcount(other))
            return self

    probe = Probe()
    probe[0] = object()
    probe += object()
    return found[0], found[1]


_SOLE = _probe()


def _operators() -> None:
    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
        "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    }  # fmt: skip
    for python, name in names.items():

        def forward(self: Array, other: Any, name: str = name) -> Any:
            return self.trace.binary(name, self, other)

        def backward(self: Array, other: Any, name: str = name) -> Any:
            return self.trace.binary(name, other, self)

        def inplace(self: Array, other: Any, name: str = name) -> Array:
            sole = getrefcount(other) <= _SOLE[1]
            return self.trace.update(name, self, other, sole)

        setattr(Array, f"__{python}__", forward)
        setattr(Array, f"__r{python}__", backward)
        setattr(Array, f"__i{python}__", inplace)
    for python, name in {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal"}.items():
        setattr(Array, f"__{python}__", lambda self, other, name=name: self.trace.binary(name, self, other))
    setattr(Array, "__neg__", lambda self: self.trace.binary("multiply", self, -1.0))  # noqa: B010


_operators()
setattr(Array, "__array_ufunc__", None)  # noqa: B010 -- NumPy leaves `number * array` to the array
