"""nki.language: arrays, loads and stores, functions, loops."""

from typing import Any

import numpy as np

from firmware.nki import arithmetic, moves, products
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.nki.axes import Axis, Layout
from firmware.nki.dtypes import dtype_of
from firmware.nki.isa import axes_of, reduced, unmasked
from firmware.nki.isa_more import selected
from firmware.nki.masks import box_of, cut, mask_of
from firmware.nki.operators import ALU, FUNCTIONS
from firmware.nki.registry import call, need_dst
from firmware.nki.trace import Trace
from firmware.views import KernelError
from rtl.contract.memmap import Space

__all__ = ["ELEMENTWISE"]

_NL = "nki.language"
_SPACES = {"sbuf": Space.SBUF, "psum": Space.PSUM}
_HBM = ("hbm", "shared_hbm", "private_hbm")
ELEMENTWISE = (*(n for n in FUNCTIONS if n != "copy"), "reciprocal", "negative", "cos")
_LOWERED = {"divide": "RECIPROCAL and multiply", "power": "square, sqrt, rsqrt, RECIPROCAL, or exp(b log(a))"}


@call(_NL, "built", "room in SBUF, PSUM or HBM until the last handle dies")
def ndarray(
    trace: Trace, shape: Any, dtype: Any = "float32", *, buffer: Any = None, name: str = "", **unused: Any
) -> Array:
    where = getattr(buffer, "buffer", buffer) or "sbuf"
    if where in _SPACES:
        return trace.new(shape, dtype, _SPACES[where], name=name)
    if where not in _HBM:
        raise KernelError(f"buffer is nl.sbuf, nl.psum, nl.shared_hbm, nl.private_hbm or nl.hbm, not {buffer!r}")
    sizes = tuple(int(n) for n in shape)
    if trace.shared is not None:
        if trace.shared_taken < len(trace.shared):
            found = trace.shared[trace.shared_taken]
            trace.shared_taken += 1
            if found.shape != sizes:
                raise KernelError(
                    f"an instance of a grid makes {found.name} of shape {sizes}; the first made {found.shape}"
                )
            return found
        trace.shared_taken += 1
    found = trace.hbm(sizes, dtype, name or ("output" if where != "private_hbm" else "scratch"))
    if trace.shared is not None:
        trace.shared.append(found)
    return found


def _filled(name: str, value: float) -> None:
    def run(trace: Trace, shape: Any, dtype: Any = "float32", *, buffer: Any = None, **unused: Any) -> Array:
        found = ndarray(shape, dtype, buffer=buffer)
        moves.fill(trace, found, value)
        return found

    call(_NL, "instruction", "MEMSET", name)(run)


_filled("zeros", 0.0)
_filled("ones", 1.0)


@call(_NL, "instruction", "MEMSET")
def full(
    trace: Trace, shape: Any, fill_value: Any, dtype: Any = "float32", *, buffer: Any = None, **unused: Any
) -> Array:
    found = ndarray(shape, dtype, buffer=buffer)
    moves.fill(trace, found, fill_value)
    return found


@call(_NL, "instruction", "MEMSET")
def zeros_like(trace: Trace, x: Any, dtype: Any = None, *, buffer: Any = None, **unused: Any) -> Array:
    found = ndarray(x.shape, dtype or x.dtype, buffer=buffer)
    moves.fill(trace, found, 0.0)
    return found


@call(_NL, "built", "room in SBUF, PSUM or HBM")
def empty_like(trace: Trace, x: Any, dtype: Any = None, *, buffer: Any = None, **unused: Any) -> Array:
    return ndarray(x.shape, dtype or x.dtype, buffer=buffer)


def _cut(x: Array, mask: Any) -> tuple[Array, tuple[int, ...] | None]:
    """What a mask leaves of an array, and its shape; KernelError unless that is a box from the first element on."""
    if mask is None:
        x.layout.check(x.name)
        return x, None
    chosen = mask_of(mask, x.shape, x.name)
    counts = x.shape if chosen is None else box_of(chosen)
    if counts is None:
        raise KernelError(f"the mask of {x.name} is no box from the first element on")
    return (x if 0 in counts else cut(x, counts)), counts


