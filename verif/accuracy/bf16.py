"""Accuracy of exp and of the activation functions on every BF16 number, against mpmath."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

from rtl.contract.activation_tables import table
from verif.activations.functions import FUNCTIONS, RANGES, TABLED
from verif.golden.activation import through_table
from verif.golden.exp import exp

__all__ = ["Accuracy", "measure", "names"]

mp: Any = mpmath.mp

PRECISION = 80


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of a function over BF16 inputs in its range. ulps are places of the result."""

    name: str
    range: str
    inputs: int
    correct: int  # results that are the correctly rounded BF16 number
    bf16_ulp: int  # largest distance from it
    fp32_ulp: float  # largest distance of the FP32 result from the truth
    monotone: bool | None  # None where the function is not


def names() -> tuple[str, ...]:
    """All that is measured: the exp unit, then the functions of the tables."""
    return ("exp unit", *TABLED)


def _rounded(y: Any, bits: int, least: int) -> Any:
    """The nearest number of `bits` significant bits that is a multiple of 2^least."""
    exponent = max(int(mp.frexp(y)[1]) - bits, least)
    return mp.ldexp(mp.nint(mp.ldexp(y, -exponent)), exponent)


def _bf16(y: Any) -> float:
    if mp.isnan(y):
        return float("nan")
    value = _rounded(y, 8, -133) if y else y
    return float(mp.sign(value)) * float("inf") if abs(value) >= mp.mpf(2) ** 128 else float(value)


def _place(y: Any) -> Any:
    """The last place of FP32 at y."""
    return mp.ldexp(1, max(int(mp.frexp(y)[1]) - 24, -149)) if y else mp.ldexp(1, -149)


def _order(codes: np.ndarray) -> np.ndarray:
    """Whole numbers that count BF16 numbers from zero."""
    c = codes.astype(np.int64)
    return np.where(c & 0x8000, -(c & 0x7FFF), c)


def _text(low: float, high: float) -> str:
    return "all" if (low, high) == (0.0, float("inf")) else f"size {low:.4g} to {high:.4g}"


@cache
def measure(name: str) -> Accuracy:
    """Push every BF16 number through the golden model, which the hardware equals bit for bit."""
    codes = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    values = codes.view(np.float32)
    low, high = RANGES.get(name, (0.0, float("inf")))
    chosen = np.isfinite(values) & (values != 0) & (np.abs(values) >= low) & (np.abs(values) <= high)
    x = values[chosen]
    truth: Callable[[Any], Any] = FUNCTIONS["exp" if name == "exp unit" else name]
    zero = np.zeros(1, np.uint32)
    got = exp(codes[chosen], zero) if name == "exp unit" else through_table(codes[chosen], table(name))
    with mp.workprec(PRECISION), np.errstate(all="ignore"):
        exact = [truth(mp.mpf(float(v))) for v in x]
        want = np.array([_bf16(y) for y in exact]).astype(np.float32).astype(ml_dtypes.bfloat16)
        rounded = got.view(np.float32).astype(ml_dtypes.bfloat16)
        number = ~np.isnan(want.astype(np.float32))
        assert (np.isnan(rounded.astype(np.float32)) == ~number).all(), f"{name}: a NaN where there is a number"
        distance = np.abs(_order(rounded.view(np.uint16)) - _order(want.view(np.uint16)))[number]
        worst = max(
            (abs(mp.mpf(float(g)) - y) / _place(y) for g, y, n in zip(got.view(np.float32), exact, number, strict=True)
             if n and np.isfinite(g) and abs(y) < mp.mpf(2) ** 128),
            default=mp.mpf(0),
        )  # fmt: skip
    rising = rounded.astype(np.float32)[np.argsort(x, kind="stable")]
    monotone = bool((rising[1:] >= rising[:-1]).all()) if name in ("exp unit", "exp") else None
    return Accuracy(
        name=name,
        range=_text(low, high),
        inputs=int(number.sum()),
        correct=int((distance == 0).sum()),
        bf16_ulp=int(distance.max()),
        fp32_ulp=round(float(worst), 3),
        monotone=monotone,
    )
