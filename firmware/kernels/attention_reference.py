"""Attention in float64, and how much of it is useful work."""

import math

import numpy as np

from firmware.kernels.attention_blocks import Sight
from firmware.kernels.spans import Span

__all__ = ["attention_macs", "attention_reference"]


def attention_reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, sight: Sight, sinks: np.ndarray | None = None
) -> np.ndarray:
    """Attention of q [heads, queries, head] to k, v [key heads, keys, ...] in float64; sinks [heads, queries]."""
    group = q.shape[0] // k.shape[0]
    keys, values = (np.repeat(x.astype(np.float64), group, axis=0) for x in (k, v))
    scores = q.astype(np.float64) @ keys.swapaxes(1, 2) / math.sqrt(q.shape[2])
    for i in range(sight.queries):
        seen = sight.seen(Span(i, 1))
        scores[:, i, : seen.start] = scores[:, i, seen.stop :] = -np.inf
    top = scores.max(axis=2, keepdims=True)
    if sinks is not None:
        top = np.maximum(top, sinks[:, :, None])
    weights = np.exp(scores - top)
    total = weights.sum(axis=2, keepdims=True)
    return weights @ values / (total if sinks is None else total + np.exp(sinks[:, :, None] - top))


def attention_macs(sight: Sight, head: int, heads: int, values: int | None = None) -> int:
    """Useful multiply-adds: both products, only of keys that a query sees."""
    return sight.pairs * (head + (values or head)) * heads