def _loaded(trace: Trace, src: Any, mask: Any, dtype: Any) -> Array:
    if not isinstance(src, Array) or src.on_chip:
        raise KernelError(f"nl.load takes an array in HBM, not {src!r}")
    shape = src.shape if src.ndim > 1 else (*src.shape, *(1,) * (2 - src.ndim))
    part, counts = _cut(src, mask)
    kind = dtype_of(dtype) if dtype is not None else src.dtype

    def write(to: Array) -> None:
        if counts is None:
            moves.copy_into(trace, to, part)
        else:
            if counts != src.shape:
                moves.fill(trace, to, 0.0)
            if 0 not in counts:
                moves.copy_into(trace, to[tuple(slice(0, n) for n in counts)], part)

    return trace.result(shape, kind, write, ())


@call(_NL, "instruction", "a DMA descriptor; what a mask leaves out is 0")
def load(trace: Trace, src: Any, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Array:
    return _loaded(trace, src, mask, dtype)


@call(_NL, "lowered", "a DMA descriptor of single elements")
def load_transpose2d(trace: Trace, src: Any, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Array:
    trace.note("load_transpose2d: a copy of single elements")
    unmasked(mask, "load_transpose2d")
    return _loaded(trace, src.permute(range(src.ndim)[::-1]), None, dtype)


@call(_NL, "instruction", "a DMA descriptor; with a conversion, or from PSUM, a copy before it")
def store(trace: Trace, dst: Any, value: Any, *, mask: Any = None, **unused: Any) -> None:
    to = need_dst(dst, "nl.store")
    if to.on_chip:
        raise KernelError(f"nl.store writes to HBM; {to.name} lies in {to.space.name}")
    part, counts = _cut(to, mask)
    if counts is not None and 0 in counts:
        return
    if not isinstance(value, Array):
        moves.fill(trace, part, value)
        return
    if counts is not None and counts != to.shape:
        value = value[tuple(slice(0, n) for n in counts)]
    moves.copy_into(trace, part, value)


@call(_NL, "instruction", "TENSOR_COPY")
def copy(trace: Trace, src: Any, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Array:
    unmasked(mask, "nl.copy")
    x = on_chip(src, "nl.copy")
    return trace.result(x.shape, dtype or x.dtype, lambda to: moves.copy_into(trace, to, x), (x,))


@call(_NL, "instruction", "TENSOR_COPY")
def static_cast(trace: Trace, value: Any, dtype: Any) -> Any:
    if not isinstance(value, Array):
        return value
    return trace.result(value.shape, dtype, lambda to: moves.copy_into(trace, to, value), (value,))


@call(_NL, "lowered", "nc_matmul, after a transpose unless transpose_x; pieces of moving_max columns")
def matmul(trace: Trace, x: Any, y: Any, transpose_x: bool = False, *, mask: Any = None) -> Array:
    unmasked(mask, "nl.matmul")
    return products.matmul(trace, on_chip(x, "nl.matmul"), on_chip(y, "nl.matmul"), transpose_x)


@call(_NL, "instruction", "TENSOR_TRANSPOSE")
def transpose(trace: Trace, x: Any, *, dtype: Any = None, mask: Any = None) -> Array:
    unmasked(mask, "nl.transpose")
    one = on_chip(x, "nl.transpose")
    write = lambda to: products.transpose_into(trace, to, one)  # noqa: E731
    return trace.result((one.elements, one.partitions), dtype or one.dtype, write, (one,), space=Space.PSUM)


@call(_NL, "built", "another way to see the same memory")
def broadcast_to(trace: Trace, src: Any, shape: Any) -> Array:
    return src.broadcast_to(tuple(shape))


@call(_NL, "built", "another way to see the same memory")
def expand_dims(trace: Trace, data: Any, axis: int) -> Array:
    axes = list(data.layout.axes)
    axes.insert(axis % (len(axes) + 1), Axis(1, 0, 0))
    return data.with_layout(Layout(data.layout.p, data.layout.f, tuple(axes)))


@call(_NL, "instruction", "SELECT; COPY_PREDICATED if y is an array")
def where(trace: Trace, condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Array:
    unmasked(mask, "nl.where")
    arrays = [a for a in (x, y, condition) if isinstance(a, Array)]
    if not arrays:
        raise KernelError("nl.where takes an array")
    shape = max((a.shape for a in arrays), key=lambda s: int(np.prod(s)))
    return trace.result(shape, dtype or arrays[0].dtype, lambda to: selected(trace, to, condition, x, y), arrays)


def _masked(found: Array, mask: Any) -> Array:
    """A new array of which a mask leaves elements out: they are computed, and have no meaning."""
    found.partial = mask_of(mask, found.shape, "a result")
    return found


def _operators() -> None:
    def two(name: str) -> Any:
        def run(trace: Trace, x: Any, y: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Array:
            return _masked(arithmetic.binary(trace, name, x, y, dtype), mask)

        return run

    def one(name: str) -> Any:
        def run(trace: Trace, x: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Array:
            a = on_chip(x, f"nl.{name}")
            write = lambda to: arithmetic.unary_into(trace, to, name, a)  # noqa: E731
            return _masked(trace.result(a.shape, dtype or a.dtype, write, (a,)), mask)

        return run

    def over(name: str) -> Any:
        def run(
            trace: Trace,
            x: Any,
            axis: Any,
            *,
            dtype: Any = None,
            mask: Any = None,
            keepdims: bool = False,
            **unused: Any,
        ) -> Array:
            a = on_chip(x, f"nl.{name}")
            axes = axes_of(axis)
            if mask is not None:
                chosen = np.broadcast_to(np.asarray(mask), a.shape)
                left, over = chosen.any(tuple(axes)), tuple(axes)
                unmasked(chosen.all(over) == left, f"a reduction by nl.{name}, along its axes,")
                mask = left.reshape(reduced(a.shape, axes, keepdims))

            def write(to: Array) -> None:
                if name != "mean":
                    arithmetic.reduce_into(trace, to, name, a, axes)
                    return
                sums = trace.temp(to.shape, "float32")
                arithmetic.reduce_into(trace, sums, "sum", a, axes)
                count = int(np.prod([a.shape[i] for i in axes]))
                arithmetic.binary_into(trace, to, "multiply", sums, float(np.float32(1) / np.float32(count)))

            return _masked(trace.result(reduced(a.shape, axes, keepdims), dtype or a.dtype, write, (a,)), mask)

        return run

    for name in ALU:
        call(_NL, "instruction", "TENSOR_TENSOR, TENSOR_SCALAR", name)(two(name))
    for name, ours in _LOWERED.items():
        call(_NL, "lowered", ours, name)(two(name))
    for name in ELEMENTWISE:
        kind, ours = "instruction", "ACTIVATION"
        if name in ("negative", "cos"):
            kind, ours = "lowered", "x times -1" if name == "negative" else "sin(x + pi/2)"
        call(_NL, kind, "RECIPROCAL" if name == "reciprocal" else ours, name)(one(name))
    for name in ("max", "min", "sum"):
        call(_NL, "instruction", "TENSOR_REDUCE", name)(over(name))
    call(_NL, "lowered", "TENSOR_REDUCE, TENSOR_SCALAR", "mean")(over("mean"))


_operators()


@call(_NL, "lowered", "max, exp with its sum, RECIPROCAL, multiply")
def softmax(trace: Trace, x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Array:
    unmasked(mask, "nl.softmax")
    a = on_chip(x, "nl.softmax")
    trace.note("nl.softmax: TENSOR_REDUCE, ACTIVATION exp with its sum, RECIPROCAL, multiply")

    def write(to: Array) -> None:
        rows = (a.partitions, 1)
        top, total, turned = (trace.temp(rows, "float32") for _ in range(3))
        arithmetic.reduce_into(trace, top, "max", a, [i for i, one in enumerate(a.layout.axes) if not one.par], True)
        powers = trace.temp(a.shape, "float32")
        arithmetic.activate(trace, powers, "exp", a, bias=top, reduce="add", store=total)
        trace.k.vector.reciprocal(turned.tile(), total.tile())
        arithmetic.binary_into(trace, to, "multiply", powers, turned)

    return trace.result(a.shape, dtype or a.dtype, write, (a,))
