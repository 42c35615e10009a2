"""Tensors of torch to bits of the machine's formats, and back."""

from collections.abc import Sequence

import numpy as np
import torch

from firmware.host_array import HostArray
from firmware.numbers import bits_dtype
from sim.torch.errors import Unsupported

__all__ = ["FORMATS", "format_of", "from_bits", "same_bits", "to_bits"]

FORMATS = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int32: "int32",
    torch.uint8: "uint8",
    torch.bool: "uint8",
}
"""The format of each dtype that operators on the machine take; a truth value is a byte, 0 or 1."""
_WORDS = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}
_INT32 = torch.iinfo(torch.int32)


def format_of(dtype: torch.dtype) -> str:
    """Errors: Unsupported for a dtype that the machine has not."""
    if dtype not in FORMATS:
        raise Unsupported(f"the machine has no {str(dtype).removeprefix('torch.')}")
    return FORMATS[dtype]


def to_bits(tensor: torch.Tensor) -> HostArray:
    """Bits of a tensor on the CPU, copied. int64 becomes int32 if all its values are such. Errors: Unsupported."""
    found = tensor.detach()
    if found.dtype == torch.int64 and (found.numel() == 0 or _INT32.min <= found.min() and found.max() <= _INT32.max):
        found = found.to(torch.int32)
    dtype = format_of(found.dtype)
    if found.dtype == torch.bool:
        found = found.to(torch.uint8)
    words = found.contiguous().view(_WORDS[found.element_size()])
    return HostArray(np.array(words.numpy(), dtype=bits_dtype(dtype)).reshape(tuple(found.shape)), dtype)


def same_bits(tensor: torch.Tensor, array: HostArray) -> bool:
    """Whether a tensor on the CPU has these bits."""
    if tensor.dtype in (torch.bool, torch.int64):
        return np.array_equal(to_bits(tensor).bits, array.bits)
    words = tensor.detach().contiguous().view(_WORDS[tensor.element_size()])
    return np.array_equal(words.numpy().view(array.bits.dtype).reshape(array.shape), array.bits)


def from_bits(bits: np.ndarray, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """A tensor on the CPU of bits in the format of its dtype."""
    words = torch.from_numpy(np.array(bits).reshape(tuple(shape)))
    return words.to(torch.bool) if dtype == torch.bool else words.view(dtype)
