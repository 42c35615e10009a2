"""Workload `attention` on random queries, keys and values: softmax(Q K^T / sqrt(head)) V for each head.

Q^T, K^T [heads, head, seq] and V [heads, seq, head] lie in HBM as BF16. The scalar engine scales Q and divides the
results. With `causal` a query sees the keys up to its own place.
"""

import math
from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, Tile, TileView
from firmware.kernels.attention_core import Attention, Head, identity_bits
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import Span, spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["attention", "attention_macs", "attention_reference", "identity"]

SETS = 3  # heads in use at once: attention_core.Attention.run
STAGES = 3  # results on their way to HBM


def identity(k: Kernel) -> HbmView:
    """The identity that transposes, as large as the array, in HBM."""
    size = min(k.cfg.tensor.rows, k.cfg.tensor.cols)
    return k.hbm("identity", (size, size), "bf16", np.array(identity_bits(size), np.uint16))


def attention_reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    """Attention of [heads, seq, head] in float64."""
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / math.sqrt(q.shape[2])
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights @ v.astype(np.float64) / weights.sum(axis=2, keepdims=True)


def attention_macs(seq: int, head: int, heads: int, *, causal: bool = False) -> int:
    """Useful multiply-adds: both products, only of keys that a query sees."""
    pairs = seq * (seq + 1) // 2 if causal else seq * seq
    return 2 * pairs * head * heads


class _Operands:
    """SBUF for the operands of SETS heads, and their loads."""

    def __init__(self, k: Kernel, q_t: HbmView, k_t: HbmView, v: HbmView):
        self.k = k
        self.views = q_t, k_t, v
        self.heads, self.dims, self.seq = q_t.shape
        self.size = min(k.cfg.tensor.rows, k.cfg.tensor.cols)
        self.parts = spans(self.dims, k.cfg.tensor.rows)
        self.keys = spans(self.seq, self.size)
        self.sets = [self._set(i) for i in range(min(SETS, self.heads))]

    def _set(self, number: int) -> dict[str, list[Tile]]:
        def axis(name: str) -> list[Tile]:
            return [
                self.k.sbuf(f"{name}{number}_{i}", partitions=part.size, columns=self.seq, dtype="bf16")
                for i, part in enumerate(self.parts)
            ]

        columns = len(self.keys) * self.dims
        v = self.k.sbuf(f"v{number}", partitions=self.size, columns=columns, dtype="bf16")
        return {"raw": axis("q_raw"), "q": axis("q"), "k": axis("k"), "v": [v]}

    def load(self, head: int) -> Head:
        """Bring a head's operands into SBUF."""
        k, tiles = self.k, self.sets[head % len(self.sets)]
        q_t, k_t, v = self.views
        scale = 1 / math.sqrt(self.dims)
        for part, raw, q, keys in zip(self.parts, tiles["raw"], tiles["q"], tiles["k"], strict=True):
            rows = slice(part.start, part.stop)
            k.dma(raw[:, :], q_t[head, rows, :])
            k.dma(keys[:, :], k_t[head, rows, :])
            k.scalar.activation(q[:, :], raw[:, :], "copy", scale=scale)
        values = tiles["v"][0]
        whole = self.seq // self.size
        if whole:
            source = v[head, : whole * self.size, :].split(0, self.size).permute((1, 0, 2))
            k.dma(values[:, : whole * self.dims].split(0, self.dims), source)
        if self.seq % self.size:
            rest = slice(whole * self.size, self.seq)
            k.dma(values[: self.seq % self.size, whole * self.dims :], v[head, rest, :])
        return Head(
            [t[:, :] for t in tiles["q"]],
            [t[:, :] for t in tiles["k"]],
            [values[: s.size, i * self.dims : (i + 1) * self.dims] for i, s in enumerate(self.keys)],
        )


def attention(cfg: Config, q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> Program:
    """A program for float32 arrays [heads, seq, head], rounded to BF16. Output: `context`, FP32. KernelError."""
    heads, seq, dims = q.shape
    if min(q.shape) < 1:
        raise KernelError(f"attention needs at least one head, token and dimension, not {q.shape}")
    kernel = Kernel(cfg, "attention")
    bits = {name: encode(x, "bf16") for name, x in (("q", q), ("k", k), ("v", v))}
    q_view, k_view = (
        kernel.hbm(f"{n}_t", (heads, dims, seq), "bf16", np.ascontiguousarray(bits[n].swapaxes(1, 2))) for n in "qk"
    )
    v_view = kernel.hbm("v", (heads, seq, dims), "bf16", np.ascontiguousarray(bits["v"]))
    context = kernel.hbm("context", (heads, seq, dims), "fp32")
    engine = Attention(kernel, dims, seq, identity(kernel), causal=causal)
    stages = [kernel.sbuf(f"stage{i}", partitions=engine.size, columns=dims, dtype="fp32") for i in range(STAGES)]
    stored = 0

    def store(head: int, queries: Span, out: TileView, inverse: TileView) -> None:
        nonlocal stored
        stage = stages[stored % STAGES][: queries.size, :]
        stored += 1
        kernel.scalar.activation(stage, out, "copy", scale=inverse)
        kernel.dma(context[head, queries.start : queries.stop, :], stage)

    engine.run(heads, _Operands(kernel, q_view, k_view, v_view).load, store)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The context against float64 attention of the rounded operands."""
        exact = attention_reference(*(decode(bits[n], "bf16") for n in "qkv"), causal=causal)
        return product_metrics(decode(outputs["context"], "fp32"), exact)

    notes = [
        f"the host casts to BF16 and stores Q and K transposed, [{heads}, {dims}, {seq}]",
        f"blocks of {engine.size} queries and {engine.block} keys",
    ]
    return kernel.program(macs=attention_macs(seq, dims, heads, causal=causal), notes=notes, metrics=metrics)
