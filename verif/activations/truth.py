"""The activation functions as truth: quickly in float64, and rounded so that the rounding is decided (Ziv).

A number near the middle of two neighbours can be rounded to the wrong one by any fixed precision: silu(x) of a tiny x
is x/2 + x^2/4, and x/2 is often such a middle. `decided` lets the precision grow until both ends of the interval
that holds the truth round to the same number. The first step is float64, the others are mpmath.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from verif.activations.functions import FUNCTIONS

__all__ = ["BF16", "FP32", "NEARLY", "SIN_FAR", "SIN_NEAR", "decided", "least", "nearly", "place", "places_off"]

mp: Any = mpmath.mp
F64 = NDArray[np.float64]

BF16 = (8, -133)
FP32 = (24, -149)
"""Significant bits, exponent of the last place of a subnormal number."""

NEARLY = 2.0**-40
"""Of `nearly`, relative to the truth; a test holds it to a quarter of this."""
SIN_NEAR, SIN_FAR = 2.0**-10, 2.0**-4
_TOP = 2.0**128
_GUARD = 40  # bits that mpmath's functions and the differences in them may lose
_MOST = 1 << 14  # bits; no input of FP32 needs a twentieth


def _each(function: Callable[[float], float]) -> Callable[[F64], F64]:
    return lambda x: np.fromiter(map(function, x.tolist()), np.float64, x.size)


_ERF, _ERFC = _each(math.erf), _each(math.erfc)


def _sigmoid(x: F64) -> F64:
    return 1 / (1 + np.exp(-x))


def _softplus(x: F64) -> F64:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sin(x: F64) -> F64:
    d = (np.abs(x) - math.pi) - 1.2246467991473532e-16  # what float64's pi leaves out
    return np.where(d <= 0, np.sin(x), np.copysign(1, x) * (d * d * d / 6 - d))


def _selu(x: F64) -> F64:
    scale = 1.0507009873554804934193349852946
    return np.where(x > 0, scale * x, scale * 1.6732632423543772848170429916717 * np.expm1(np.minimum(x, 0)))


_NEAR: dict[str, Callable[[F64], F64]] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "gelu": lambda x: x * _ERFC(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x * _sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x)),
    "silu": lambda x: x * _sigmoid(x),
    "selu": _selu,
    "softplus": _softplus,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "erf": _ERF,
    "log": lambda x: np.log(np.where(x > 0, x, np.nan)),
    "sqrt": lambda x: np.sqrt(np.where(x > 0, x, np.nan)),
    "rsqrt": lambda x: 1 / np.sqrt(np.where(x > 0, x, np.nan)),
    "reciprocal": lambda x: 1 / x,
    "sin": _sin,
    "arctan": np.arctan,
}


def nearly(name: str, x: F64) -> F64:
    """The function of finite numbers that are not 0, each NEARLY the truth or both below 2^-300 (with its sign)."""
    with np.errstate(all="ignore"):
        return _NEAR[name](np.asarray(x, np.float64))


def least(name: str, x: F64) -> F64:
    """Sizes below which a result is judged as if it were of that size: where sin(x), or the cubic beyond pi, crosses 0
    inside a segment. 0 elsewhere."""
    x = np.abs(x)
    return np.where(x > 4, SIN_FAR, np.where(x > 3, SIN_NEAR, 0)) if name == "sin" else np.zeros(x.shape)


def places_off(got: F64, truth: F64, floor: F64) -> F64:
    """Distances in FP32 places of the truth, or of `floor` where that is larger; 0 where the truth is NaN. Infinity
    counts as 2^128, from where on the truth is infinite."""
    with np.errstate(all="ignore"):
        truth = np.clip(truth, -_TOP, _TOP)
        unit = place(np.clip(np.maximum(np.abs(truth), floor), None, _TOP / 2))
        off = np.abs(np.clip(got, -_TOP, _TOP) - truth) / unit
    return np.where(np.isnan(truth), 0, off)


def place(y: F64, form: tuple[int, int] = FP32) -> F64:
    """The last place of a format at y."""
    bits, least = form
    return np.ldexp(1.0, np.maximum(np.frexp(y)[1] - bits, least))


def _rounded(y: F64, form: tuple[int, int]) -> F64:
    """To nearest even, infinite from 2^128 on, zeros with their sign."""
    unit = place(y, form)
    value = np.rint(y / unit) * unit
    return np.where(np.abs(value) >= _TOP, np.copysign(np.inf, y), np.copysign(value, y))


def _exactly(y: Any, form: tuple[int, int]) -> float:
    """As `_rounded`, of a real number."""
    bits, least = form
    exponent = max(int(mp.frexp(y)[1]) - bits, least)
    value = mp.ldexp(mp.nint(mp.ldexp(y, -exponent)), exponent)
    size = float("inf") if abs(value) >= mp.mpf(2) ** 128 else float(abs(value))
    return math.copysign(size, float(mp.sign(y)))


def _ziv(name: str, x: float, form: tuple[int, int]) -> float:
    precision = 128
    while precision <= _MOST:
        with mp.workprec(precision):
            y = FUNCTIONS[name](mp.mpf(x))
            off = mp.ldexp(1, _GUARD - precision)
            ends = {_exactly(y * (1 - off), form), _exactly(y * (1 + off), form)}
        if len(ends) == 1:
            return ends.pop()
        precision *= 2
    raise ArithmeticError(f"{name} of {x!r} is not decided with {_MOST} bits")


def decided(name: str, x: F64, form: tuple[int, int] = BF16) -> F64:
    """The number of a format nearest to the truth, for finite x that are not 0; NaN where there is none."""
    x = np.asarray(x, np.float64)
    y = nearly(name, x)
    with np.errstate(all="ignore"):
        found, other = _rounded(y * (1 - NEARLY), form), _rounded(y * (1 + NEARLY), form)
        again = ~np.isnan(y) & (found != other)
    found[np.isnan(y)] = np.nan
    for i in np.flatnonzero(again):
        found[i] = _ziv(name, float(x[i]), form)
    return found
