"""The operand of a processing element: a wider format than any that enters, always normalised.

value = (-1)^sign * significand * 2^(exponent - EXPONENT_BIAS - 11), significand in [2^11, 2^12).
Zero: significand 0 and exponent 0. Infinity and NaN: exponent EXPONENT_SPECIAL, significand INFINITY or
NAN. Nine exponent bits reach the lowest half of an FP32 subnormal (2^-149), so BF16, FP16, TF32 and both
halves of an FP32 fit.
"""

from amaranth.lib import data

__all__ = [
    "EXPONENT_BIAS",
    "EXPONENT_BITS",
    "EXPONENT_SPECIAL",
    "INFINITY",
    "NAN",
    "OPERAND",
    "SIGNIFICAND_BITS",
]

SIGNIFICAND_BITS = 12
EXPONENT_BITS = 9
EXPONENT_BIAS = 256
EXPONENT_SPECIAL = 511

INFINITY = 0x800
NAN = 0xC00
"""Significands beside EXPONENT_SPECIAL. Every significand but zero's has its top bit set."""

OPERAND = data.StructLayout({"significand": SIGNIFICAND_BITS, "exponent": EXPONENT_BITS, "sign": 1})
