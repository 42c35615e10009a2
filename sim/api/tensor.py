"""A result or an operand as the machine has it, to be used by later calls."""

from typing import Any

import numpy as np

from firmware.host_array import HostArray
from sim.run.host_arrays import host_array, numpy_array

__all__ = ["Operand", "Tensor", "operand"]


class Tensor:
    """Bits in a format of the machine, by name. Immutable; NumPy takes it wherever it takes an array."""

    __slots__ = ("__weakref__", "_array", "name")

    def __init__(self, name: str, array: HostArray):
        self.name = name
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of each axis."""
        return self._array.shape

    @property
    def format(self) -> str:
        """The machine's name of its format, as bf16 or fp32."""
        return self._array.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of `numpy()`."""
        return numpy_array(self._array).dtype

    @property
    def size_bytes(self) -> int:
        """In HBM."""
        return self._array.bits.nbytes

    @property
    def bits(self) -> HostArray:
        """For programs."""
        return self._array

    def numpy(self) -> np.ndarray:
        """A copy as a NumPy array, bit for bit."""
        return numpy_array(self._array).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self._array})"


Operand = np.ndarray | Tensor | Any
"""An array, a tensor of an earlier call, or what NumPy makes an array of."""


def operand(name: str, value: Operand) -> HostArray:
    """Its bits. Errors: PlexusError for a dtype that the machine has not."""
    return value.bits if isinstance(value, Tensor) else host_array(name, value)
