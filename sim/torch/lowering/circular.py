"""sin and cos of any angle: whole turns are taken off first, for the table of the sine reaches from -pi to pi."""

import math

import numpy as np

from firmware.graph.ir import Value
from sim.torch.lowering.bounds import FUNCTION
from sim.torch.lowering.builder import Builder
from sim.torch.lowering.registry import lower

__all__ = ["ANGLE_MAX"]

ANGLE_MAX = 2.0**18
"""Larger angles give NaN: products of a count of turns with the parts of 2 pi are no longer exact soon behind it."""


def _parts() -> tuple[float, float, float]:
    """2 pi as three FP32 numbers. The first two have 8 bits, so that products with counts below 2^16 are exact."""
    first = 201 / 32
    second = round((2 * math.pi - first) * 2**17) / 2**17
    return first, second, float(np.float32(2 * math.pi - first - second))


def _sine(b: Builder, x: Value, quarter: bool) -> Value:
    """sin(x), or with `quarter` sin(x + pi/2). A count that is off by one where a rounding decides leaves the angle a
    little beyond pi, where the table goes on."""
    wide = b.cast(x, "fp32")
    turns = b.binary("multiply", wide, 1 / (2 * math.pi))
    if quarter:
        turns = b.binary("add", turns, 0.25)
    count = b.cast(b.cast(turns, "int32"), "fp32")
    rest = wide
    for part in _parts():
        rest = b.binary("subtract", rest, b.binary("multiply", count, part))
    if quarter:
        rest = b.binary("add", rest, math.pi / 2)
    near = b.binary("less_equal", b.unary("abs", wide), ANGLE_MAX)
    y = b.node("where", {"condition": near, "a": b.unary("sin", rest)}, x.shape, "fp32", scalar_b=math.nan)
    return b.cast(y, b.dtype)


@lower("aten.sin.default", "x less whole turns, unary sin; NaN beyond 2^18", FUNCTION)
def sin(b: Builder, x: Value) -> Value:
    """Of |x| up to 2^18."""
    return _sine(b, x, False)


@lower("aten.cos.default", "x less whole turns, unary sin of it + pi/2; NaN beyond 2^18", FUNCTION)
def cos(b: Builder, x: Value) -> Value:
    """Of |x| up to 2^18."""
    return _sine(b, x, True)
