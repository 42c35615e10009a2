"""nki.language: index arrays, loops, grids."""

from typing import Any

import numpy as np

from firmware.nki import moves
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.nki.isa import unmasked
from firmware.nki.operators import name_of_op
from firmware.nki.registry import call
from firmware.nki.trace import ParDim, Trace
from firmware.views import KernelError

__all__ = ["arange", "par_dim"]

_NL = "nki.language"


@call(_NL, "built", "an index array")
def arange(trace: Trace, *args: Any) -> np.ndarray:
    return np.arange(*(int(a) for a in args))


@call(_NL, "built", "the axis of partitions")
def par_dim(trace: Trace, value: Any) -> ParDim:
    return ParDim(value)


@call(_NL, "built", "a slice")
def ds(trace: Trace, start: Any, size: Any) -> slice:
    return slice(int(start), int(start) + int(size))


def _ranges() -> None:
    def run(trace: Trace, *args: Any, **unused: Any) -> range:
        return range(*(int(a) for a in args))

    for name in ("affine_range", "sequential_range", "static_range"):
        call(_NL, "built", "a loop that is unrolled", name)(run)


_ranges()


@call(_NL, "lowered", "an assignment of it adds, but in the first iteration of the loops")
def loop_reduce(trace: Trace, x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None) -> Array:
    unmasked(mask, "nl.loop_reduce")
    if name_of_op(op) not in ("add", "sum"):
        raise KernelError(f"nl.loop_reduce adds here, and does not {name_of_op(op)}")
    a, later = on_chip(x, "nl.loop_reduce"), any(int(i) > 0 for i in loop_indices)
    write = lambda to: moves.copy_into(trace, to, a)  # noqa: E731
    return trace.result(a.shape, dtype or a.dtype, write, (a,), sums=later)


@call(_NL, "built", "the instance of a grid, which run in turn")
def program_id(trace: Trace, axis: int) -> int:
    return trace.program_ids[axis] if axis < len(trace.program_ids) else 0


@call(_NL, "built", "the size of a grid")
def num_programs(trace: Trace, axes: Any = None) -> Any:
    if axes is None:
        return int(np.prod(trace.grid, dtype=int))
    many = [axes] if isinstance(axes, int) else list(axes)
    sizes = tuple(trace.grid[a] if a < len(trace.grid) else 1 for a in many)
    return sizes[0] if isinstance(axes, int) else sizes


@call(_NL, "built", "the size of a grid")
def program_ndim(trace: Trace) -> int:
    return len(trace.grid)
