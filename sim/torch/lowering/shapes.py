"""Operators that move elements, or only name them anew."""

from collections.abc import Sequence
from typing import Any

from firmware.graph.ir import Value
from sim.torch.errors import Unsupported
from sim.torch.lowering.bounds import BITS
from sim.torch.lowering.builder import Builder
from sim.torch.lowering.registry import host, lower

__all__: list[str] = []


@lower(
    "aten.view.default aten.reshape.default aten._unsafe_view.default aten.unsqueeze.default aten.squeeze.default "
    "aten.squeeze.dim aten.squeeze.dims aten.flatten.using_ints",
    "reshape",
    BITS,
    moves=True,
)
def reshape(b: Builder, x: Value, *_: Any) -> Value:
    """The same elements in their order."""
    return b.reshape(x, b.shape)


@lower(
    "aten.clone.default aten.detach.default aten.alias.default aten.contiguous.default aten.lift_fresh_copy.default "
    "aten.lift_fresh.default",
    "nothing",
    BITS,
    moves=True,
)
def same(b: Builder, x: Value, **_: Any) -> Value:
    """The same value: nothing is written in place."""
    return b.reshape(x, b.shape)


@lower("aten.permute.default", "permute", BITS, moves=True)
def permute(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Axes in another order."""
    return b.permute(x, axes)


@lower("aten.transpose.int", "permute", BITS, moves=True)
def transpose(b: Builder, x: Value, first: int, second: int) -> Value:
    """Two axes change places."""
    if not x.shape:
        return x
    axes = list(range(len(x.shape)))
    axes[first], axes[second] = axes[second], axes[first]
    return b.permute(x, axes)


@lower("aten.t.default", "permute", BITS, moves=True)
def t(b: Builder, x: Value) -> Value:
    """Of at most two axes."""
    return b.permute(x, range(len(x.shape))[::-1]) if len(x.shape) == 2 else x


@lower("aten.expand.default", "expand", BITS, moves=True)
def expand(b: Builder, x: Value, size: Sequence[int], **_: Any) -> Value:
    """Axes of 1 repeated."""
    return b.expand(x, b.shape)


@lower("aten.repeat.default", "expand, reshape", BITS, moves=True)
def repeat(b: Builder, x: Value, times: Sequence[int]) -> Value:
    """Whole axes repeated."""
    whole = (1,) * (len(times) - len(x.shape)) + x.shape
    parts = b.reshape(x, [n for size in whole for n in (1, size)])
    return b.reshape(b.expand(parts, [n for pair in zip(times, whole) for n in pair]), b.shape)


@lower("aten.cat.default", "cat", BITS, moves=True)
def cat(b: Builder, tensors: Sequence[Value], axis: int = 0) -> Value:
    """One behind the other."""
    rank = len(b.shape)
    kept = [v for v in tensors if len(v.shape) == rank]  # torch skips an empty one of one axis
    inputs = {str(i): b.cast(v, b.dtype) for i, v in enumerate(kept)}
    return b.node("cat", inputs, b.shape, b.dtype, axis=axis % rank)


@lower("aten.stack.default", "reshape, cat", BITS, moves=True)
def stack(b: Builder, tensors: Sequence[Value], axis: int = 0) -> Value:
    """Along a new axis."""
    shape = list(b.shape)
    shape[axis] = 1
    return cat(b, [b.reshape(v, shape) for v in tensors], axis)


@lower("aten.slice.Tensor", "slice", BITS, moves=True)
def slice_(b: Builder, x: Value, axis: int = 0, start: Any = None, stop: Any = None, step: int = 1) -> Value:
    """As Python cuts."""
    axis %= len(x.shape)
    first, last, step = slice(start, stop, step).indices(x.shape[axis])
    return b.slice(x, axis, first, last, step)


@lower("aten.select.int", "slice, reshape", BITS, moves=True)
def select(b: Builder, x: Value, axis: int, place: int) -> Value:
    """One of an axis, which is gone then."""
    axis %= len(x.shape)
    place %= x.shape[axis]
    return b.reshape(b.slice(x, axis, place, place + 1), b.shape)


@lower("aten.split_with_sizes.default", "slice", BITS, moves=True)
def split_with_sizes(b: Builder, x: Value, sizes: Sequence[int], axis: int = 0) -> tuple[Value, ...]:
    """Parts of these sizes."""
    axis %= len(x.shape)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(b.slice(x, axis, start, start + size) for start, size in zip(starts, sizes))


@lower("aten.split.Tensor", "slice", BITS, moves=True)
def split(b: Builder, x: Value, size: int, axis: int = 0) -> tuple[Value, ...]:
    """Parts of one size, and what is left."""
    total = x.shape[axis]
    return split_with_sizes(b, x, [min(size, total - at) for at in range(0, total, size)], axis)


@lower("aten.unbind.int", "slice, reshape", BITS, moves=True)
def unbind(b: Builder, x: Value, axis: int = 0) -> tuple[Value, ...]:
    """Each of an axis."""
    axis %= len(x.shape)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return tuple(b.reshape(b.slice(x, axis, i, i + 1), shape) for i in range(x.shape[axis]))


@lower(
    "aten.full.default aten.full_like.default aten.zeros_like.default aten.ones_like.default aten.zeros.default "
    "aten.ones.default aten.new_zeros.default aten.new_ones.default aten.new_full.default "
    "aten.scalar_tensor.default",
    "fill; known when a graph is compiled, it is a constant",
    BITS,
    moves=True,
)
def full(b: Builder, *args: Any, **_: Any) -> Value:
    """One number everywhere."""
    name = b.label.split(".")[1]
    number = float("ones" in name) if name.startswith(("zeros", "ones", "new_zeros", "new_ones")) else args[-1]
    if isinstance(number, (Value, list, tuple)):
        raise Unsupported("its number is none that is known")
    return b.node("fill", {}, b.shape, b.dtype, scalar=float(number))


host("aten.embedding.default", "rows of a table by number")
host("aten.index.Tensor aten.index_select.default aten.gather.default", "elements by number")
host("aten.arange.default aten.arange.start aten.arange.start_step aten.lift_fresh_copy.default", "whole numbers")
host("aten.topk.default aten.sort.default aten.argmax.default", "places of elements")
