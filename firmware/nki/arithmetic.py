"""Operators of two arrays, functions, reductions: which instruction, and what is lowered to several."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from firmware.nki import moves
from firmware.nki.array import Array
from firmware.nki.axes import Axis, Layout
from firmware.nki.operators import ALU, FUNCTIONS, REDUCTIONS
from firmware.views import KernelError, TileView
from rtl.contract.isa import Function
from rtl.contract.memmap import Space

if TYPE_CHECKING:
    from firmware.nki.trace import Trace

__all__ = ["activate", "binary", "binary_into", "column", "reduce_into", "shape_of", "unary_into", "wide"]

_HALF_PI = float(np.pi / 2)
_POWERS = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", 1.0: "copy"}


def is_number(x: Any) -> bool:
    """A number that is known when the kernel is built."""
    return isinstance(x, (int, float, np.integer, np.floating, np.bool_))


def on_chip(x: Any, what: str) -> Array:
    """The operand `what`. KernelError unless it is an array in SBUF or PSUM."""
    if not isinstance(x, Array):
        raise KernelError(f"{what} takes an array, not {x!r}")
    if not x.on_chip:
        raise KernelError(f"{what} reads {x.name}, which lies in HBM; nl.load or nisa.dma_copy brings it to SBUF")
    return x


def shape_of(a: Any, b: Any) -> tuple[int, ...]:
    """The shape of an operator of two operands. KernelError if they do not go together."""
    if is_number(a) or is_number(b):
        return b.shape if is_number(a) else a.shape
    one, two = a.shape, b.shape
    if len(one) != len(two):
        (few, _), (many, _) = sorted(((a, one), (b, two)), key=lambda x: len(x[1]))
        ones = (1,) * abs(len(one) - len(two))
        padded = (*few.shape, *ones) if few.par is few.layout.axes[0] else (*ones, *few.shape)
        one, two = padded, many.shape
    if any(m != n and 1 not in (m, n) for m, n in zip(one, two, strict=True)):
        raise KernelError(f"{a.name} of shape {a.shape} and {b.name} of shape {b.shape} do not go together")
    return tuple(max(m, n) for m, n in zip(one, two, strict=True))


def wide(trace: "Trace", x: Array, shape: Sequence[int]) -> Array:
    """The array repeated to a shape; partitions are repeated by a copy."""
    found = x if x.shape == tuple(shape) else x.broadcast_to(tuple(shape))
    if not moves.repeated(found):
        return found
    made = moves.spread(trace, found, found.partitions)
    return made.with_layout(Layout(made.layout.p, made.layout.f, _ordered(found, made)))


def _ordered(like: Array, made: Array) -> tuple[Axis, ...]:
    free = iter(made.free)
    return tuple(made.layout.axes[0] if axis.par else next(free) for axis in like.layout.axes)


def column(trace: "Trace", value: Any, beside: TileView) -> float | TileView:
    """A number, or one FP32 column of SBUF on the partitions of another operand."""
    if is_number(value):
        return float(value)
    x = on_chip(value, "an operand for each partition")
    if x.elements != 1:
        raise KernelError(f"{x.name} of shape {x.shape} is no number for each partition")
    if (x.partitions == 1 and beside.partitions > 1) or moves.repeated(x):
        x = moves.spread(trace, x, beside.partitions)
    if x.space == Space.SBUF and x.format == "fp32" and x.layout.p == beside.start:
        return x.tile()
    trace.note("an operand for each partition that is no FP32 column beside the data: copied")
    one = trace.temp((beside.start + beside.partitions, 1), "float32")
    one = one[beside.start : beside.start + beside.partitions]
    moves.copy_into(trace, one, x)
    return one.tile()


def binary(trace: "Trace", name: str, a: Any, b: Any, dtype: Any = None) -> Array:
    """A new array: a op b. The dtype is FP32 if an operand's is, else that of the first array."""
    arrays = [x for x in (a, b) if isinstance(x, Array)]
    if not arrays:
        raise KernelError(f"nl.{name} takes an array, not {a!r} and {b!r}")
    for x in (a, b):
        if not is_number(x):
            on_chip(x, f"nl.{name}")
    kinds = [x.dtype for x in arrays]
    kind = dtype or ("float32" if "float32" in kinds else kinds[0])
    return trace.result(shape_of(a, b), kind, lambda dst: binary_into(trace, dst, name, a, b), arrays)


def binary_into(trace: "Trace", dst: Array, name: str, a: Any, b: Any) -> None:
    """dst = a op b."""
    if name == "divide":
        _divide(trace, dst, a, b)
        return
    if name == "power":
        _power(trace, dst, a, b)
        return
    if name in ("max", "min"):
        name = f"{name}imum"
    if name not in ALU:
        raise KernelError(f"no instruction has an operator {name} of two operands; there are {', '.join(ALU)}")
    shape = shape_of(a, b)
    if not is_number(a) and not is_number(b) and a.space == b.space == Space.PSUM:
        trace.note("two operands in PSUM: one is copied to SBUF")
        b = moves.to_sbuf(trace, b)
    swap = is_number(a) or (not is_number(b) and a.elements == 1 and b.size == int(np.prod(shape)) != a.size)
    x, y = (b, a) if swap else (a, b)
    x = wide(trace, x, shape)
    k, alu = trace.k.vector, ALU[name].name.lower()
    bits = name.startswith("bitwise") or name.endswith("shift")
    if is_number(y) or (y.elements == 1 and x.elements > 1 and not bits):
        for at, to in moves.parts(x, _like(dst, x)):
            one = int(y) if bits else column(trace, y, at.tile())
            k.tensor_scalar(to.tile(), at.tile(), alu, one, reverse0=swap)
    else:
        y = wide(trace, y, shape)
        for at, beside, to in moves.parts(x, y, _like(dst, x)):
            k.tensor_tensor(to.tile(), at.tile(), alu, beside.tile(), reverse=swap)
    moves.written(dst)


