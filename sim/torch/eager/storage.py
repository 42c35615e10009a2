"""Tensors on the device `plexus`: torch keeps shape, strides and dtype; the storage, which Parameters and views share,
names the storage on the host that has the elements."""

from typing import Any

import torch

__all__ = ["host_tensor", "on_device", "renew", "view_of", "wrapped"]

_NAME = "plexus_elements"
_META = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)


def on_device(value: Any) -> bool:
    """Whether it is a tensor of this device."""
    return isinstance(value, torch.Tensor) and value.device.type == "plexus"


def _strided(base: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Another view of the storage of `base`. Torch's kernel for tensors without elements does it; there is none for a
    device that Python makes."""
    as_strided = torch.ops.aten.as_strided.default
    return as_strided.redispatch(_META, base, tuple(like.shape), like.stride(), like.storage_offset())


def wrapped(elements: torch.Tensor) -> torch.Tensor:
    """A tensor on the device with these elements, which stay shared."""
    acc: Any = getattr(torch._C, "_acc")  # noqa: B009 (its types are not told)
    made = acc.create_empty_tensor(tuple(elements.shape), elements.dtype)
    setattr(made.untyped_storage(), _NAME, elements.untyped_storage())
    return made if elements.is_contiguous() and not elements.storage_offset() else _strided(made, elements)


def view_of(tensor: torch.Tensor, elements: torch.Tensor) -> torch.Tensor:
    """A tensor on the device for `elements`: a view of `tensor`, if they are one of its elements."""
    mine = getattr(tensor.untyped_storage(), _NAME, None)
    shared = mine is not None and mine._cdata == elements.untyped_storage()._cdata and tensor.dtype == elements.dtype
    return _strided(tensor, elements) if shared else wrapped(elements)


def renew(tensor: torch.Tensor, elements: torch.Tensor) -> None:
    """Give a tensor the shape that its elements have got in place, as by `t_` and `resize_`."""
    here = (tensor.shape, tensor.stride(), tensor.storage_offset())
    if here != (elements.shape, elements.stride(), elements.storage_offset()):
        tensor.data = _strided(tensor.detach(), elements)


def host_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements."""
    elements = getattr(tensor.untyped_storage(), _NAME, None)
    if elements is None:  # torch made it without an operator
        elements = torch.zeros(tuple(tensor.shape), dtype=tensor.dtype).untyped_storage()
        setattr(tensor.untyped_storage(), _NAME, elements)
    found = torch.empty(0, dtype=tensor.dtype)
    return found.set_(elements, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
