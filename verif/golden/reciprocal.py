"""Golden model of the reciprocal unit, on arrays of FP32 codes.

A quotient of float64 numbers, rounded again to float32, is what one rounding gives: 1/x is farther from every
midpoint of float32 numbers than that first error (tests/unit/test_golden_alu.py compares with exact fractions).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verif.golden.numeric import canonical

__all__ = ["reciprocal"]


def reciprocal(x: ArrayLike) -> NDArray[np.uint32]:
    """RN32(1 / x): subnormals in and out, 1/+-0 = +-infinity, 1/+-infinity = +-0, canonical NaN."""
    codes = np.array(x, dtype=np.uint32, order="C")
    with np.errstate(all="ignore"):
        quotient = np.float64(1) / codes.view(np.float32).astype(np.float64)
        return canonical(quotient.astype(np.float32)).reshape(codes.shape)
