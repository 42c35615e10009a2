"""Codes to the words of elements, and rows of elements whose dot products are hard to round."""

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS
from rtl.numeric.element import ELEMENT_BIAS, ELEMENT_INFINITY, ELEMENT_NAN

__all__ = ["element_words"]


def element_words(codes: NDArray[np.uint8], name: str) -> NDArray[np.uint32]:
    """Words of the element layout for codes of format `name`; only E2M1 has bits that do not count."""
    fmt = FORMATS[name]
    code = codes.astype(np.int64) & ((1 << fmt.bits) - 1)
    top = (1 << fmt.exponent) - 1
    field, fraction = code >> fmt.mantissa & top, code & ((1 << fmt.mantissa) - 1)
    significand = (fraction | np.where(field > 0, 1 << fmt.mantissa, 0)) << (3 - fmt.mantissa)
    exponent = np.maximum(field, 1) - fmt.bias + ELEMENT_BIAS
    special = (field == top) & fmt.infinities
    nan = special & (fraction != 0)
    if name == "e4m3fn":
        special = nan = code & 0x7F == 0x7F
    significand = np.where(special, 8, significand)
    exponent = np.where(special, np.where(nan, ELEMENT_NAN, ELEMENT_INFINITY), exponent)
    sign = code >> (fmt.bits - 1)
    return (significand | exponent << 4 | sign << 9).astype(np.uint32)
