"""The activation functions as mpmath computes them: what the tables are fitted to, what they are judged by.

Each takes an exact real number, not 0, and gives a real number of `mpmath.mp.prec` bits. What they approach 0 from
keeps its sign: the negative side of gelu is negative however far it is followed.
"""

from collections.abc import Callable
from typing import Any

import mpmath

__all__ = ["DIRECT", "FUNCTIONS", "LIMITS", "TABLED"]

mp: Any = mpmath.mp

Real = Any
FAR = 300
"""Beyond it, every function here has become its asymptote in FP32."""


def _below() -> Real:
    """Less than nothing, by less than any format shows."""
    return -mp.ldexp(1, -1000)


def _exp(x: Real) -> Real:
    return mp.exp(max(min(x, FAR), -FAR))


def _tanh(x: Real) -> Real:
    return mp.sign(x) if abs(x) > FAR else mp.tanh(x)


def _sigmoid(x: Real) -> Real:
    return 1 / (1 + _exp(-x))


def _gelu(x: Real) -> Real:
    if abs(x) > FAR:
        return x if x > 0 else _below()
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def _gelu_tanh(x: Real) -> Real:
    if abs(x) > FAR:
        return x if x > 0 else _below()
    return x * _sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))


def _silu(x: Real) -> Real:
    return _below() if x < -FAR else x * _sigmoid(x)


def _selu(x: Real) -> Real:
    scale = mp.mpf("1.0507009873554804934193349852946")
    return scale * x if x > 0 else scale * mp.mpf("1.6732632423543772848170429916717") * mp.expm1(max(x, -FAR))


def _softplus(x: Real) -> Real:
    return x if x > FAR else mp.log1p(_exp(x))


def _mish(x: Real) -> Real:
    return _below() if x < -FAR else x * _tanh(_softplus(x))


def _erf(x: Real) -> Real:
    return mp.sign(x) if abs(x) > FAR else mp.erf(x)


def _sin(x: Real) -> Real:
    """Inside [-pi, pi] the sine, outside the cubic it ends with."""
    d = abs(x) - mp.pi
    return mp.sin(x) if d <= 0 else mp.sign(x) * (d**3 / 6 - d)


def _log(x: Real) -> Real:
    return mp.log(x) if x > 0 else mp.nan


def _sqrt(x: Real) -> Real:
    return mp.sqrt(x) if x > 0 else mp.nan


FUNCTIONS: dict[str, Callable[[Real], Real]] = {
    "exp": _exp,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
    "selu": _selu,
    "softplus": _softplus,
    "mish": _mish,
    "erf": _erf,
    "log": _log,
    "sqrt": _sqrt,
    "rsqrt": lambda x: 1 / _sqrt(x) if x > 0 else mp.nan,
    "reciprocal": lambda x: 1 / x,
    "sin": _sin,
    "arctan": mp.atan,
}
"""By name, in the order of their codes."""

TABLED = tuple(FUNCTIONS)
DIRECT = ("copy", "abs", "square", "relu", "prelu", "leaky_relu", "sign")
"""Functions that need no table."""

_HALF_PI = 1.5707963267948966
_SELU_LOW = -1.0507009873554805 * 1.6732632423543772

LIMITS: dict[str, tuple[float, float, float, float]] = {
    "exp": (float("inf"), 0.0, 1.0, 1.0),
    "tanh": (1.0, -1.0, 0.0, -0.0),
    "sigmoid": (1.0, 0.0, 0.5, 0.5),
    "gelu": (float("inf"), -0.0, 0.0, -0.0),
    "gelu_tanh": (float("inf"), -0.0, 0.0, -0.0),
    "silu": (float("inf"), -0.0, 0.0, -0.0),
    "selu": (float("inf"), _SELU_LOW, 0.0, -0.0),
    "softplus": (float("inf"), 0.0, 0.6931471805599453, 0.6931471805599453),
    "mish": (float("inf"), -0.0, 0.0, -0.0),
    "erf": (1.0, -1.0, 0.0, -0.0),
    "log": (float("inf"), float("nan"), float("-inf"), float("-inf")),
    "sqrt": (float("inf"), float("nan"), 0.0, -0.0),
    "rsqrt": (0.0, float("nan"), float("inf"), float("-inf")),
    "reciprocal": (0.0, -0.0, float("inf"), float("-inf")),
    "sin": (float("inf"), float("-inf"), 0.0, -0.0),
    "arctan": (_HALF_PI, -_HALF_PI, 0.0, -0.0),
}
"""At +Inf, -Inf, +0, -0."""
