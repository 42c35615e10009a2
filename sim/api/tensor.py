"""A result or an operand as the machine has it, to be used by later calls."""

from typing import Any

import numpy as np
import numpy.typing as npt

from firmware.host_array import HostArray
from rtl.contract.config import Config
from sim.errors import PlexusError
from sim.run.host_arrays import host_array, numpy_array

__all__ = ["Operand", "Tensor", "operand"]


class Tensor:
    """Bits in a format of the machine, by name. Immutable; NumPy takes it wherever it takes an array. Calls and
    `Session.put` make them."""

    __slots__ = ("__weakref__", "_array", "_name")

    def __init__(self, name: str, array: HostArray):
        if not isinstance(array, HostArray):
            raise PlexusError(
                f"tensor {name} is made of bits and their format, not of {type(array).__name__}: Session.put "
                "makes it of an array"
            )
        bits = array.bits.view()
        bits.flags.writeable = False
        self._name = name
        self._array = HostArray(bits, array.dtype)

    def __reduce__(self) -> tuple[type["Tensor"], tuple[str, HostArray]]:
        return Tensor, (self._name, self._array)

    @property
    def name(self) -> str:
        """Of the output or of `put`."""
        return self._name

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
        """For programs, which must not change them."""
        return self._array

    def numpy(self) -> np.ndarray:
        """A copy as a NumPy array, bit for bit."""
        return numpy_array(self._array).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"tensor {self._name} is immutable, so NumPy gets a copy; copy=False asks for none")
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self._array})"


Operand = npt.ArrayLike | Tensor
"""An array, a tensor of an earlier call, or what NumPy makes an array of."""


def operand(name: str, value: Operand, cfg: Config) -> HostArray:
    """Its bits. Errors: PlexusError for a dtype that the machine has not, or what HBM holds in no format."""
    if isinstance(value, Tensor):
        return value.bits
    return host_array(name, value, elements_max=cfg.hbm.capacity_mib << 21)
