"""Operands of the array that take several elements a row: host-side packing, and quantisation in MX blocks.

Element q of row i of a packed operand is element k = n i + q of the product's K axis, n elements a row; row i of
a K tile lies on partition i. So an MX block of 32 elements is 32 successive k: eight rows of four; a NVFP4
block of 16 is four rows. Source of the blocks' rules: OCP MX 1.0, sections 5.1 to 5.4 and 6.3.
"""

from dataclasses import dataclass

import numpy as np

from firmware.numbers import bits_dtype, decode, encode, split_format
from rtl.contract.formats import FORMATS

__all__ = ["Packed", "pack", "quantise_mx", "quantise_nvfp4", "unpack"]

_EMAX = {"e4m3fn": 8, "e5m2": 15, "e2m1": 2}
_LARGEST = {"e4m3fn": 448.0, "e5m2": 57344.0, "e2m1": 6.0}
MX_BLOCK, NVFP4_BLOCK = 32, 16
_NAN_SCALE = 0xFF  # E8M0


@dataclass(frozen=True, slots=True)
class Packed:
    """An operand [K, columns] as the array takes it: `elements` [K / n, columns] of `dtype`, `scales` [blocks,
    columns] of `scale_dtype` or None; `factor`: what all values are to be multiplied with in the end."""

    dtype: str
    elements: np.ndarray
    scale_dtype: str = ""
    scales: np.ndarray | None = None
    factor: float = 1.0

    def values(self) -> np.ndarray:
        """What the elements are worth, float64 [K, columns]."""
        base, _ = split_format(self.dtype)
        worth = decode(unpack(self.elements, self.dtype), base).astype(np.float64)
        if self.scales is not None:
            if self.scale_dtype == "e8m0":
                scales = np.ldexp(1.0, self.scales.astype(np.int64) - 127)
                scales = np.where(self.scales == _NAN_SCALE, np.nan, scales)
            else:
                scales = decode(self.scales, self.scale_dtype).astype(np.float64)
            worth = worth * np.repeat(scales, len(worth) // len(scales), axis=0)
        with np.errstate(invalid="ignore"):  # nvfp4 of an infinity: 0 x inf
            return worth * self.factor


def pack(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Codes u8 [K, columns] to groups [K / n, columns] of the packed format `dtype`; n divides K."""
    base, count = split_format(dtype)
    bits = FORMATS[base].bits
    kind = bits_dtype(dtype)
    groups = codes.reshape(len(codes) // count, count, -1).astype(kind)
    packed = np.zeros((groups.shape[0], groups.shape[2]), kind)
    for q in range(count):
        packed |= groups[:, q] << kind.type(bits * q)
    return packed


def unpack(packed: np.ndarray, dtype: str) -> np.ndarray:
    """The codes that `pack` took."""
    base, count = split_format(dtype)
    if count == 1:
        return packed
    bits = FORMATS[base].bits
    parts = [packed >> packed.dtype.type(bits * q) & packed.dtype.type((1 << bits) - 1) for q in range(count)]
    return np.stack(parts, axis=1).reshape(-1, packed.shape[1]).astype(np.uint8)


def _blocks(values: np.ndarray, size: int) -> np.ndarray:
    return np.asarray(values, np.float64).reshape(len(values) // size, size, -1)


def _elements(values: np.ndarray, base: str) -> np.ndarray:
    """Codes of values to nearest even, too large ones to the largest number."""
    largest = _LARGEST[base]
    return encode(np.clip(values, -largest, largest).astype(np.float32), base)


def quantise_mx(values: np.ndarray, base: str) -> Packed:
    """Values [K, columns] in blocks of 32 along K, rule `ocp`: E8M0 scale 2^(floor(log2 largest) - Emax). A block with
    a NaN or an infinity has the scale of a NaN and elements 0, as the machine's own QUANTIZE leaves it."""
    blocks = _blocks(values, MX_BLOCK)
    finite = np.isfinite(blocks).all(axis=1)
    blocks = np.where(np.expand_dims(finite, 1), blocks, 0.0)
    largest = np.abs(blocks).max(axis=1)
    exponents = np.where(largest > 0, np.frexp(largest)[1] - 1 - _EMAX[base], -127)
    exponents = np.clip(exponents, -127, 127)
    codes = _elements(blocks / np.ldexp(1.0, exponents)[:, None], base)
    dtype = f"{base}_x4"
    scales = np.where(finite, exponents + 127, _NAN_SCALE).astype(np.uint8)
    return Packed(dtype, pack(codes.reshape(values.shape), dtype), "e8m0", scales)


def quantise_nvfp4(values: np.ndarray) -> Packed:
    """Values [K, columns] as E2M1 in blocks of 16 along K, E4M3FN scales, and one FP32 factor for all. E2M1 has no NaN:
    one NaN or infinity makes the factor, and so every result, a NaN."""
    top = float(np.abs(values).max())
    factor = float(np.float32(top / (_LARGEST["e2m1"] * _LARGEST["e4m3fn"]))) or 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        blocks = _blocks(values, NVFP4_BLOCK) / factor
        scales = _elements(np.abs(blocks).max(axis=1) / _LARGEST["e2m1"], "e4m3fn")
        divisor = decode(scales, "e4m3fn").astype(np.float64)[:, None]
        scaled = np.where(divisor > 0, blocks / divisor, 0.0)
    codes = _elements(scaled, "e2m1")
    return Packed("e2m1_x4", pack(codes.reshape(values.shape), "e2m1_x4"), "e4m3fn", scales, factor)
