"""An FP32 code as what it means, and how a significand gets its first 1 to the top."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueCastable
from amaranth.lib import data

__all__ = ["BIAS", "ONE", "Fp32", "normalise"]

BIAS = 127
ONE = BIAS << 23
"""The code of 1."""


class Fp32(data.Struct):
    """The fields of a code, and what kind of number it is; `Fp32(value)` looks at 32 bits that are there already."""

    fraction: 23
    exponent: 8  # biased by 127; 0 of zeros and subnormals, all ones of infinities and NaNs
    sign: 1

    @property
    def magnitude(self) -> Value:
        """The code without its sign: greater where the number is, infinity and then NaNs above all."""
        return self.as_value()[:31]

    @property
    def is_normal_or_special(self) -> Value:
        """Neither zero nor subnormal: the hidden bit of the significand."""
        return self.exponent.any()

    @property
    def significand(self) -> Value:
        """24 bits, the hidden one on top; value = significand * 2^(scale - 150)."""
        return Cat(self.fraction, self.is_normal_or_special)

    @property
    def scale(self) -> Value:
        """The exponent field that the significand counts in: 1 for zeros and subnormals."""
        return Mux(self.is_normal_or_special, self.exponent, 1)

    @property
    def is_zero(self) -> Value:
        return ~self.magnitude.any()

    @property
    def is_special(self) -> Value:
        """Infinity or NaN."""
        return self.exponent.all()

    @property
    def is_infinity(self) -> Value:
        return self.is_special & ~self.fraction.any()

    @property
    def is_nan(self) -> Value:
        return self.is_special & self.fraction.any()


def normalise(m: Module, value: Value | ValueCastable, name: str = "") -> tuple[Value, Value]:
    """`value` moved up until its first 1 is the top bit, and by how many bits: its leading zeros.

    Counts while it shifts, in steps of powers of two. A zero stays zero, its count is all ones (of width - 1's bits).
    `name`: before those of its signals, one for each use in a module.
    """
    x = Value.cast(value)
    width = len(x)
    bits = (width - 1).bit_length()
    prefix = f"{name}_" if name else ""
    zeros = Signal(bits, name=f"{prefix}zeros")
    for i in reversed(range(bits)):
        step = 1 << i
        empty = Signal(name=f"{prefix}empty{step}")
        after = Signal(width, name=f"{prefix}after{step}")
        m.d.comb += [
            empty.eq(~x[width - step :].any()),
            after.eq(Mux(empty, Cat(Const(0, step), x[: width - step]), x)),
            zeros[i].eq(empty),
        ]
        x = after
    return x, zeros
