"""Products and transposes of the tensor engine."""

from functools import partial
from typing import TYPE_CHECKING

from firmware.nki import moves
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.views import KernelError
from rtl.contract.memmap import Space

if TYPE_CHECKING:
    from firmware.nki.trace import Trace

__all__ = ["double_row", "matmul", "multiply", "on_top", "shapes_of", "transpose_into"]

_TURNED = ("fp32", "bf16")


def multiply(trace: "Trace", dst: Array, stationary: Array, moving: Array, accumulate: bool | None = None) -> None:
    """dst[M, N] = stationary[K, M]^T moving[K, N]; on top of what PSUM holds unless nothing was written there yet."""
    operands = []
    for what, x in (("stationary", stationary), ("moving", moving)):
        found = on_chip(x, f"the {what} operand of nc_matmul")
        if found.space == Space.PSUM:
            trace.note("an operand of nc_matmul in PSUM: copied to SBUF")
            found = moves.to_sbuf(trace, found, found.dtype)
        operands.append(found)
    left, right = operands
    shapes_of(trace, dst, left, right, "nc_matmul")
    again = on_top(dst, accumulate, "nc_matmul")
    rounding = "bf16" if dst.dtype == "bfloat16" else "fp32"
    trace.k.tensor.load(left.tile())
    trace.k.tensor.matmul(right.tile(), dst.tile(), accumulate=again, rounding=rounding)
    moves.written(dst)
    trace.macs += left.partitions * left.elements * right.elements


def double_row(trace: "Trace", dst: Array, left: Array, right: Array, accumulate: bool | None, mode: object) -> None:
    """dst[M, N] = the sum over K and 2 of left[K, 2, M] right[K, 2, N]: two products in FP32, the second on top."""
    if mode != "double_row":
        raise KernelError(f"nc_matmul takes perf_mode none or double_row here, not {mode}")
    if any(len(x.shape) != 3 or x.shape[1] != 2 for x in (left, right)):
        raise KernelError(
            f"nc_matmul with double_row takes [K, 2, M] and [K, 2, N], not {left.shape} and {right.shape}"
        )
    trace.note("nc_matmul with double_row: two products")
    multiply(trace, dst, left[:, 0], right[:, 0], accumulate)
    multiply(trace, dst, left[:, 1], right[:, 1], True)


def shapes_of(trace: "Trace", dst: Array, left: Array, right: Array, what: str) -> None:
    """KernelError unless dst[M, N] in PSUM takes left[K, M]^T right[K, N], and the array them."""
    if dst.space != Space.PSUM:
        raise KernelError(f"{what} writes to PSUM; {dst.name} lies in {dst.space.name}")
    shapes = f"{what} of stationary {left.shape}, moving {right.shape} and dst {dst.shape}"
    if left.partitions != right.partitions:
        raise KernelError(f"{shapes}: both operands have the same partitions, those that are summed over")
    if (dst.partitions, dst.elements) != (left.elements, right.elements):
        raise KernelError(f"{shapes}: dst is [{left.elements}, {right.elements}], the operands' free axes")
    size = trace.cfg
    if left.elements > size.tensor.cols or right.elements > size.tensor.moving_max:
        raise KernelError(
            f"{shapes}: {size.name} takes at most {size.tensor.cols} stationary columns "
            f"(nl.tile_size.gemm_stationary_fmax) and {size.tensor.moving_max} moving ones (gemm_moving_fmax)"
        )


def on_top(dst: Array, accumulate: bool | None, what: str) -> bool:
    """Whether a product adds to what PSUM holds: as asked for, else if something was written there."""
    if accumulate is not None:
        return bool(accumulate)
    there = dst.place.written & dst.offsets()
    if there and len(there) < dst.elements:
        raise KernelError(
            f"{what} to {dst.name}: {len(there)} of the {dst.elements} sums of a partition were written before; "
            "accumulate= says whether it adds to them"
        )
    return bool(there)


def transpose_into(trace: "Trace", dst: Array, x: Array) -> None:
    """dst[F, P] = x[P, F]^T through the array."""
    source = on_chip(x, "a transpose")
    if source.space == Space.PSUM:
        source = moves.to_sbuf(trace, source, source.dtype)
    if source.format not in _TURNED:
        trace.note(f"a transpose of {source.format}: copied to fp32 first")
        source = moves.to_sbuf(trace, source, "float32")
    if (dst.partitions, dst.elements) != (source.elements, source.partitions):
        raise KernelError(f"a transpose of {source.shape} has shape {source.shape[::-1]}, and {dst.name} {dst.shape}")
    target = dst
    if dst.space != Space.PSUM:
        trace.note("a transpose to SBUF: by way of PSUM")
        target = trace.temp((source.elements, source.partitions), source.dtype, Space.PSUM)
    trace.k.tensor.transpose(source.tile(), target.tile())
    moves.written(target)
    if target is not dst:
        moves.copy_into(trace, dst, target)


def matmul(trace: "Trace", x: Array, y: Array, transpose_x: bool) -> Array:
    """A new array in PSUM: x y, or x^T y; K in pieces of the partitions."""
    if len(x.shape) != 2 or len(y.shape) != 2:
        raise KernelError(f"nl.matmul takes two axes, not the shapes {x.shape} and {y.shape}")
    m, n = x.shape[1 if transpose_x else 0], y.shape[1]
    if x.shape[0 if transpose_x else 1] != y.shape[0]:
        raise KernelError(f"nl.matmul of {x.shape}{' transposed' if transpose_x else ''} and {y.shape}: K differs")

    def write(dst: Array, accumulate: bool | None = False) -> None:
        left = x
        if not transpose_x:
            trace.note("nl.matmul: x is transposed by the tensor engine")
            left = trace.temp((x.shape[1], x.shape[0]), x.dtype)
            transpose_into(trace, left, x)
        size = trace.cfg.tensor.moving_max
        for first in range(0, n, size):
            at = slice(first, min(first + size, n))
            multiply(trace, dst[:, at], left, y[:, at], accumulate)

    added = partial(write, accumulate=None)
    return trace.result((m, n), "float32", write, (x, y), space=Space.PSUM, product=added)
