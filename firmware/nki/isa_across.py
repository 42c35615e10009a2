"""nki.isa and nki.language: what crosses partitions or sums copies; lowered to copies, products and sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from firmware.nki import arithmetic, moves, products
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.nki.dtypes import dtype_of
from firmware.nki.isa import unmasked
from firmware.nki.operators import name_of_op
from firmware.nki.registry import call, need_dst
from firmware.nki.trace import Trace
from firmware.views import KernelError
from rtl.contract.isa import block
from rtl.contract.memmap import Space

__all__ = ["partition_sums"]

_ISA = "nki.isa"
_NL = "nki.language"
_KEEP = 255  # an entry of a shuffle's mask that leaves its partition


@call(_ISA, "instruction", "SHUFFLE; of other than whole blocks copies, one for neighbours in the mask")
def nc_stream_shuffle(
    trace: Trace, dst: Any, src: Any, shuffle_mask: Any, *, dtype: Any = None, mask: Any = None
) -> Any:  # fmt: skip
    unmasked(mask, "nc_stream_shuffle")
    x = on_chip(src, "nc_stream_shuffle")
    to = trace.new(x.shape, dtype or x.dtype) if dst is None else on_chip(dst, "nc_stream_shuffle")
    q = block(trace.cfg.partitions)
    entries = [None if int(m) == _KEEP else int(m) for m in shuffle_mask]
    if len(entries) != q or any(m is not None and not 0 <= m < q for m in entries):
        raise KernelError(f"shuffle_mask has {q} entries, each 0 to {q - 1}, or 255 to leave a partition: {entries}")
    if x.space == Space.PSUM:
        x = moves.to_sbuf(trace, x, x.dtype)
    whole = all(a.layout.p % q == 0 and a.partitions % q == 0 and not moves.repeated(a) for a in (x, to))
    if whole and x.partitions == to.partitions and x.format == to.format and to.space == Space.SBUF:
        trace.k.vector.shuffle(to.tile(), x.tile(), entries)
    else:
        trace.note("nc_stream_shuffle of other than whole blocks: copies")
        _by_copies(trace, to, x, entries)
    moves.written(to)
    return to if dst is None else None


def _by_copies(trace: Trace, to: Array, x: Array, entries: Sequence[int | None]) -> None:
    q = len(entries)
    if (
        to.place is x.place
        and to.layout.p <= x.layout.p + x.partitions - 1
        and x.layout.p < to.layout.p + to.partitions
    ):
        kept = trace.temp(x.shape, x.dtype)  # a copy, for what is written may be read later
        moves.copy_into(trace, kept, x)
        x = kept
    for first in range(0, to.partitions, q):
        rows = range(first, min(first + q, to.partitions))
        source = first if x.partitions > q else 0
        for low, count, start, step in _runs([entries[row - first] for row in rows]):
            if source + start + step * (count - 1) >= x.partitions:
                raise KernelError(f"shuffle_mask asks {x.name} for partition {source + start} of {x.partitions}")
            part = x[source + start : source + start + (count if step else 1)]
            moves.copy_into(trace, to[first + low : first + low + count], part if step else _wide(trace, part, count))


def _wide(trace: Trace, part: Array, count: int) -> Array:
    return part if count == 1 else moves.spread(trace, part.broadcast_to((count, *part.shape[1:])), count)


def _runs(entries: Sequence[int | None]) -> list[tuple[int, int, int, int]]:
    """(first, count, source, step 0 or 1) of neighbours in a mask."""
    found: list[tuple[int, int, int, int]] = []
    for at, entry in enumerate(entries):
        if entry is None:
            continue
        if found:
            low, count, start, step = found[-1]
            if low + count == at and count == 1 and entry - start in (0, 1):
                found[-1] = (low, 2, start, entry - start)
                continue
            if low + count == at and entry == start + step * count:
                found[-1] = (low, count + 1, start, step)
                continue
        found.append((at, 1, entry, 0))
    return found


@call(_ISA, "lowered", "DMA of each source, TENSOR_SCALAR by its scale unless that is 1, sums in FP32, DMA")
def dma_compute(
    trace: Trace, dst: Any, srcs: Any, scales: Any = None, reduce_op: Any = "add", *, unique_indices: bool = True,
    mask: Any = None,
) -> None:  # fmt: skip
    unmasked(mask, "dma_compute")
    to, sources = need_dst(dst, "dma_compute"), list(srcs)
    factors = [1.0] * len(sources) if scales is None else [float(one) for one in scales]
    if name_of_op(reduce_op) != "add" or not sources or len(factors) != len(sources):
        raise KernelError("dma_compute adds its sources, at least one, each with a scale")
    trace.note("dma_compute: copies, scales and sums in SBUF")
    rows = trace.cfg.partitions
    for first in range(0, to.shape[0], rows):
        at = slice(first, min(first + rows, to.shape[0]))
        total = trace.temp((at.stop - first, *to.shape[1:]), "float32")
        for number, (source, factor) in enumerate(zip(sources, factors, strict=True)):
            one = trace.temp(total.shape, "float32") if number else total
            moves.copy_into(trace, one, source[at])
            if factor != 1:
                arithmetic.binary_into(trace, one, "multiply", one, factor)
            if number:
                arithmetic.binary_into(trace, total, "add", total, one)
        moves.copy_into(trace, to[at], total)


def partition_sums(trace: Trace, dst: Array, x: Array) -> None:
    """dst[1, F] = the sum over partitions of x[P, F], by products with ones in FP32."""
    trace.note("a sum over partitions: products with a column of ones")
    source = moves.to_sbuf(trace, x, "float32")
    flat = source.reshape((source.partitions, source.elements))
    ones = trace.temp((source.partitions, 1), "float32")
    moves.fill(trace, ones, 1.0)
    size = min(trace.cfg.tensor.moving_max, trace.cfg.psum.bank_bytes // 4)
    out, bank = dst.reshape((1, flat.elements)), trace.temp((1, min(size, flat.elements)), "float32", Space.PSUM)
    for first in range(0, flat.elements, size):
        at = slice(first, min(first + size, flat.elements))
        sums = bank[:, 0 : at.stop - first]
        products.multiply(trace, sums, ones, flat[:, at], accumulate=False)
        moves.copy_into(trace, out[:, at], sums)


@call(_ISA, "lowered", "sums: products with a column of ones in FP32")
def tensor_partition_reduce(
    trace: Trace, dst: Any, op: Any, data: Any, *, dtype: Any = None, mask: Any = None
) -> Any:  # fmt: skip
    unmasked(mask, "tensor_partition_reduce")
    x = on_chip(data, "tensor_partition_reduce")
    if name_of_op(op) not in ("add", "sum"):
        raise KernelError(f"tensor_partition_reduce adds here, and does not {name_of_op(op)}; transpose first")
    if dst is not None:
        partition_sums(trace, need_dst(dst, "tensor_partition_reduce"), x)
        return None
    shape = (1, *x.shape[1:])
    return trace.result(shape, dtype or x.dtype, lambda to: partition_sums(trace, to, x), (x,))


@call(_NL, "lowered", "values known when the kernel is built, in HBM, by DMA")
def shared_identity_matrix(trace: Trace, n: Any, dtype: Any = "uint8") -> Array:
    kind = dtype_of(dtype)
    found = trace.new((int(n), int(n)), kind)
    moves.copy_into(trace, found, trace.shared_values(np.eye(int(n), dtype=np.float32), kind))
    return found