def _like(dst: Array, x: Array) -> Array:
    """The destination with the shape of a source, if it has as many elements."""
    if dst.shape == x.shape or dst.size != x.size:
        return dst
    try:
        return dst.reshape(x.shape)
    except KernelError:
        return dst


def _divide(trace: "Trace", dst: Array, a: Any, b: Any) -> None:
    if is_number(b):
        if float(b) == 0:
            raise KernelError("nl.divide by the number 0")
        trace.note("divide by a number: multiply by its FP32 reciprocal")
        binary_into(trace, dst, "multiply", a, float(np.float32(1) / np.float32(b)))
        return
    trace.note("divide: RECIPROCAL and multiply, two roundings")
    turned = trace.temp(b.shape, "float32")
    trace.k.vector.reciprocal(turned.tile(), b.tile())
    binary_into(trace, dst, "multiply", a, turned)


def _power(trace: "Trace", dst: Array, a: Any, b: Any) -> None:
    if not is_number(b) or is_number(a):
        raise KernelError("nl.power takes an array and a number")
    name = _POWERS.get(float(b))
    if name:
        trace.note(f"power {float(b)}: {name}")
        unary_into(trace, dst, name, a)
    elif float(b) == -1:
        trace.k.vector.reciprocal(dst.tile(), a.tile())
    else:
        trace.note("power: exp(b log(a)), of positive a only")
        logs = trace.temp(a.shape, "float32")
        unary_into(trace, logs, "log", a)
        activate(trace, dst, "exp", logs, scale=float(b))


def unary_into(trace: "Trace", dst: Array, name: str, x: Array) -> None:
    """dst = function(x)."""
    x = wide(trace, x, x.shape)
    if name == "reciprocal":
        for to, at in moves.parts(_like(dst, x), x):
            trace.k.vector.reciprocal(to.tile(), at.tile())
        moves.written(dst)
    elif name == "negative":
        binary_into(trace, dst, "multiply", x, -1.0)
    elif name == "cos":
        trace.note("cos: sin(x + pi/2)")
        activate(trace, dst, "sin", x, bias=_HALF_PI)
    else:
        activate(trace, dst, name, x)


def activate(
    trace: "Trace",
    dst: Array,
    name: str,
    x: Array,
    *,
    scale: Any = 1.0,
    bias: Any = 0.0,
    reduce: str | None = None,
    store: Array | None = None,
    command: str = "reset_reduce",
) -> None:
    """dst = function(x scale + bias); the accumulator with `reduce`, put into `store`."""
    if name not in FUNCTIONS:
        raise KernelError(f"the scalar engine has no function {name}; there are {', '.join(FUNCTIONS)}")
    function: Function = FUNCTIONS[name]
    trace.tables(function)
    fields: dict[str, Any] = {}
    view = x.tile()
    if reduce is not None:
        if reduce not in REDUCTIONS:
            raise KernelError(f"reduce_op is {reduce}; there are {', '.join(REDUCTIONS)}")
        fields = {"reduce": command, "reduce_op": REDUCTIONS[reduce].name.lower()}
    put = None
    if store is not None:
        direct = store.space == Space.SBUF and store.format == "fp32" and store.layout.p == view.start
        put = store if direct else trace.temp((view.start + view.partitions, 1), "float32")[view.start :]
        fields["store"] = put.tile()
    pieces = moves.parts(_like(dst, x), x) if reduce is None else [(dst, x)]
    for to, at in pieces:
        one = at.tile()
        trace.k.scalar.activation(
            to.tile(), one, function, scale=column(trace, scale, one), bias=column(trace, bias, one), **fields
        )
    moves.written(dst)
    if store is not None and put is not None and put is not store:
        moves.copy_into(trace, store, put)


def _merged(axes: Sequence[Axis]) -> list[Axis]:
    found: list[Axis] = []
    for axis in axes:
        if axis.count == 1:
            continue
        if found and found[-1].f == axis.f * axis.count:
            found[-1] = Axis(found[-1].count * axis.count, 0, axis.f)
        else:
            found.append(axis)
    return found


def reduce_into(trace: "Trace", dst: Array, name: str, x: Array, axes: Sequence[int], negate: bool = False) -> None:
    """dst = the reduction of x over free axes."""
    if name not in REDUCTIONS:
        raise KernelError(f"no instruction reduces by {name}; there are {', '.join(REDUCTIONS)}")
    over = {axis % x.ndim for axis in axes}
    if any(x.layout.axes[i].par for i in over):
        raise KernelError(
            f"a reduction of {x.name} over axis {min(over)}, that of partitions; multiply by ones, or transpose first"
        )
    kept = [axis for i, axis in enumerate(x.layout.axes) if not axis.par and i not in over]
    inner = _merged([x.layout.axes[i] for i in sorted(over)]) or [Axis(1, 0, 1)]
    outer = _merged(kept)
    op = REDUCTIONS[name].name.lower()
    trace.k.vector.reduce(dst.tile(), x.tile([*outer, *inner]), op, axes=len(inner), negate=negate)
    moves.written(dst)
