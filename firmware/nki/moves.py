"""Copies between HBM, SBUF and PSUM: DMA, engines, formats, partitions repeated."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firmware.nki.array import Array
from firmware.nki.axes import Axis, Layout, indexed, refined
from firmware.nki.dtypes import DType, dtype_of
from firmware.nki.memory import Blocks
from firmware.numbers import element_bytes
from firmware.views import BlockView, CopyView, KernelError, TileView
from rtl.contract.access_pattern import DIMENSIONS, start_partition_rule
from rtl.contract.memmap import Space

if TYPE_CHECKING:
    from firmware.nki.trace import Trace

__all__ = ["copy_into", "fill", "spread", "to_sbuf"]

_ROW_DIMENSIONS = "dimensions of rows"


def fill(trace: "Trace", dst: Array, value: Any) -> None:
    """dst = a number."""
    if not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
        raise KernelError(f"{dst.name} is set to {value!r}; it takes an array or a number")
    if isinstance(dst.place, Blocks):
        for i in range(dst.shape[0]):
            fill(trace, dst[i], value)
        return
    if dst.on_chip:
        for part in parts(dst):
            trace.k.vector.memset(part[0].tile(), float(value))
        written(dst)
        return
    axes = dst.layout.axes
    rows = min(axes[0].count, trace.cfg.partitions) if axes else 1
    stage = trace.temp((rows, *(a.count for a in axes[1:])), dst.dtype)
    trace.k.vector.memset(stage.tile(), float(value))
    for first in range(0, axes[0].count if axes else 1, rows):
        part = dst[first : min(first + rows, axes[0].count)] if axes else dst
        dma(trace, part, stage[0 : part.shape[0]] if axes else stage)


def written(dst: Array) -> None:
    """Remember that PSUM holds something that a product without `accumulate` would be added to."""
    if dst.space == Space.PSUM:
        dst.place.written |= dst.offsets()


def parts(*arrays: Array) -> list[tuple[Array, ...]]:
    """The same arrays in pieces whose free axes an instruction can describe."""
    if all(len(a.tile().dims) <= DIMENSIONS for a in arrays):
        return [arrays]
    free = [i for i, axis in enumerate(arrays[0].layout.axes) if not axis.par and axis.count > 1]
    if any(a.shape != arrays[0].shape for a in arrays):
        raise KernelError(f"{arrays[0].name} has more axes than the {DIMENSIONS} of an instruction")
    key: list[Any] = [slice(None)] * free[0]
    return [
        piece
        for i in range(arrays[0].shape[free[0]])
        for piece in parts(*(a.with_layout(indexed(a.layout, (*key, i), a.name)) for a in arrays))
    ]


def copy_into(trace: "Trace", dst: Array, src: Array, engine: str = "vector") -> None:
    """dst = src, converted. KernelError for shapes that do not match."""
    sizes = [tuple(n for n in x.shape if n != 1) for x in (dst, src)]
    if dst.size != src.size or (sizes[0] != sizes[1] and refined(dst.layout.axes, src.layout.axes) is None):
        raise KernelError(f"{dst.name} of shape {dst.shape} cannot hold the shape {src.shape} of {src.name}")
    if _overlap(dst, src):
        trace.note("a copy whose ends overlap: by way of another array")
        stage = trace.temp(_par_first(src), src.dtype, p=src.layout.p)
        copy_into(trace, stage, _par_front(src))
        src = _as(stage, src)
    if dst.on_chip and src.on_chip and _by_engine(trace, dst, src):
        same = len(dst.shape) == len(src.shape) and dst.shape == src.shape
        for part in parts(dst, src) if same else [(dst, src)]:
            if engine == "scalar":
                trace.k.scalar.tensor_copy(part[0].tile(), part[1].tile())
            else:
                trace.k.vector.copy(part[0].tile(), part[1].tile())
        written(dst)
        return
    if dst.format == src.format and Space.PSUM not in (dst.space, src.space):
        dma(trace, dst, src)
        return
    trace.note("a copy with a conversion, or from or to PSUM: DMA and an engine's copy")
    if src.on_chip and not repeated(src):
        stage = trace.temp(_par_first(src), dst.dtype, p=0)
        copy_into(trace, stage, _par_front(src))
        dma(trace, dst, _as(stage, src))
    elif dst.on_chip:
        stage = trace.temp(_par_first(dst), src.dtype, p=dst.layout.p)
        dma(trace, _as(stage, dst), src)
        copy_into(trace, _par_front(dst), stage)
    else:
        _through(trace, dst, src)


def _overlap(dst: Array, src: Array) -> bool:
    """Whether two different views of an array on the chip share elements."""
    if not dst.on_chip or dst.place is not src.place or dst.layout == src.layout:
        return False
    first, second = (range(x.layout.p, x.layout.p + x.partitions) for x in (dst, src))
    apart = first.stop <= second.start or second.stop <= first.start
    return not apart and bool(dst.offsets() & src.offsets())


def _through(trace: "Trace", dst: Array, src: Array) -> None:
    """A conversion from HBM to HBM, by rows."""
    if dst.shape != src.shape or not dst.shape:
        raise KernelError(f"{src.name} is converted from HBM to HBM in another shape; reshape it first")
    rows = trace.cfg.partitions
    for first in range(0, dst.shape[0], rows):
        at = slice(first, min(first + rows, dst.shape[0]))
        one = trace.temp((at.stop - first, *dst.shape[1:]), src.dtype)
        dma(trace, one, src[at])
        copy_into(trace, dst[at], one)


def _par_first(x: Array) -> tuple[int, ...]:
    return (x.partitions, *(axis.count for axis in x.free))


def _par_front(x: Array) -> Array:
    """The axis of partitions first."""
    par = x.par or Axis(1, 0, 0, True)
    return x.with_layout(Layout(x.layout.p, x.layout.f, (par, *x.free)))


def _as(stage: Array, like: Array) -> Array:
    """A staged array, partitions first, with its axes in the order of another."""
    free = iter(stage.free)
    axes = tuple(stage.layout.axes[0] if axis.par else next(free) for axis in like.layout.axes)
    return stage.with_layout(Layout(stage.layout.p, 0, axes))


def repeated(x: Array) -> bool:
    """Whether one partition stands for several."""
    par = x.par
    return par is not None and par.count > 1 and par.p == 0


def _by_engine(trace: "Trace", dst: Array, src: Array) -> bool:
    total = trace.cfg.partitions
    starts = all(start_partition_rule(x.layout.p, x.partitions, total) for x in (dst, src))
    return dst.partitions == src.partitions and not repeated(src) and starts


def spread(trace: "Trace", x: Array, partitions: int) -> Array:
    """An array of one partition on `partitions` of them, by a copy that reads it again."""
    trace.note("one partition broadcast to several: DMA with step 0")
    source = to_sbuf(trace, x.with_layout(Layout(x.layout.p, x.layout.f, (Axis(1, 0, 0, True), *x.free))))
    found = trace.temp((partitions, *(axis.count for axis in source.free)), source.dtype)
    par = Axis(partitions, 0, 0, True)
    dma(trace, found, source.with_layout(Layout(source.layout.p, source.layout.f, (par, *source.free))))
    return found


def to_sbuf(trace: "Trace", x: Array, dtype: Any = None) -> Array:
    """The array, or a copy of it in SBUF."""
    if x.space == Space.SBUF and (dtype is None or x.dtype == dtype):
        return x
    found = trace.temp(x.shape, dtype or ("float32" if x.space == Space.PSUM else x.dtype))
    copy_into(trace, found, x)
    return found


def _in_words(x: Array, word: DType) -> Array:
    """The same bytes as elements of a format as wide or narrower. KernelError if they are wider."""
    ratio, rest = divmod(element_bytes(x.format), element_bytes(word.format))
    if rest:
        raise KernelError(f"{x.name} of {x.dtype} is seen as {word}, which is wider")
    here = x.with_layout(x.layout)
    axes = tuple(replace(axis, f=axis.f * ratio) for axis in here.layout.axes)
    inner = (Axis(ratio, 0, 1),) if ratio > 1 else ()
    layout = Layout(here.layout.p, here.layout.f * ratio, (*axes, *inner))
    return Array(x.trace, x.name, x.space, word, layout, here.place)


def dma(trace: "Trace", dst: Array, src: Array) -> None:
    """Copy by DMA, same format, in as many descriptors as its axes need."""
    if not dst.on_chip and dst.place.data is not None:
        raise KernelError(
            f"the kernel writes to its argument {dst.name}; it returns what nl.ndarray(..., buffer=nl.shared_hbm) makes"
        )
    words = {x.place.dtype for x in (dst, src) if not x.on_chip and x.place.dtype != x.format}
    if words:  # an .ap view of another dtype
        dst, src = (_in_words(x, dtype_of(min(words, key=element_bytes))) for x in (dst, src))
    pair = refined(dst.layout.axes, src.layout.axes)
    if pair is None:
        raise KernelError(f"{dst.name} of shape {dst.shape} cannot hold the shape {src.shape} of {src.name}")
    for array in (dst, src):
        array.layout.check(array.name)
    _send(trace, (dst, pair[0], dst.layout.p, dst.layout.f), (src, pair[1], src.layout.p, src.layout.f))


_End = tuple[Array, list[Axis], int, int]


def _send(trace: "Trace", dst: _End, src: _End) -> None:
    on = [[axis.par and end[0].on_chip for axis in end[1]] for end in (dst, src)]
    order = sorted(range(len(dst[1])), key=lambda i: not (on[0][i] or on[1][i]))
    ends = [(array, [axes[i] for i in order], p, f) for array, axes, p, f in (dst, src)]
    try:
        trace.k.dma(_view(*ends[0]), _view(*ends[1]))
        return
    except KernelError as error:
        if _ROW_DIMENSIONS not in str(error) and "BlockView" not in str(error):
            raise
    axes = ends[0][1]
    at = min(range(len(axes)), key=lambda i: axes[i].count)
    for i in range(axes[at].count):
        one, two = (
            (array, a[:at] + a[at + 1 :], p + a[at].p * i * array.on_chip, f + a[at].f * i) for array, a, p, f in ends
        )
        _send(trace, one, two)


def _view(array: Array, axes: Sequence[Axis], p: int, f: int) -> CopyView:
    if not array.on_chip:
        return array.with_layout(Layout(0, f, tuple(axes))).hbm(axes)
    pars = [axis for axis in axes if axis.par]
    if [axis.par for axis in axes] != sorted((axis.par for axis in axes), reverse=True):
        raise KernelError(f"a copy of {array.name} would turn partitions into columns; nc_transpose does that")
    free = [axis for axis in axes if not axis.par]
    inner = pars[-1] if pars else Axis(1, 1, 0, True)
    one = Axis(1, 1, 0, True)
    blocks = pars[:-1] if inner.p == 1 or not pars else pars
    row = inner if inner.p == 1 else one
    first: TileView = array.with_layout(Layout(p, f, (row, *free))).tile(free)
    if not blocks:
        return first
    if len(blocks) > 1:
        raise KernelError(f"a copy of {array.name} needs BlockView axes")
    return BlockView(first, blocks[0].count, blocks[0].p)
