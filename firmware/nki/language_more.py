"""nki.language: functions that no instruction has, lowered to several."""

from typing import Any

import numpy as np

from firmware.nki import arithmetic, moves
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.nki.isa import axes_of, reduced, unmasked
from firmware.nki.registry import call
from firmware.nki.trace import Trace
from firmware.views import KernelError

__all__ = ["rounded"]

_NL = "nki.language"
_INT_END = 2.0**31  # from here on every FP32 number is whole, and int32 ends


def rounded(trace: Trace, dst: Array, name: str, x: Array) -> None:
    """dst = floor, ceil or trunc of x: to int32 and back, nearest even, then 1 to the side if that was too far; numbers
    from 2^31 on, infinities and NaNs as they are. What becomes 0 is +0."""
    source = moves.to_sbuf(trace, x, "float32")
    if name == "trunc":
        sizes, sign = trace.temp(source.shape, "float32"), trace.temp(source.shape, "float32")
        arithmetic.unary_into(trace, sizes, "abs", source)
        arithmetic.unary_into(trace, sign, "sign", source)
        whole = _whole(trace, sizes, "floor")
        arithmetic.binary_into(trace, whole, "multiply", whole, sign)
    else:
        whole = _whole(trace, source, name)
    small = trace.temp(source.shape, "float32")
    kept = trace.temp(source.shape, "float32")
    moves.copy_into(trace, kept, source)
    for to, at, chosen, found in moves.parts(small, source, kept, whole):
        trace.k.vector.tensor_scalar(to.tile(), at.tile(), "absmax", 0.0, "lt", _INT_END)
        trace.k.vector.copy_predicated(chosen.tile(), to.tile(), found.tile())
    moves.copy_into(trace, dst, kept)


def _whole(trace: Trace, x: Array, name: str) -> Array:
    near, back, over = (trace.temp(x.shape, kind) for kind in ("int32", "float32", "float32"))
    moves.copy_into(trace, near, x)
    moves.copy_into(trace, back, near)
    arithmetic.binary_into(trace, over, "greater" if name == "floor" else "less", back, x)
    arithmetic.binary_into(trace, back, "subtract" if name == "floor" else "add", back, over)
    return back


def _roundings() -> None:
    def one(name: str) -> Any:
        def run(trace: Trace, x: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Array:
            unmasked(mask, f"nl.{name}")
            a = on_chip(x, f"nl.{name}")
            trace.note(f"nl.{name}: to int32 and back, a comparison and COPY_PREDICATED")
            return trace.result(a.shape, dtype or a.dtype, lambda to: rounded(trace, to, name, a), (a,))

        return run

    for name in ("floor", "ceil", "trunc"):
        call(_NL, "lowered", "to int32 and back, a comparison, COPY_PREDICATED", name)(one(name))


_roundings()


@call(_NL, "lowered", "TENSOR_SCAN by multiply; its last column")
def prod(
    trace: Trace, x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, **unused: Any
) -> Array:  # fmt: skip
    unmasked(mask, "nl.prod")
    a, axes = on_chip(x, "nl.prod"), axes_of(axis)
    over = {n % a.ndim for n in axes}
    if over != {i for i, one in enumerate(a.layout.axes) if not one.par}:
        raise KernelError(f"nl.prod of {a.name} is over all its free axes here, not over {sorted(over)}")
    trace.note("nl.prod: TENSOR_SCAN")

    def write(to: Array) -> None:
        steps, ones = (
            trace.temp((a.partitions, a.elements), "float32"),
            trace.temp((a.partitions, a.elements), "float32"),
        )
        moves.fill(trace, ones, 1.0)
        trace.k.vector.scan(steps.tile(), a.tile(), "multiply", "multiply", ones.tile(), initial=1.0)
        moves.copy_into(trace, to, steps[:, a.elements - 1 : a.elements])

    return trace.result(reduced(a.shape, axes, keepdims), dtype or a.dtype, write, (a,))


@call(_NL, "lowered", "mean, differences, their squares, mean")
def var(
    trace: Trace, x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, **unused: Any
) -> Array:  # fmt: skip
    unmasked(mask, "nl.var")
    a, axes = on_chip(x, "nl.var"), axes_of(axis)
    part = float(np.float32(1) / np.float32(np.prod([a.shape[i] for i in axes])))
    trace.note("nl.var: mean, differences, their squares, mean")

    def write(to: Array) -> None:
        mean, apart = trace.temp(reduced(a.shape, axes, True), "float32"), trace.temp(a.shape, "float32")
        arithmetic.reduce_into(trace, mean, "sum", a, axes)
        arithmetic.binary_into(trace, mean, "multiply", mean, part)
        arithmetic.binary_into(trace, apart, "subtract", a, mean)
        arithmetic.unary_into(trace, apart, "square", apart)
        arithmetic.reduce_into(trace, mean, "sum", apart, axes)
        arithmetic.binary_into(trace, to, "multiply", mean.reshape(to.shape), part)

    return trace.result(reduced(a.shape, axes, keepdims), dtype or a.dtype, write, (a,))


@call(_NL, "lowered", "ACTIVATION square with its sum, rsqrt, products")
def rms_norm(
    trace: Trace, x: Any, w: Any, axis: Any, n: Any, epsilon: float = 1e-6, *, dtype: Any = None,
    compute_dtype: Any = None, mask: Any = None, **unused: Any,
) -> Array:  # fmt: skip
    unmasked(mask, "nl.rms_norm")
    a, weight = on_chip(x, "nl.rms_norm"), on_chip(w, "nl.rms_norm")
    if {i % a.ndim for i in axes_of(axis)} != {i for i, one in enumerate(a.layout.axes) if not one.par}:
        raise KernelError(f"nl.rms_norm of {a.name} is over all its free axes here")
    trace.note("nl.rms_norm: ACTIVATION square with its sum, rsqrt, products")

    def write(to: Array) -> None:
        squares, scaled = trace.temp(a.shape, "float32"), trace.temp(a.shape, "float32")
        total = trace.temp((a.partitions, 1), "float32")
        arithmetic.activate(trace, squares, "square", a, reduce="add", store=total)
        trace.k.vector.tensor_scalar(
            total.tile(), total.tile(), "multiply", float(np.float32(1) / np.float32(n)), "add", float(epsilon)
        )
        arithmetic.unary_into(trace, total, "rsqrt", total)
        arithmetic.binary_into(trace, scaled, "multiply", a, total)
        arithmetic.binary_into(trace, to, "multiply", scaled, weight)

    return trace.result(a.shape, dtype or a.dtype, write, (a, weight))
