"""Formats of a matrix product: how the host rounds, quantises and packs the two operands of each `dtype`."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from firmware.kernel import KernelError
from firmware.numbers import encode
from firmware.packing import MX_BLOCK, NVFP4_BLOCK, Packed, pack, quantise_mx, quantise_nvfp4
from rtl.contract.config import Config

__all__ = ["GEMM_FORMATS", "GemmFormat", "packed_operand"]


@dataclass(frozen=True, slots=True)
class GemmFormat:
    """Formats of A and of B, numbers that a row takes at once, how many share a scale, what the array needs."""

    a: str
    b: str
    elements: int = 1
    block: int = 1
    scales: str = ""
    passes: int = 1
    setting: str = ""

    @property
    def rate(self) -> Fraction:
        """Multiply-adds that a processing element does in a cycle."""
        return Fraction(self.elements, self.passes)


GEMM_FORMATS = {
    "bf16": GemmFormat("bf16", "bf16"),
    "fp16": GemmFormat("fp16", "fp16"),
    "tf32": GemmFormat("tf32", "tf32"),
    "fp32": GemmFormat("fp32", "fp32", passes=4),
    "fp8": GemmFormat("e4m3fn_x2", "e4m3fn_x2", 2, setting="mx"),
    "mxfp8": GemmFormat("e4m3fn_x4", "e4m3fn_x4", 4, MX_BLOCK, "e8m0", setting="mx"),
    "mxfp4": GemmFormat("e2m1_x4", "e2m1_x4", 4, MX_BLOCK, "e8m0", setting="mx"),
    "w4a8": GemmFormat("e4m3fn_x4", "e2m1_x4", 4, MX_BLOCK, "e8m0", setting="mx"),
    "nvfp4": GemmFormat("e2m1_x4", "e2m1_x4", 4, NVFP4_BLOCK, "e4m3fn", setting="nvfp4"),
}
"""By the name that a workload gives: activations A, weights B."""


def packed_operand(cfg: Config, name: str, side: str, values: np.ndarray) -> Packed:
    """Operand "a" or "b" of format `name` from float32 values [K, columns]. KernelError, one sentence."""
    fmt = GEMM_FORMATS[name]
    if fmt.setting and not getattr(cfg.tensor, fmt.setting):
        raise KernelError(f"dtype={name} needs the setting tensor.{fmt.setting}=true, for {cfg.name} has none")
    if len(values) % fmt.block:
        raise KernelError(f"k={len(values)} is no multiple of {fmt.block}, the elements of {name} that share a scale")
    dtype = getattr(fmt, side)
    if fmt.scales == "e4m3fn":
        return quantise_nvfp4(values)
    if fmt.scales:
        return quantise_mx(values, dtype.split("_")[0])
    if fmt.elements > 1:
        whole = np.pad(values, ((0, -len(values) % fmt.elements), (0, 0)))  # +0 x +0 adds nothing to an exact sum
        return Packed(dtype, pack(encode(whole, dtype.split("_")[0]), dtype))
    return Packed(dtype, encode(values, dtype))
