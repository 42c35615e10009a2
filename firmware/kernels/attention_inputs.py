"""Queries, keys and values of attention on the host, as a core takes them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from firmware.kernel import KernelError
from firmware.kernels.attention_blocks import Sight
from firmware.kernels.attention_reference import attention_macs, attention_reference
from firmware.kernels.spans import Span
from firmware.numbers import decode, encode

__all__ = ["AttentionInputs"]


def _shapes(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    """KernelError unless they go together."""
    if min(*q.shape, *k.shape, *v.shape) < 1:
        raise KernelError(
            f"attention needs at least one head, token and dimension, not {q.shape}, {k.shape}, {v.shape}"
        )
    if q.shape[2] != k.shape[2] or k.shape[:2] != v.shape[:2]:
        raise KernelError(f"queries {q.shape}, keys {k.shape} and values {v.shape} do not go together")
    if q.shape[0] % k.shape[0]:
        raise KernelError(f"{q.shape[0]} heads are no multiple of the {k.shape[0]} heads of keys that they share")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionInputs:
    """BF16 bits q [heads, queries, head], k [key heads, keys, head], v [key heads, keys, values]; float32 sinks [heads,
    queries] or None. `stacked`: the single queries of the heads of a group are the queries of one head."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    sight: Sight
    sinks: np.ndarray | None
    stacked: bool

    @classmethod
    def of(
        cls,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        causal: bool = False,
        window: int | None = None,
        sinks: np.ndarray | None = None,
    ) -> Self:
        """From float32 q [heads, queries, head], k and v [key heads, keys, ...], sinks [heads]. Single queries of heads
        that share keys are stacked. Errors: KernelError."""
        _shapes(q, k, v)
        sight = Sight(q.shape[1], k.shape[1], causal, window)
        beside = None if sinks is None else np.repeat(sinks[:, None], q.shape[1], axis=1)
        stacked = q.shape[1] == 1 and q.shape[0] > k.shape[0]
        if stacked:
            low = sight.seen(Span(0, 1)).start
            q, k, v = q.reshape(k.shape[0], -1, q.shape[2]), k[:, low:], v[:, low:]
            sight = Sight(q.shape[1], k.shape[1])
            beside = None if beside is None else beside.reshape(q.shape[:2])
        bits = [encode(x, "bf16") for x in (q, k, v)]
        return cls(q=bits[0], k=bits[1], v=bits[2], sight=sight, sinks=beside, stacked=stacked)

    @property
    def context_shape(self) -> tuple[int, int, int]:
        """Of the result: heads, queries, values."""
        return self.q.shape[0], self.q.shape[1], self.v.shape[2]

    @property
    def macs(self) -> int:
        """Useful multiply-adds."""
        heads, _, values = self.context_shape
        return attention_macs(self.sight, self.q.shape[2], heads, values)

    def exact(self) -> np.ndarray:
        """The result in float64, of the rounded operands."""
        q, k, v = (decode(bits, "bf16") for bits in (self.q, self.k, self.v))
        return attention_reference(q, k, v, self.sight, self.sinks)
