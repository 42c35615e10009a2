"""Elements from one place of HBM to another: no engine touches them."""

from itertools import product

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.graph.pieces import merged

__all__ = ["copy"]

DIMENSIONS = 3  # of rows in a descriptor
ROW_ELEMENTS = 1 << 15


def copy(e: Emitter, out: Array, source: Array) -> None:
    """out = source, same shape and format."""
    dims = merged(out.shape, (out.strides, source.strides)) or [(1, (1, 1))]
    together = DIMENSIONS + (dims[-1][1] == (1, 1))
    outer, inner = dims[:-together], dims[-together:]
    if dims[-1][1] == (1, 1) and dims[-1][0] > ROW_ELEMENTS:  # a row that is cut takes a dimension
        outer, inner = dims[: -together + 1], dims[-together + 1 :]
        if len(dims) < together:
            outer, inner = [], dims
    shape = [n for n, _ in inner]
    for place in product(*(range(n) for n, _ in outer)):
        at = [sum(i * s[side] for i, (_, s) in zip(place, outer, strict=True)) for side in range(2)]
        ends = [array.strided(at[side], shape, [s[side] for _, s in inner]) for side, array in enumerate((out, source))]
        e.k.dma(ends[0].view(), ends[1].view())
