"""An array of the host as a program takes it: bits and the name of their format."""

from dataclasses import dataclass

import numpy as np

from firmware.numbers import decode
from rtl.contract.formats import FORMATS

__all__ = ["HostArray"]


@dataclass(frozen=True, slots=True)
class HostArray:
    """`bits`, unsigned and as wide as an element (numbers.encode), of a format that programs use."""

    bits: np.ndarray
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of each axis."""
        return self.bits.shape

    @property
    def floating(self) -> bool:
        """Whether an element is a single floating point number; not an integer, a scale or a packed group."""
        return self.dtype in FORMATS and not FORMATS[self.dtype].integer and self.dtype != "e8m0"

    @property
    def values(self) -> np.ndarray:
        """float32 values of a floating one, exactly."""
        return decode(self.bits, self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"
