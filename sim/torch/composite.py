"""Operators that torch would take apart while it traces, kept whole: attention and RMSNorm."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx

__all__ = ["attention", "keep_whole", "rms_norm"]


@torch.library.custom_op("plexus::attention", mutates_args=())
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None, grouped: bool
) -> Tensor:
    """scaled_dot_product_attention without dropout."""
    found = F.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, scale=scale, enable_gqa=grouped)
    return found.contiguous()


@attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None, grouped: bool) -> Tensor:
    lead = q.shape[:-2] if grouped else torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    return q.new_empty((*lead, q.shape[-2], v.shape[-1]))


@torch.library.custom_op("plexus::rms_norm", mutates_args=())
def rms_norm(x: Tensor, size: Sequence[int], gain: Tensor | None, epsilon: float | None) -> Tensor:
    """torch's rms_norm over the last axes."""
    return F.rms_norm(x, list(size), gain, epsilon).contiguous()


@rms_norm.register_fake
def _(x: Tensor, size: Sequence[int], gain: Tensor | None, epsilon: float | None) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> tuple[Any, ...] | None:
    return None if dropout_p else (query, key, value, attn_mask, is_causal, scale, enable_gqa)


def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> tuple[Any, ...]:
    return input, list(normalized_shape), weight, eps


_WHOLE = {
    F.scaled_dot_product_attention: (_attention, torch.ops.plexus.attention.default),
    F.rms_norm: (_rms_norm, torch.ops.plexus.rms_norm.default),
    torch.rms_norm: (_rms_norm, torch.ops.plexus.rms_norm.default),
}


def keep_whole(graph: fx.Graph) -> None:
    """Calls of these functions in a graph of torch.compile become our operators."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target not in _WHOLE:
            continue
        arguments, operator = _WHOLE[node.target]
        args = arguments(*node.args, **node.kwargs)
        if args is not None:
            node.target, node.args, node.kwargs = operator, args, {}
