"""Values to bit patterns and back, for the dtypes that programs use; NumPy only.

Bits are unsigned arrays: uint32 for fp32, uint16 for bf16 and fp16, uint8 for uint8.
"""

from typing import Any

import numpy as np

from rtl.contract.formats import FORMATS

__all__ = ["bits_dtype", "decode", "element_bytes", "encode"]

_BITS: dict[str, Any] = {"fp32": np.uint32, "bf16": np.uint16, "fp16": np.uint16, "uint8": np.uint8}


def bits_dtype(dtype: str) -> np.dtype:
    """The unsigned NumPy dtype that holds one element. ValueError if programs do not use the format."""
    if dtype not in _BITS:
        raise ValueError(f"dtype must be one of {', '.join(_BITS)}, not {dtype!r}")
    return np.dtype(_BITS[dtype])


def element_bytes(dtype: str) -> int:
    """Bytes of an element in memory."""
    bits_dtype(dtype)
    return FORMATS[dtype].bytes


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values to bits, rounded to nearest even; a NaN becomes the canonical quiet NaN."""
    kind = bits_dtype(dtype)
    if dtype == "uint8":
        return np.asarray(values, np.uint8)
    x = np.asarray(values, np.float32)
    if dtype == "fp32":
        return x.view(kind)
    if dtype == "fp16":
        with np.errstate(over="ignore"):
            return np.where(np.isnan(x), np.uint16(0x7E00), x.astype(np.float16).view(np.uint16))
    bits = x.view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)  # only a NaN can wrap
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def decode(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Bits to float32 values, exactly; uint8 stays as it is."""
    b = np.asarray(bits, bits_dtype(dtype))
    if dtype == "uint8":
        return b
    if dtype == "fp32":
        return b.view(np.float32)
    if dtype == "fp16":
        return b.view(np.float16).astype(np.float32)
    return (b.astype(np.uint32) << 16).view(np.float32)
