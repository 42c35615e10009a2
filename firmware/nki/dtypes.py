"""Number formats by their NKI names."""

from typing import Any

import numpy as np

from firmware.numbers import element_bytes
from firmware.views import KernelError

__all__ = ["NAMES", "DType", "dtype_of", "dtype_of_values"]

NAMES = {
    "float32": "fp32",
    "tfloat32": "tf32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float8_e4m3": "e4m3",
    "float8_e4m3fn": "e4m3fn",
    "float8_e5m2": "e5m2",
    "float8_e4m3fn_x4": "e4m3fn_x4",
    "float8_e5m2_x4": "e5m2_x4",
    "float4_e2m1fn_x4": "e2m1_x4",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "bool_": "uint8",
}
"""NKI name -> format of the machine."""
_BACK = {fmt: name for name, fmt in reversed(NAMES.items())}


class DType(str):
    """A format by its NKI name. `format`: the machine's name."""

    __slots__ = ()

    @property
    def format(self) -> str:
        return NAMES[self]

    @property
    def itemsize(self) -> int:
        return element_bytes(self.format)

    @property
    def name(self) -> str:
        return str(self)


def dtype_of(value: Any) -> DType:
    """The format of a name, a NumPy dtype or a format of the machine. KernelError if there is none."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BACK:
        return DType(_BACK[value])
    try:
        name = value if isinstance(value, str) else np.dtype(value).name
    except TypeError:
        name = str(value)
    name = {"bool": "bool_", "int64": "int32"}.get(name, name)
    if name not in NAMES:
        shown = repr(value) if isinstance(value, str) else name
        raise KernelError(f"there is no dtype {shown}; there are {', '.join(NAMES)}")
    return DType(name)


def dtype_of_values(values: np.ndarray) -> DType:
    """The format of numbers that are known when a kernel is built: FP32 of Python's and NumPy's float64."""
    return dtype_of("float32" if values.dtype == np.float64 else values.dtype)
