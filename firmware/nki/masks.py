"""Masks of calls, known when the kernel is built: boxes from the first element on, and others."""

from typing import TYPE_CHECKING, Any

import numpy as np

from firmware.nki import moves
from firmware.nki.array import Array
from firmware.nki.axes import Layout
from firmware.nki.dtypes import dtype_of
from firmware.views import KernelError

if TYPE_CHECKING:
    from firmware.nki.trace import Trace

__all__ = ["box_of", "cut", "mask_of", "masked_copy"]


def mask_of(mask: Any, shape: tuple[int, ...], what: str) -> np.ndarray | None:
    """A mask of a shape; None if it leaves nothing out. KernelError if it does not fit, or depends on arrays."""
    if mask is None:
        return None
    if isinstance(mask, Array):
        raise KernelError(f"the mask of {what} is an array; a mask is of index arrays, and nl.where takes an array")
    try:
        chosen = np.broadcast_to(np.asarray(mask, bool), shape)
    except ValueError:
        raise KernelError(f"the mask of {what} has shape {np.shape(mask)}, and {what} {shape}") from None
    return None if chosen.all() else chosen


def box_of(chosen: np.ndarray) -> tuple[int, ...] | None:
    """How many elements of each axis a mask leaves, if they are those from the first on."""
    axes = range(chosen.ndim)
    counts = tuple(int(chosen.any(axis=tuple(i for i in axes if i != axis)).sum()) for axis in axes)
    box = np.zeros(chosen.shape, bool)
    box[tuple(slice(0, n) for n in counts)] = True
    return counts if np.array_equal(box, chosen) else None


def cut(x: Array, counts: tuple[int, ...]) -> Array:
    """The first `counts` elements of each axis."""
    layout = x.layout.cut(counts)
    layout.check(x.name)
    return x.with_layout(Layout(layout.p, layout.f, layout.axes))


def masked_copy(trace: "Trace", dst: Array, value: Array, chosen: np.ndarray) -> None:
    """dst = value where the mask is, elsewhere it stays: a copy of a box, else COPY_PREDICATED."""
    if dst.size != value.size:
        raise KernelError(f"{dst.name} of shape {dst.shape} cannot hold the shape {value.shape} of {value.name}")
    if dst.shape != value.shape:
        value, chosen = value.reshape(dst.shape), chosen.reshape(dst.shape)
    counts = box_of(chosen)
    if counts is not None:
        if 0 not in counts:
            moves.copy_into(trace, cut(dst, counts), cut(value, counts))
        return
    if not dst.on_chip or not dst.layout.axes[0].par:
        raise KernelError(f"the mask of what goes to {dst.name} is no box from the first element on")
    trace.note("a mask that is no box: COPY_PREDICATED by a constant array")
    source = moves.to_sbuf(trace, value, value.dtype)
    mask = trace.constant(chosen.astype(np.float32), dtype_of("float32"))
    for to, where, at in moves.parts(dst, mask, source):
        trace.k.vector.copy_predicated(to.tile(), where.tile(), at.tile())
    moves.written(dst)
