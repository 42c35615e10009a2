"""An element of a dot product: what every 8-bit and 4-bit float format becomes in front of the multipliers.

value = (-1)^sign * significand * 2^(exponent - ELEMENT_BIAS - 3), exponent = 0 to 29. A subnormal is not normalised:
it keeps the lowest exponent of its format, 0 for E5M2, 8 for both E4M3, 14 for E2M1. Zero: significand 0.
Exponent ELEMENT_INFINITY or ELEMENT_NAN: significand 8. An element of exponent below 7 has an even significand, for
only E5M2 reaches down there, with two bits of fraction; so every product is a multiple of 2^-32. All bits 0: +0.
"""

from amaranth.lib import data

__all__ = ["ELEMENT", "ELEMENTS", "ELEMENT_BIAS", "ELEMENT_INFINITY", "ELEMENT_NAN"]

ELEMENTS = 4
"""Pairs that a processing element multiplies in a cycle."""

ELEMENT_BIAS = 14
ELEMENT_INFINITY = 30
ELEMENT_NAN = 31

ELEMENT = data.StructLayout({"significand": 4, "exponent": 5, "sign": 1})
