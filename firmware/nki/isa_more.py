"""nki.isa: constants by index, selections, statistics, searches, transposing copies."""

from typing import Any

import numpy as np

from firmware.nki import arithmetic, moves
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.nki.axes import Layout
from firmware.nki.dtypes import dtype_of
from firmware.nki.isa import unmasked
from firmware.nki.operators import ALU, name_of_op
from firmware.nki.registry import call, need_dst
from firmware.nki.trace import Trace
from firmware.views import KernelError

__all__ = ["selected"]

_ISA = "nki.isa"
_COMPARE = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}


def _grid(pattern: Any, partitions: int, offset: int, multiplier: int) -> np.ndarray:
    """offset + partition * multiplier + sum of step * index, for [step, count] pairs."""
    found = np.int64(offset) + np.arange(partitions) * int(multiplier)
    for step, count in pattern:
        found = found[..., None] + np.arange(int(count)) * int(step)
    return np.asarray(found)


def _put(trace: Trace, dst: Any, values: np.ndarray, dtype: Any) -> Any:
    kind = dtype_of(dtype)
    if dst is None:
        return trace.result(values.shape, kind, lambda to: moves.copy_into(trace, to, trace.constant(values, kind)), ())
    to = need_dst(dst, "iota")
    moves.copy_into(trace, to, trace.constant(values.reshape(to.shape), to.dtype))
    return None


@call(_ISA, "lowered", "values known when the kernel is built, in HBM, by DMA")
def iota(trace: Trace, *args: Any, dst: Any = None, pattern: Any = None, offset: int = 0, channel_multiplier: int = 0,
         expr: Any = None, dtype: Any = None, mask: Any = None) -> Any:  # fmt: skip
    unmasked(mask, "iota")
    trace.note("iota: a constant array")
    rest = list(args)
    if rest and isinstance(rest[0], Array):
        dst = rest.pop(0)
        pattern = rest.pop(0) if rest else pattern
    elif rest:
        expr = rest.pop(0)
        dtype = rest.pop(0) if rest else dtype
    if expr is not None:
        return _put(trace, dst, np.asarray(expr), dtype or "int32")
    to = need_dst(dst, "iota")
    if pattern is None:
        raise KernelError("iota is written iota(dst, pattern, offset=, channel_multiplier=), or iota(expr, dtype)")
    return _put(trace, to, _grid(pattern, to.partitions, offset, channel_multiplier), to.dtype)


def selected(trace: Trace, dst: Array, mask: np.ndarray | Array, x: Any, other: Any) -> None:
    """dst = x where mask, else other: SELECT, or a copy and COPY_PREDICATED."""
    chosen = mask if isinstance(mask, Array) else trace.constant(mask.astype(np.float32), dtype_of("float32"))
    if not isinstance(x, Array):
        moves.fill(trace, dst, x)
        turned = trace.temp(chosen.shape, "float32")
        arithmetic.binary_into(trace, turned, "equal", chosen, 0.0)
        chosen, x, other = turned, other, x
        if not isinstance(x, Array):
            temp = trace.temp(dst.shape, dst.dtype)
            moves.fill(trace, temp, x)
            x = temp
    chosen = arithmetic.wide(trace, chosen, x.shape)
    if isinstance(other, Array) and other.elements > 1:
        moves.copy_into(trace, dst, arithmetic.wide(trace, other, x.shape))
        trace.k.vector.copy_predicated(dst.tile(), chosen.tile(), x.tile())
    else:
        trace.k.vector.select(dst.tile(), chosen.tile(), x.tile(), arithmetic.column(trace, other, x.tile()))
    moves.written(dst)


