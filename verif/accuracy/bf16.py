"""Accuracy of exp and of the activation functions on every BF16 number."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
from numpy.typing import NDArray

from rtl.contract.activation_tables import table
from verif.activations.functions import FUNCTIONS, TABLED
from verif.activations.truth import BF16, FP32, decided, least, nearly, places_off
from verif.golden.activation import through_table
from verif.golden.exp import exp

__all__ = ["Accuracy", "measure", "names", "of", "through", "worst_of"]

mp: Any = mpmath.mp
U32 = NDArray[np.uint32]
F64 = NDArray[np.float64]

_CONFIRMED = 8
"""The largest distances are computed again by mpmath, with bits enough for any of them."""
_PRECISION = 400


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of a function over every BF16 input where it has a value. ulps are places of the result."""

    name: str
    inputs: int
    correct: int  # results that are the correctly rounded BF16 number
    attainable: int  # how many an FP32 result that is the nearest to the truth would give
    bf16_ulp: int  # largest distance from it
    fp32_ulp: float  # largest distance of the FP32 result from the truth
    monotone: bool | None  # None where the function is not


def names() -> tuple[str, ...]:
    """All that is measured: the exp unit, then the functions of the tables."""
    return ("exp unit", *TABLED)


def of(name: str) -> str:
    """The function that one of `names` computes."""
    return "exp" if name == "exp unit" else name


def through(name: str, codes: U32) -> U32:
    """What the hardware makes of FP32 codes, by the golden model."""
    return exp(codes, np.zeros(1, np.uint32)) if name == "exp unit" else through_table(codes, table(name))


def _order(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers that count BF16 numbers from zero."""
    c = codes.astype(np.int64)
    return np.where(c & 0x8000, -(c & 0x7FFF), c)


def worst_of(name: str, x: F64, got: F64) -> tuple[float, float]:
    """The largest of `places_off`, by mpmath, and where it is."""
    truth = nearly(of(name), x)
    floor = least(of(name), x)
    off = places_off(got, truth, floor)
    found = (0.0, float(x[0]))
    for i in np.argsort(-off, kind="stable")[:_CONFIRMED]:
        if np.isnan(truth[i]):
            continue
        with mp.workprec(_PRECISION):
            top = mp.mpf(2) ** 128
            y = max(min(FUNCTIONS[of(name)](mp.mpf(float(x[i]))), top), -top)
            size = max(abs(y), mp.mpf(float(floor[i])))
            unit = mp.ldexp(1, min(max(int(mp.frexp(size)[1]) - 24, -149), 104))
            one = float(abs(max(min(mp.mpf(float(got[i])), top), -top) - y) / unit)
        found = max(found, (one, float(x[i])))
    return found


@cache
def measure(name: str) -> Accuracy:
    """Push every BF16 number through the golden model, which the hardware equals bit for bit."""
    codes = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    values = codes.view(np.float32)
    chosen = np.isfinite(values) & (values != 0)
    x = values[chosen].astype(np.float64)
    got = through(name, codes[chosen])
    with np.errstate(all="ignore"):
        want = decided(of(name), x, BF16).astype(np.float32).astype(ml_dtypes.bfloat16)
        best = decided(of(name), x, FP32).astype(np.float32).astype(ml_dtypes.bfloat16)
        rounded = got.view(np.float32).astype(ml_dtypes.bfloat16)
    number = ~np.isnan(want.astype(np.float32))
    assert (np.isnan(rounded.astype(np.float32)) == ~number).all(), f"{name}: NaN and number do not agree"
    target = _order(want.view(np.uint16))
    distance = np.abs(_order(rounded.view(np.uint16)) - target)[number]
    rising = rounded.astype(np.float32)[np.argsort(x, kind="stable")]
    monotone = bool((rising[1:] >= rising[:-1]).all()) if of(name) == "exp" else None
    return Accuracy(
        name=name,
        inputs=int(number.sum()),
        correct=int((distance == 0).sum()),
        attainable=int((_order(best.view(np.uint16)) == target)[number].sum()),
        bf16_ulp=int(distance.max()),
        fp32_ulp=round(worst_of(name, x, got.view(np.float32).astype(np.float64))[0], 3),
        monotone=monotone,
    )
