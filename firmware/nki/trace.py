"""A kernel under construction: memory for arrays, results that wait for a place, instructions counted."""

from collections.abc import Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, cast
from weakref import WeakSet, ref

import numpy as np

from firmware.engines.base import said_at
from firmware.kernel import Kernel
from firmware.nki import arithmetic, moves
from firmware.nki.array import Array, Pending, Write
from firmware.nki.axes import Axis, Layout
from firmware.nki.dtypes import DType, dtype_of, dtype_of_values
from firmware.nki.masks import masked_copy
from firmware.nki.memory import Arena, Block, Blocks
from firmware.nki.place import line
from firmware.nki.silent import Silent
from firmware.numbers import element_bytes, encode
from firmware.program import HbmTensor
from firmware.views import HbmView, KernelError
from rtl.contract.config import Config
from rtl.contract.isa import Function
from rtl.contract.memmap import Space

__all__ = ["ParDim", "Trace", "current"]

_RESERVED_SHARE = 8  # of SBUF, for tables and images of the machine's own
_SUM_BYTES = 4
_ENDLESS = 1 << 40
_running: list["Trace"] = []


class ParDim(int):
    """The axis of partitions, if it is not the first one."""


def current() -> "Trace":
    """The kernel under construction. KernelError if there is none."""
    if not _running:
        raise KernelError("calls of nki work while a kernel runs, not where a file is imported")
    return _running[-1]


