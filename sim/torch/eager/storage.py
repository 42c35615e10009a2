"""Tensors on the device `plexus`: torch keeps shape and dtype, and the storage, which all views by torch's own means and
Parameters share, names the tensor on the host that has the elements."""

from typing import Any

import torch

__all__ = ["host_tensor", "on_device", "wrapped"]

_NAME = "plexus_elements"


def on_device(value: Any) -> bool:
    """Whether it is a tensor of this device."""
    return isinstance(value, torch.Tensor) and value.device.type == "plexus"


def wrapped(elements: torch.Tensor) -> torch.Tensor:
    """A tensor on the device with these elements, which stay shared: a view of a tensor is a view of its elements."""
    made = torch._C._acc.create_empty_tensor(tuple(elements.shape), elements.dtype)
    setattr(made.untyped_storage(), _NAME, elements)
    return made


def host_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements."""
    found = getattr(tensor.untyped_storage(), _NAME, None)
    if found is None:  # torch made it without an operator
        found = torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)
        setattr(tensor.untyped_storage(), _NAME, found)
    if found.shape != tensor.shape:  # torch has made a view by itself, and shares the storage
        if found.is_contiguous():
            return found.as_strided(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        return found.reshape(tuple(tensor.shape))
    return found
