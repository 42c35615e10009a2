"""Accuracy of exp and of the activation functions on FP32 numbers, which PSUM holds: all binades, both signs."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from verif.accuracy.bf16 import through, worst_of

__all__ = ["BOUNDS", "TAILS", "Dense", "inputs", "judge", "measure_dense"]

U32 = NDArray[np.uint32]

_HOT = range(110, 135)
"""Exponent fields of 2^-17 to 2^8, where functions bend: they get most of the numbers."""
_ENDS = 9  # leading bits of a mantissa that no segment goes beyond


BOUNDS = {
    "exp unit": 0.53, "exp": 4, "tanh": 4, "sigmoid": 6, "gelu": 40, "gelu_tanh": 40, "silu": 6, "selu": 40,
    "softplus": 32, "mish": 40, "erf": 4, "log": 40, "sqrt": 16, "rsqrt": 12, "reciprocal": 32, "sin": 40, "arctan": 40,
}  # fmt: skip
"""What is promised for every FP32 input that is a number: last places of FP32 between a result and the truth."""

TAILS = {"gelu_tanh": (-10.25, -8.75, 120)}
"""Where a binade would need rows beyond the bits of an index: more than, less than, what is promised there."""


@dataclass(frozen=True, slots=True)
class Dense:
    """Of a function over FP32 inputs, those inside TAILS apart."""

    name: str
    inputs: int
    fp32_ulp: float  # largest distance from the truth
    at: int  # FP32 code of the input that has it
    tail_ulp: float | None = None  # the largest inside TAILS


def inputs(count: int, seed: int) -> U32:
    """At least `count` codes of finite numbers that are not 0: a third evenly over all binades, two thirds over the
    hot ones, in each binade one from each of equal parts; and both sides of every end of a segment."""
    rng = np.random.default_rng(seed)

    def some(fields: range, each: int) -> U32:
        sign = np.array([0, 1 << 31], np.uint32)[:, None, None]
        field = np.arange(fields.start, fields.stop, dtype=np.uint32)[None, :, None] << np.uint32(23)
        part = np.arange(each)[None, None, :] + rng.random((2, len(fields), each))
        mantissa = np.minimum(part * ((1 << 23) / each), (1 << 23) - 1).astype(np.uint32)
        return (sign | field | mantissa).ravel()

    every = some(range(255), -(-count // (3 * 510)))
    hot = some(_HOT, -(-2 * count // (3 * 2 * len(_HOT))))
    ends = np.arange(_HOT.start << _ENDS, _HOT.stop << _ENDS, dtype=np.uint32) << np.uint32(23 - _ENDS)
    ends = np.concatenate([ends - np.uint32(1), ends, ends + np.uint32(1)])
    codes = np.concatenate([every, hot, *((ends, ends | np.uint32(1 << 31)) if count > ends.size else ())])
    return codes[codes << np.uint32(1) != 0]


def judge(name: str, codes: U32) -> Dense:
    """The golden model, which the hardware equals bit for bit, on these codes."""
    x = codes.view(np.float32).astype(np.float64)
    got = through(name, codes).view(np.float32).astype(np.float64)
    inside = np.zeros(x.size, bool)
    tail = None
    if name in TAILS:
        low, high, _ = TAILS[name]
        inside = (x > low) & (x < high)
        tail = round(worst_of(name, x[inside], got[inside])[0], 3) if inside.any() else 0.0
    worst, at = worst_of(name, x[~inside], got[~inside])
    return Dense(name, codes.size, round(worst, 3), int(np.float32(at).view(np.uint32)), tail)


@cache
def measure_dense(name: str, count: int = 1_200_000, seed: int = 17) -> Dense:
    """Over `inputs`. A million takes about a second."""
    return judge(name, inputs(count, seed))
