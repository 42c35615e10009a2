"""Accuracy of exp and of the activation functions on FP32 numbers, which PSUM holds: all binades, both signs."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from verif.accuracy.bf16 import through, worst_of

__all__ = ["Dense", "inputs", "judge", "measure_dense"]

U32 = NDArray[np.uint32]

_HOT = range(110, 135)
"""Exponent fields of 2^-17 to 2^8, where functions bend: they get most of the numbers."""
_ENDS = 9  # leading bits of a mantissa that no segment goes beyond


@dataclass(frozen=True, slots=True)
class Dense:
    """Of a function over FP32 inputs."""

    name: str
    inputs: int
    fp32_ulp: float  # largest distance from the truth
    at: int  # FP32 code of the input that has it


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
    worst, at = worst_of(name, x, got)
    return Dense(name, codes.size, round(worst, 3), int(np.float32(at).view(np.uint32)))


@cache
def measure_dense(name: str, count: int = 1_200_000, seed: int = 17) -> Dense:
    """Over `inputs`."""
    return judge(name, inputs(count, seed))
