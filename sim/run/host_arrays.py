"""NumPy arrays to the bits that programs take, and back: the dtype says which format it is."""

from typing import Any

import ml_dtypes
import numpy as np

from firmware.host_array import HostArray
from firmware.numbers import bits_dtype, encode
from rtl.contract.formats import FORMATS
from sim.errors import PlexusError

__all__ = ["KINDS", "copied", "encoded", "host_array", "numpy_array", "plain_array"]

KINDS: dict[str, np.dtype[Any]] = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    **{name: np.dtype(name) for name, fmt in FORMATS.items() if fmt.integer},
}
"""The dtype of each format that NumPy or ml_dtypes has."""
_WIDENED = (
    "float8_e3m4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
)
_AS_FP32 = frozenset([np.dtype(np.float64), *(np.dtype(getattr(ml_dtypes, name)) for name in _WIDENED)])
"""Taken as fp32: float64 rounded, the others exactly."""
_FORMATS = {kind: name for name, kind in KINDS.items()} | dict.fromkeys(_AS_FP32, "fp32")
_FLOATS = frozenset(name for name, fmt in FORMATS.items() if fmt.bits >= 8 and not fmt.integer and name != "e8m0")


def host_array(name: str, array: Any, elements_max: int | None = None) -> HostArray:
    """Bits of an array (or what NumPy makes one of) in the format of its dtype; float64 is rounded to fp32, narrow ones
    that the machine has not are widened to it, all others keep their bits; a contiguous array is not copied. With
    `elements_max`, one of more elements is refused before it is copied. Errors: PlexusError, also for a dtype that the
    machine has not."""
    if array is None:
        raise PlexusError(f"array {name} is None; give an array, or leave it out")
    if isinstance(array, np.ma.MaskedArray):
        raise PlexusError(f"array {name} has a mask, and the machine has none: fill it, as by array.filled(0)")
    try:
        found = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise PlexusError(f"array {name} is none that NumPy takes: {error}") from None
    if elements_max is not None and found.size > elements_max:
        raise PlexusError(
            f"array {name} {found.shape} has {found.size} elements, and HBM holds at most {elements_max} (of 4 bits)"
        )
    kind = found.dtype.newbyteorder("=")
    if kind.type is np.void and kind.names is None:
        raise PlexusError(
            f"array {name} is of dtype {found.dtype}: a file of NumPy keeps no BF16 and no FP8; write it as float32, "
            "which loses nothing, and dtype=bf16 rounds it back"
        )
    if kind not in _FORMATS:
        kinds = ", ".join([kind.name for kind in KINDS.values()] + ["float64"])
        raise PlexusError(
            f"array {name} is of dtype {found.dtype}, which this machine has not; cast it to one of {kinds}"
        )
    dtype = _FORMATS[kind]
    with np.errstate(all="ignore"):  # to infinity, as a conversion does
        whole = np.ascontiguousarray(found.astype(KINDS[dtype], copy=False))
    return HostArray(whole.view(bits_dtype(dtype)).reshape(found.shape), dtype)


def copied(array: HostArray, source: Any) -> HostArray:
    """The same without the memory of what it was made of, which its owner may change."""
    if not isinstance(source, np.ndarray) or np.may_share_memory(array.bits, source):
        return HostArray(array.bits.copy(), array.dtype)
    return array


def encoded(name: str, array: HostArray, dtype: str) -> np.ndarray:
    """Its bits in the format `dtype` of the tensor `name`: as they are, or floating point numbers rounded to nearest
    even. Errors: PlexusError if that would not be the same kind of number."""
    if array.dtype == dtype:
        return array.bits
    if array.floating and dtype in _FLOATS:
        with np.errstate(all="ignore"):
            return encode(array.values, dtype)
    if dtype not in FORMATS and array.bits.dtype == bits_dtype(dtype) and array.dtype.startswith("uint"):
        return array.bits
    wanted = dtype if dtype in FORMATS else f"{dtype}, given as bits of dtype {bits_dtype(dtype).name}"
    raise PlexusError(f"tensor {name} is {wanted}, and the array given for it is {array.dtype}; cast it")


def numpy_array(array: HostArray) -> np.ndarray:
    """The array in the dtype of its format, bit for bit; tf32 as float32, packed formats as their bits."""
    kind = KINDS["fp32"] if array.dtype == "tf32" else KINDS.get(array.dtype, array.bits.dtype)
    return np.ascontiguousarray(array.bits).view(kind).reshape(array.shape)


def plain_array(array: HostArray) -> np.ndarray:
    """The same for a file: what NumPy alone has no dtype for becomes float32, exactly."""
    found = numpy_array(array)
    return found if found.dtype.isbuiltin == 1 else found.astype(np.float32)