class Trace:
    """Of one run. `limit`: of calls; a kernel that makes more is taken to loop for ever."""

    def __init__(
        self,
        cfg: Config,
        name: str,
        limit: int,
        lifetimes: dict[tuple[int, int], int] | None = None,
        watching: bool = False,
    ):
        self.cfg, self.limit, self.calls = cfg, limit, 0
        self.k = Kernel(cfg, name)
        sbuf = cfg.sbuf.partition_bytes // _RESERVED_SHARE * (_RESERVED_SHARE - 1)
        tile = self.k.sbuf("arrays in SBUF", partitions=cfg.partitions, columns=sbuf, dtype="uint8")
        sums = cfg.psum.partition_bytes
        psum = self.k.psum("arrays in PSUM", partitions=cfg.partitions, columns=sums // _SUM_BYTES)
        rest = f"the other {cfg.sbuf.partition_bytes - sbuf} are for tables of functions and images of GPSIMD cores"
        self.arenas = {
            Space.SBUF: Arena("SBUF", tile, sbuf, 64, rest),
            Space.PSUM: Arena("PSUM", psum, sums, min(cfg.psum.bank_bytes, 2048)),
        }
        self.lifetimes, self.watching = lifetimes, watching
        self.blocked = 0  # arrays of several blocks so far
        self._blocks: WeakSet[Blocks] = WeakSet()
        if watching:
            self.k = cast(Kernel, Silent(self.k))
            for arena in self.arenas.values():
                arena.free[:] = [(0, _ENDLESS)]
        self.notes: dict[str, int] = {}
        self.grid: tuple[int, ...] = ()
        self.program_ids: tuple[int, ...] = ()
        self.shared: list[Array] | None = None  # of the first instance of a grid
        self.shared_taken = 0
        self.temps: list[Array] = []
        self.macs = 0
        self._pending: Any = None
        self._functions: tuple[str, ...] = ()
        self._names: dict[str, int] = {}
        self._constants: dict[tuple[str, bytes, tuple[int, ...]], Array] = {}

    @contextmanager
    def running(self) -> Any:
        """Calls of nki belong to this kernel."""
        _running.append(self)
        try:
            yield self
        finally:
            _running.remove(self)

    def count(self) -> None:
        """A call more. KernelError behind the limit."""
        self.calls += 1
        if self.calls > self.limit:
            raise KernelError(
                f"the kernel has made {self.limit:,} calls of nki and goes on; if it does not loop for ever, "
                "allow more with --limit (limit= from Python)"
            )

    def note(self, text: str) -> None:
        """What was lowered, for the report."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def settle(self) -> None:
        """Give the pending result a place."""
        array, self._pending = self._pending and self._pending(), None
        if array is None or array.pending is None:
            return
        pending = array.pending
        array.put(self._room(array))
        with said_at(array.line):
            pending.write(array)

    def result(
        self,
        shape: Sequence[int],
        dtype: Any,
        write: Write,
        sources: Sequence[Any],
        *,
        space: Space = Space.SBUF,
        product: Write | None = None,
        sums: bool = False,
    ) -> "Array":
        """A new array that `write` fills when somebody asks for it, or in the place where it is assigned."""
        self.settle()
        found = _Result(self, "result", space, dtype_of(dtype), self._layout(shape), None)
        found.pending = Pending(write, sources, product, sums)
        found.line = line()
        self._pending = ref(found)
        return found

    def new(self, shape: Sequence[int], dtype: Any, space: Space = Space.SBUF, p: int = 0, name: str = "") -> Array:
        """An array with a place."""
        layout = self._layout(shape)
        found = Array(self, name or f"the array of {line()}", space, dtype_of(dtype), layout, None)
        found.put(self._room(found))
        if p:
            found.layout = Layout(p, 0, layout.axes)
        return found

    def temp(self, shape: Sequence[int], dtype: Any, space: Space = Space.SBUF, p: int = 0) -> Array:
        """An array that lives until the next call."""
        found = self.new(shape, dtype, space, p)
        self.temps.append(found)
        return found

    def hbm(self, shape: Sequence[int], dtype: Any, name: str, data: np.ndarray | None = None) -> Array:
        """A tensor in HBM; without data the kernel writes it."""
        kind = dtype_of(dtype)
        number = self._names.get(name, 0)
        self._names[name] = number + 1
        sizes = tuple(int(n) for n in shape)
        view: HbmView = self.k.hbm(name if not number else f"{name}_{number}", sizes, kind.format, data)
        axes = tuple(Axis(n, 0, s) for n, s in zip(view.shape, view.strides, strict=True))
        return Array(self, view.tensor.name, Space.HBM, kind, Layout(0, 0, axes), view.tensor)

    def shared_values(self, values: np.ndarray, dtype: Any = None) -> Array:
        """Values known when the kernel is built, in HBM."""
        kind = dtype_of_values(values) if dtype is None else dtype_of(dtype)
        bits = encode(values, kind.format)
        key = (kind.format, bits.tobytes(), bits.shape)
        if key not in self._constants:
            self._constants[key] = self.hbm(bits.shape, kind, "constant", bits)
        return self._constants[key]

    def constant(self, values: np.ndarray, dtype: DType) -> Array:
        """The same in a new array of SBUF."""
        found = self.temp(values.shape, dtype)
        moves.copy_into(self, found, self.shared_values(values, dtype))
        return found

    def assign(self, dst: Array, value: Any, sole: bool = False) -> None:
        """dst[...] = value. `sole`: nobody else has a handle of the value, so it may be made in its place."""
        self.count()
        self.temps.clear()
        with said_at(line()):
            if isinstance(value, Array) and value.partial is not None:
                self.settle()
                masked_copy(self, dst, value, value.partial)
                return
            if not isinstance(value, Array):
                self.settle()
                moves.fill(self, dst, value)
                return
            pending = value.pending
            if pending is not None and pending.sums:
                self.settle()
                arithmetic.binary_into(self, dst, "add", dst, value)
                return
            if pending is not None and sole and self._fits(dst, value, pending):
                self._pending = None
                pending.write(dst)
                value.put(dst.place)
                return
            self.settle()
            if not dst.same(value):
                moves.copy_into(self, dst, value)

    @staticmethod
    def _fits(dst: Array, value: Array, pending: Pending) -> bool:
        shapes = [tuple(n for n in x.shape if n > 1) for x in (dst, value)]
        alike = dst.space == value.space and dst.dtype == value.dtype and dst.partitions == value.partitions
        return alike and shapes[0] == shapes[1] and all(s.place is not dst.place for s in pending.sources)

    @staticmethod
    def _adds(dst: Array, product: Array) -> bool:
        """Whether a product that has no place yet can go on top of an array: as it is, no operand, and in PSUM."""
        alike = (dst.partitions, dst.elements) == (product.partitions, product.elements)
        operands = product.pending.sources if product.pending is not None else []
        return dst.space == Space.PSUM and alike and all(s.place is not dst.place for s in operands)

    def update(self, name: str, dst: Array, other: Any, sole: bool = False) -> Array:
        """dst op= other; a product is added in PSUM."""
        self.count()
        self.temps.clear()
        pending = other.pending if isinstance(other, Array) else None
        product = pending.product if pending is not None and sole and name == "add" else None
        if product is not None and self._adds(dst, other):
            self._pending = None
            with said_at(line()):
                product(dst)
            return dst
        self.settle()
        with said_at(line()):
            arithmetic.binary_into(self, dst, name, dst, other)
        return dst

    def binary(self, name: str, a: Any, b: Any, dtype: Any = None) -> Array:
        """A new array, a op b."""
        self.count()
        self.temps.clear()
        return arithmetic.binary(self, name, a, b, dtype)

    def copied(self, array: Array, dtype: Any) -> Array:
        """A new array in SBUF of another format."""
        self.count()
        self.temps.clear()
        return self.result(array.shape, dtype, lambda dst: moves.copy_into(self, dst, array), [array])

    def seen_as(self, array: Array, dtype: Any) -> Array:
        """The bits of an array as another format."""
        kind = dtype_of(dtype)
        if element_bytes(kind.format) != element_bytes(array.format) or not array.on_chip:
            raise KernelError(f"{array.name} is {array.dtype}, and is seen as {kind}: both must have the same width")
        found = array.with_layout(array.layout)
        found.dtype, found.format = kind, kind.format
        return found

    def tables(self, function: Function) -> None:
        """The table of a function, beside those of earlier ones if there is room."""
        name = function.name.lower()
        if function < Function.EXP:
            return
        wanted = (*self._functions, name) if name not in self._functions else self._functions
        try:
            self.k.scalar.load_table(wanted)
        except KernelError:
            wanted = (name,)
            self.k.scalar.load_table(wanted)
        self._functions = wanted

    def _layout(self, shape: Sequence[int]) -> Layout:
        """Of a new array on the chip: partitions, then all other axes in order."""
        sizes = [int(n) for n in shape] if not isinstance(shape, (int, np.integer)) else [int(shape)]
        if not sizes or any(n < 1 for n in sizes):
            raise KernelError(f"an array has shape {tuple(shape)}; every axis must have at least 1 element")
        marked = [i for i, n in enumerate(shape) if isinstance(n, ParDim)]
        par = marked[0] if marked else 0
        if sizes[par] > self.cfg.partitions:
            raise KernelError(
                f"an array of shape {tuple(sizes)} takes {sizes[par]} partitions; {self.cfg.name} has "
                f"{self.cfg.partitions} (nl.tile_size.pmax); the first axis, or that of par_dim, is partitions"
            )
        rest = [n for i, n in enumerate(sizes) if i != par]
        steps = iter([prod(rest[i + 1 :]) for i in range(len(rest))])
        axes = [Axis(n, 1, 0, True) if i == par else Axis(n, 0, next(steps)) for i, n in enumerate(sizes)]
        return Layout(0, 0, tuple(axes))

    def _room(self, array: Array) -> Any:
        size = array.elements * element_bytes(array.format)
        self._give()
        about = f"{array.dtype}{list(array.shape)} of {getattr(array, 'line', '') or line()}"
        arena = self.arenas[array.space]
        ahead = next((i for i, axis in enumerate(array.layout.axes) if axis.par), 0)
        count = prod(axis.count for axis in array.layout.axes[:ahead])
        if count == 1:
            return arena.take(size, about)
        self.blocked += 1
        if self.lifetimes is None:
            return arena.take(size, about)
        each = array.elements // count
        found = Blocks(arena, self.blocked, each, size // count, about, self.lifetimes, self.watching)
        self._blocks.add(found)
        return found

    def _give(self) -> None:
        for blocks in self._blocks:
            blocks.give(self.calls)

    def block(self, blocks: Blocks, index: int) -> Block:
        """A block of an array; those that nobody asks for any more give room."""
        self._give()
        return blocks.at(index, self.calls)

    def finished(self, outputs: Sequence[Array]) -> list[HbmTensor]:
        """The tensors that a kernel returns, whole. KernelError for what is none of its own."""
        for array in outputs:
            if not isinstance(array, Array) or array.on_chip or array.place.data is not None:
                raise KernelError(
                    f"the kernel returns {array!r}; it returns arrays of nl.ndarray(..., buffer=nl.shared_hbm)"
                )
            steps = tuple(prod(array.shape[i + 1 :]) for i in range(array.ndim))
            whole = all(a.count == 1 or a.f == n for a, n in zip(array.layout.axes, steps, strict=True))
            if array.layout.f or array.size != prod(array.place.shape) or not whole:
                raise KernelError(f"the kernel returns a part of {array.name}, or its axes in another order")
        return [array.place for array in outputs]


class _Result(Array):
    """`line`: where it was asked for."""

    __slots__ = ("line",)
    line: str