@call(_ISA, "lowered", "SELECT by a mask known when the kernel is built")
def affine_select(
    trace: Trace, *args: Any, dst: Any = None, pred: Any = None, pattern: Any = None, offset: int = 0,
    channel_multiplier: int = 0, on_true_tile: Any = None, on_false_value: Any = None,
    cmp_op: Any = "greater_equal", dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    unmasked(mask, "affine_select")
    if len(args) == 3:  # the older style
        pred, on_true_tile, on_false_value = args
    elif args:
        names = ("dst", "pattern", "offset", "channel_multiplier", "on_true_tile", "on_false_value")
        more = dict(zip(names, args, strict=False))
        dst, pattern = more.get("dst"), more.get("pattern", pattern)
        offset, channel_multiplier = more.get("offset", offset), more.get("channel_multiplier", channel_multiplier)
        on_true_tile = more.get("on_true_tile", on_true_tile)
        on_false_value = more.get("on_false_value", on_false_value)
    if on_false_value is None:
        raise KernelError("affine_select needs on_true_tile and on_false_value")
    trace.note("affine_select: SELECT by a constant array")
    x = on_chip(on_true_tile, "affine_select")
    if pred is None:
        if pattern is None:
            raise KernelError("affine_select takes pred=, or pattern=, offset= and channel_multiplier=")
        name = name_of_op(cmp_op)
        if name not in _COMPARE:
            raise KernelError(f"affine_select compares by {', '.join(_COMPARE)}, not by {name}")
        pred = _COMPARE[name](_grid(pattern, x.partitions, offset, channel_multiplier), 0)
    chosen = np.broadcast_to(np.asarray(pred), x.shape) if np.asarray(pred).size != x.size else np.asarray(pred)
    chosen = np.ascontiguousarray(chosen).reshape(x.shape)
    if dst is not None:
        selected(trace, need_dst(dst, "affine_select"), chosen, x, on_false_value)
        return None
    return trace.result(x.shape, dtype or x.dtype, lambda to: selected(trace, to, chosen, x, on_false_value), (x,))


@call(_ISA, "instruction", "SELECT; COPY_PREDICATED if on_false is an array")
def select_reduce(
    trace: Trace, dst: Any, predicate: Any, on_true: Any, on_false: Any, *, reduce_res: Any = None,
    reduce_op: Any = None, reduce_cmd: Any = None, reverse_pred: bool = False, engine: Any = None, dtype: Any = None,
    mask: Any = None,
) -> None:  # fmt: skip
    unmasked(mask, "select_reduce")
    if dst is None:
        raise KernelError("select_reduce is written select_reduce(dst, predicate, on_true, on_false)")
    to, chosen = need_dst(dst, "select_reduce"), on_chip(predicate, "select_reduce")
    if reverse_pred:
        turned = trace.temp(chosen.shape, "float32")
        arithmetic.binary_into(trace, turned, "equal", chosen, 0.0)
        chosen = turned
    selected(trace, to, chosen, on_true, on_false)
    if reduce_res is not None:
        trace.note("select_reduce with reduce_res: TENSOR_REDUCE behind it")
        over = [i for i, axis in enumerate(to.layout.axes) if not axis.par]
        name = name_of_op("max" if reduce_op is None else reduce_op)
        arithmetic.reduce_into(trace, need_dst(reduce_res, "select_reduce"), name, to, over)


@call(_ISA, "instruction", "COPY_PREDICATED")
def tensor_copy_predicated(
    trace: Trace, *, dst: Any, src: Any, predicate: Any, reverse_pred: bool = False, mask: Any = None
) -> None:
    unmasked(mask, "tensor_copy_predicated")
    to, chosen = need_dst(dst, "tensor_copy_predicated"), on_chip(predicate, "tensor_copy_predicated")
    if reverse_pred:
        turned = trace.temp(chosen.shape, "float32")
        arithmetic.binary_into(trace, turned, "equal", chosen, 0.0)
        chosen = turned
    if not isinstance(src, Array):
        temp = trace.temp(to.shape, to.dtype)
        moves.fill(trace, temp, src)
        src = temp
    trace.k.vector.copy_predicated(to.tile(), chosen.tile(), src.tile())
    moves.written(to)


def _vector(name: str, ours: str, columns: int, kind: str = "") -> None:
    """An instruction of one source that gives `columns` elements."""

    def run(
        trace: Trace, dst: Any, data: Any = None, *, src: Any = None, dtype: Any = None, mask: Any = None
    ) -> Any:  # fmt: skip
        unmasked(mask, name)
        if data is None and src is None:  # the older style: the source alone
            dst, data = None, dst
        x = on_chip(data if src is None else src, name)
        method = getattr(trace.k.vector, name)
        if dst is not None:
            method(need_dst(dst, name).tile(), x.tile())
            return None
        shape = (x.partitions, columns)
        return trace.result(shape, dtype or "float32", lambda to: method(to.tile(), x.tile()), (x,))

    call(_ISA, "instruction", ours, name)(run)


_vector("bn_stats", "BN_STATS", 6)
_vector("bn_aggr", "BN_AGGR", 2)
_vector("max8", "MAX8", 8)


@call(_ISA, "instruction", "FIND_INDEX8")
def nc_find_index8(trace: Trace, dst: Any, data: Any, vals: Any, *, mask: Any = None, dtype: Any = None) -> Any:
    unmasked(mask, "nc_find_index8")
    x, values = on_chip(data, "nc_find_index8"), on_chip(vals, "nc_find_index8")
    if dst is not None:
        trace.k.vector.find_index8(need_dst(dst, "nc_find_index8").tile(), x.tile(), values.tile())
        return None
    write = lambda to: trace.k.vector.find_index8(to.tile(), x.tile(), values.tile())  # noqa: E731
    return trace.result((x.partitions, 8), dtype or "uint32", write, (x, values))


@call(_ISA, "instruction", "MATCH_REPLACE8")
def nc_match_replace8(
    trace: Trace, dst: Any, data: Any, vals: Any, imm: Any, *, dst_idx: Any = None, dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    unmasked(mask, "nc_match_replace8")
    x, values = on_chip(data, "nc_match_replace8"), on_chip(vals, "nc_match_replace8")

    def write(to: Array) -> None:
        if dst_idx is not None:
            trace.note("nc_match_replace8 with dst_idx: FIND_INDEX8 before it")
            trace.k.vector.find_index8(need_dst(dst_idx, "nc_match_replace8").tile(), x.tile(), values.tile())
        trace.k.vector.match_replace8(to.tile(), x.tile(), values.tile(), arithmetic.column(trace, imm, x.tile()))

    if dst is not None or dst_idx is not None:
        to = trace.new(x.shape, dtype or x.dtype) if dst is None else need_dst(dst, "nc_match_replace8")
        write(to)
        return to if dst is None else None
    return trace.result(x.shape, dtype or x.dtype, write, (x, values))


@call(_ISA, "instruction", "RANGE_SELECT, of FP32")
def range_select(
    trace: Trace, *, dst: Any = None, on_true_tile: Any, comp_op0: Any, comp_op1: Any, bound0: Any, bound1: Any,
    range_start: Any = 0.0, on_false_value: Any = None, reduce_op: Any = None, reduce_res: Any = None,
    reduce_cmd: Any = None, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    unmasked(mask, "range_select")
    if reduce_res is not None and (name_of_op(reduce_op) != "maximum" or reduce_cmd not in (None, "reset_reduce")):
        raise KernelError("range_select reduces by maximum, with reduce_cmd reset_reduce")
    x = on_chip(on_true_tile, "range_select")
    names = [ALU[name_of_op(op)].name.lower() for op in (comp_op0, comp_op1)]

    def write(to: Array) -> None:
        low, high = (arithmetic.column(trace, bound, x.tile()) for bound in (bound0, bound1))
        trace.k.vector.range_select(to.tile(), x.tile(), names[0], low, names[1], high, start=float(range_start))
        if reduce_res is not None:
            over = [i for i, axis in enumerate(to.layout.axes) if not axis.par]
            arithmetic.reduce_into(trace, need_dst(reduce_res, "range_select"), "max", to, over)

    if dst is not None:
        write(need_dst(dst, "range_select"))
        return None
    if reduce_res is not None:
        found = trace.new(x.shape, dtype or x.dtype)
        write(found)
        return found
    return trace.result(x.shape, dtype or x.dtype, write, (x,))


@call(_ISA, "lowered", "a DMA descriptor of single elements, from HBM")
def dma_transpose(
    trace: Trace, dst: Any, src: Any, *, axes: Any = None, mask: Any = None, dtype: Any = None, dge_mode: Any = None,
    oob_mode: Any = None, engine: Any = None,
) -> Any:  # fmt: skip
    unmasked(mask, "dma_transpose")
    if not isinstance(src, Array) or src.on_chip:
        raise KernelError("dma_transpose takes an array in HBM here; nc_transpose takes one in SBUF")
    trace.note("dma_transpose: a copy of single elements")
    order = [*range(src.ndim)][::-1] if axes is None else [int(axis) for axis in axes]
    if sorted(order) != [*range(src.ndim)]:
        raise KernelError(f"dma_transpose of {src.ndim} axes takes an order of them, not {tuple(order)}")
    if axes is None and src.ndim > 2:  # as there: the first with the last
        order = [src.ndim - 1, *range(1, src.ndim - 1), 0]
    turned = src.with_layout(Layout(src.layout.p, src.layout.f, tuple(src.layout.axes[i] for i in order)))
    if dst is not None:
        moves.copy_into(trace, need_dst(dst, "dma_transpose"), turned)
        return None
    return trace.result(turned.shape, src.dtype, lambda to: moves.copy_into(trace, to, turned), (src,))
