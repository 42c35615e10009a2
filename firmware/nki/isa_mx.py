"""nki.isa: MX. Operands are packed formats, four numbers an element; scales are uint8 in the first four partitions of
each 32, slot 0 of the machine's own layout."""

from dataclasses import replace
from typing import Any

from firmware.nki import moves
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.nki.isa import unmasked
from firmware.nki.products import on_top, shapes_of
from firmware.nki.registry import call, need_dst
from firmware.nki.trace import Trace
from firmware.numbers import split_format
from firmware.views import KernelError, TileView
from rtl.contract.isa import MX_ROWS, block
from rtl.contract.memmap import Space

__all__ = []

_ISA = "nki.isa"
_FOUR = 4


def _need_mx(trace: Trace, what: str) -> None:
    if not trace.cfg.tensor.mx:
        raise KernelError(f"{what} needs an array with MX, and {trace.cfg.name} has none; trn3, trn4, full and tiny do")


def _scales(trace: Trace, scales: Any, operand: Array, what: str, kind: str) -> TileView:
    """A view of scales on the whole groups of partitions that the operand lies on. A tile of few partitions is one of
    all, so those that hold no scale are there, and nobody reads them."""
    x = on_chip(scales, f"the scales of {what}")
    if x.dtype != "uint8" or x.space != Space.SBUF or x.elements != operand.elements:
        raise KernelError(
            f"{what} takes scales of uint8 in SBUF, one for each of {operand.elements} columns, not {x!r}"
        )
    q = block(trace.cfg.partitions)
    first = operand.layout.p // q * q
    last = -(-(operand.layout.p + operand.partitions) // q) * q
    needed = operand.partitions // MX_ROWS if last - first == q else last - first - q + 1
    if x.layout.p != first or x.partitions < needed:
        raise KernelError(
            f"{what}: {operand.name}, {operand.partitions} partitions from {operand.layout.p}, has its scales on "
            f"{needed} or more from {first}, as in groups of {q}; {x.name} has {x.partitions} from {x.layout.p}"
        )
    view = x.tile()
    return replace(view, tile=view.tile.reinterpret(kind), start=first, partitions=last - first)


def _packed(x: Array, what: str) -> str:
    """The single format of an operand. KernelError unless it is packed by four."""
    base, count = split_format(x.format)
    if count != _FOUR or x.space != Space.SBUF:
        raise KernelError(f"{what} takes a packed format in SBUF, as nl.float8_e4m3fn_x4, not {x!r}")
    return base


@call(_ISA, "instruction", "QUANTIZE_MX, rule ocp; to float8 formats")
def quantize_mx(trace: Trace, dst: Any, src: Any, dst_scale: Any, *, mask: Any = None) -> None:
    unmasked(mask, "quantize_mx")
    _need_mx(trace, "quantize_mx")
    to, x = need_dst(dst, "quantize_mx"), on_chip(src, "quantize_mx")
    base = _packed(to, "quantize_mx")
    if base == "e2m1":
        raise KernelError("quantize_mx writes nl.float8_e4m3fn_x4 and nl.float8_e5m2_x4, and no FP4")
    if (x.partitions, x.elements) != (to.partitions, _FOUR * to.elements):
        raise KernelError(
            f"quantize_mx of {x.shape} gives {x.partitions} x {x.elements // _FOUR}, and dst is {to.shape}"
        )
    if x.space == Space.PSUM:
        trace.note("quantize_mx of PSUM: copied to SBUF")
        x = moves.to_sbuf(trace, x, x.dtype)
    packed = to.tile()
    if len(packed.dims) != 1 or packed.dims[0][0] != 1:
        raise KernelError(f"quantize_mx writes neighbours in one row, and {to.name} is a part with steps")
    single = replace(packed, tile=packed.tile.reinterpret(base), dims=((1, _FOUR * to.elements),))
    trace.k.vector.quantize_mx(single, x.tile(), _scales(trace, dst_scale, to, "quantize_mx", "uint8"))


@call(_ISA, "instruction", "LOAD_STATIONARY, MULTIPLY_MOVING with scales")
def nc_matmul_mx(
    trace: Trace, dst: Any, stationary: Any, moving: Any, stationary_scale: Any, moving_scale: Any, *,
    accumulate: Any = None, mask: Any = None,
) -> None:  # fmt: skip
    what = "nc_matmul_mx"
    unmasked(mask, what)
    _need_mx(trace, what)
    to, left, right = need_dst(dst, what), on_chip(stationary, what), on_chip(moving, what)
    for x in (left, right):
        _packed(x, what)
    shapes_of(trace, to, left, right, what)
    again = on_top(to, accumulate, what)
    scales = [
        _scales(trace, s, x, what, "e8m0") for s, x in ((stationary_scale, left), (moving_scale, right))
    ]  # fmt: skip
    rounding = "bf16" if to.dtype == "bfloat16" else "fp32"
    trace.k.tensor.load(left.tile(), scales[0])
    trace.k.tensor.matmul(right.tile(), to.tile(), scales[1], accumulate=again, rounding=rounding)
    moves.written(to)
    trace.macs += _FOUR * left.partitions * left.elements * right.elements
