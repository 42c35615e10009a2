"""Codes to the words of elements and of what enters the arithmetic of a processing element."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS
from rtl.numeric.pe.element import ELEMENT_BIAS, ELEMENT_INFINITY, ELEMENT_NAN

__all__ = ["element_values", "element_words", "kinds", "lane_words"]

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]


def element_words(codes: NDArray[np.integer], name: str) -> NDArray[np.uint32]:
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


def lane_words(codes: U8, scales: U8, name: str) -> NDArray[np.uint64]:
    """Words of pe_operand() for rows of four codes and their scales."""
    words = element_words(codes, name).astype(np.uint64) << (np.arange(4, dtype=np.uint64) * np.uint64(10))
    return np.bitwise_or.reduce(words, axis=1) | scales.astype(np.uint64) << np.uint64(40)


def kinds(codes: U8, name: str) -> NDArray[np.str_]:
    """Of each code: zero, number, infinity or nan."""
    words = element_words(codes, name)
    exponent = words >> 4 & 31
    return np.select(
        [exponent == ELEMENT_NAN, exponent == ELEMENT_INFINITY, words & 15 == 0], ["nan", "infinity", "zero"], "number"
    )


@cache
def element_values(name: str) -> NDArray[np.float64]:
    """Value of each of the 256 codes; 0 where there is none."""
    words = element_words(np.arange(256), name).astype(np.int64)
    exponent = words >> 4 & 31
    size = np.ldexp((words & 15).astype(np.float64), exponent - ELEMENT_BIAS - 3)
    return np.where(exponent >= ELEMENT_INFINITY, 0.0, np.where(words >> 9 == 1, -size, size))
