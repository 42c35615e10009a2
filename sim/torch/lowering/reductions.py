"""Operators over axes: sums, norms, softmax."""

import math
from collections.abc import Sequence
from typing import Any

from firmware.graph.ir import Value
from sim.torch.lowering.bounds import BITS, FUNCTION, ROUNDED
from sim.torch.lowering.builder import Builder
from sim.torch.lowering.registry import lower

__all__: list[str] = []

Axes = Sequence[int] | int | None


def _axes(axes: Axes) -> Sequence[int]:
    return () if axes is None else [axes] if isinstance(axes, int) else axes


@lower("aten.sum.dim_IntList aten.sum.default", "reduce sum", ROUNDED)
def sum_(b: Builder, x: Value, axes: Axes = None, keep: bool = False, **_: Any) -> Value:
    """In FP32."""
    return b.cast(b.reduce("sum", b.cast(x, "fp32"), _axes(axes), keep), b.dtype)


@lower("aten.mean.dim aten.mean.default", "reduce mean", ROUNDED)
def mean(b: Builder, x: Value, axes: Axes = None, keep: bool = False, **_: Any) -> Value:
    """In FP32."""
    return b.cast(b.reduce("mean", b.cast(x, "fp32"), _axes(axes), keep), b.dtype)


@lower("aten.amax.default aten.max.default", "reduce max", BITS)
def amax(b: Builder, x: Value, axes: Axes = None, keep: bool = False) -> Value:
    """The largest."""
    return b.reduce("max", x, _axes(axes), keep)


@lower("aten.amin.default aten.min.default", "reduce min", BITS)
def amin(b: Builder, x: Value, axes: Axes = None, keep: bool = False) -> Value:
    """The smallest."""
    return b.reduce("min", x, _axes(axes), keep)


def _moments(b: Builder, x: Value, axes: Axes, correction: float | None, keep: bool) -> tuple[Value, Value]:
    wide, chosen = b.cast(x, "fp32"), _axes(axes) or range(len(x.shape))
    middle = b.reduce("mean", wide, chosen, True)
    square = b.unary("square", b.binary("subtract", wide, middle))
    count = math.prod(x.shape[axis] for axis in chosen)
    below = count - (1 if correction is None else correction)
    variance = b.reduce("mean", square, chosen, keep)
    if below != count:
        variance = b.binary("multiply", variance, count / below if below > 0 else math.inf)
    return b.cast(variance, b.dtype), b.cast(b.reshape(middle, variance.shape), b.dtype)


@lower("aten.var.correction", "mean, subtract, square, mean", ROUNDED)
def var(b: Builder, x: Value, axes: Axes = None, correction: float | None = None, keepdim: bool = False) -> Value:
    """Two passes."""
    return _moments(b, x, axes, correction, keepdim)[0]


@lower("aten.var_mean.correction", "mean, subtract, square, mean", ROUNDED)
def var_mean(
    b: Builder, x: Value, axes: Axes = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """Both."""
    return _moments(b, x, axes, correction, keepdim)


def _last(b: Builder, x: Value, axis: int) -> tuple[Value, list[int]]:
    """The axis as the last one, and axes that put it back."""
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    return b.permute(x, order), order


@lower("aten._softmax.default aten.softmax.int", "softmax", FUNCTION)
def softmax(b: Builder, x: Value, axis: int, *_: Any) -> Value:
    """Along any axis."""
    if not x.shape:
        return b.node("fill", {}, (), b.dtype, scalar=1.0)
    turned, order = _last(b, b.cast(x, b.dtype), axis)
    return b.permute(b.node("softmax", {"x": turned}, turned.shape, b.dtype), order)


@lower("aten._log_softmax.default", "max, subtract, exp, sum, log, subtract", FUNCTION)
def log_softmax(b: Builder, x: Value, axis: int, *_: Any) -> Value:
    """x - max - log(sum of exp(x - max))."""
    wide = b.cast(x, "fp32")
    centred = b.binary("subtract", wide, b.reduce("max", wide, [axis], True))
    total = b.unary("log", b.reduce("sum", b.unary("exp", centred), [axis], True))
    return b.cast(b.binary("subtract", centred, total), b.dtype)


def _rows(b: Builder, x: Value, size: Sequence[int]) -> Value:
    """The axes that are normalised as one."""
    lead = x.shape[: len(x.shape) - len(size)]
    return b.reshape(x, (*lead, math.prod(size)))


def _given(b: Builder, **values: Value | None) -> dict[str, Value]:
    return {n: b.cast(b.reshape(v, (math.prod(v.shape),)), "fp32") for n, v in values.items() if v is not None}


@lower("aten.native_layer_norm.default", "layernorm", FUNCTION)
def layer_norm(
    b: Builder, x: Value, size: Sequence[int], gain: Value | None, shift: Value | None, epsilon: float
) -> tuple[Value, Value | None, Value | None]:
    """Means and deviations, which only a backward pass wants, are not made."""
    rows = _rows(b, x, size)
    inputs = {"x": rows, **_given(b, gain=gain, shift=shift)}
    y = b.node("layernorm", inputs, rows.shape, x.dtype, epsilon=epsilon)
    return b.reshape(y, x.shape), None, None


@lower("plexus.rms_norm.default", "rmsnorm", FUNCTION)
def rms_norm(b: Builder, x: Value, size: Sequence[int], gain: Value | None, epsilon: float | None) -> Value:
    """x / sqrt(mean of squares + epsilon) gain."""
    rows = _rows(b, x, size)
    inputs = {"x": rows, **_given(b, gain=gain)}
    y = b.node("rmsnorm", inputs, rows.shape, x.dtype, epsilon=2.0**-23 if epsilon is None else epsilon)
    return b.reshape(y, x.shape)


@lower("aten._native_batch_norm_legit_no_training.default", "rsqrt, multiply, subtract, add", FUNCTION)
def batch_norm(
    b: Builder,
    x: Value,
    gain: Value | None,
    shift: Value | None,
    mean_: Value,
    variance: Value,
    momentum: float,
    epsilon: float,
) -> tuple[Value, Value | None, Value | None]:
    """With the statistics that were kept."""
    scale = b.unary("rsqrt", b.binary("add", b.cast(variance, "fp32"), epsilon))
    shape = (x.shape[1],) + (1,) * (len(x.shape) - 2)
    y = b.binary("subtract", b.cast(x, "fp32"), b.reshape(b.cast(mean_, "fp32"), shape))
    if gain is not None:
        scale = b.binary("multiply", scale, b.cast(gain, "fp32"))
    y = b.binary("multiply", y, b.reshape(scale, shape))
    if shift is not None:
        y = b.binary("add", y, b.reshape(b.cast(shift, "fp32"), shape))
    return b.cast(y, b.dtype), None, None
