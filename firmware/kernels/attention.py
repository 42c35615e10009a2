"""Workload `attention` on random queries, keys and values: softmax(Q K^T / sqrt(head)) V for each head.

Q^T, K^T [heads, head, seq] and V [heads, seq, head] lie in HBM as BF16 and enter the array as they are: scores are
scaled in FP32, behind it. The scalar engine divides the results. With `causal` a query sees the keys up to its own.
"""

import math
from typing import Any

import numpy as np

from firmware.kernel import ALLOCATION_BYTES, HbmView, Kernel, KernelError, Tile
from firmware.kernels.attention_blocks import identity_bits
from firmware.kernels.attention_core import FIRST_TILES, Attention, Head, Result
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import Span, cut_spans, spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["attention", "attention_macs", "attention_reference", "identity"]

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
    """SBUF for the operands of some heads, and their loads: what is used first comes first."""

    def __init__(self, k: Kernel, engine: Attention, q_t: HbmView, k_t: HbmView, v: HbmView):
        self.k = k
        self.views = q_t, k_t, v
        self.heads, self.dims, self.seq = q_t.shape
        self.size, self.block = engine.size, engine.block
        self.parts = spans(self.dims, k.cfg.tensor.rows)
        self.keys = spans(self.seq, self.size)
        wide = -(-self.seq * 2 // ALLOCATION_BYTES) * ALLOCATION_BYTES
        each = 2 * len(self.parts) * wide + -(-len(self.keys) * self.dims * 2 // ALLOCATION_BYTES) * ALLOCATION_BYTES
        least, most = engine.heads_at_once(self.heads)
        room = (k.sbuf_free() - ALLOCATION_BYTES - engine.scaled_bytes) // each
        self.sets = [self._set(i) for i in range(max(least, min(most, room)))]

    def _set(self, number: int) -> dict[str, list[Tile]]:
        def axis(name: str) -> list[Tile]:
            return [
                self.k.sbuf(f"{name}{number}_{i}", partitions=part.size, columns=self.seq, dtype="bf16")
                for i, part in enumerate(self.parts)
            ]

        columns = len(self.keys) * self.dims
        v = self.k.sbuf(f"v{number}", partitions=self.size, columns=columns, dtype="bf16")
        return {"q": axis("q"), "k": axis("k"), "v": [v]}

    def _columns(self, tiles: list[Tile], source: HbmView, head: int, part: Span) -> None:
        """Some columns of Q^T or K^T."""
        for rows, tile in zip(self.parts, tiles, strict=True):
            columns = slice(part.start, part.stop)
            self.k.dma(tile[:, columns], source[head, rows.start : rows.stop, columns])

    def load(self, head: int) -> Head:
        """Bring a head's operands into SBUF."""
        tiles = self.sets[head % len(self.sets)]
        q_t, k_t, v = self.views
        # The first head's come in pieces: the first product needs a tile of Q and some tiles of K.
        places = [n * self.size for n in FIRST_TILES] + [self.block]
        queries = cut_spans(self.seq, [] if head else [self.size])
        keys = cut_spans(self.seq, [] if head else places)
        order = [("q", q_t, queries[0]), *(("k", k_t, part) for part in keys[: len(places)])]
        order += [*(("q", q_t, part) for part in queries[1:]), *(("k", k_t, part) for part in keys[len(places) :])]
        for name, source, part in order:
            self._columns(tiles[name], source, head, part)
        values = tiles["v"][0]
        whole = self.seq // self.size
        if whole:
            source = v[head, : whole * self.size, :].split(0, self.size).permute((1, 0, 2))
            self.k.dma(values[:, : whole * self.dims].split(0, self.dims), source)
        if self.seq % self.size:
            rest = slice(whole * self.size, self.seq)
            self.k.dma(values[: self.seq % self.size, whole * self.dims :], v[head, rest, :])
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

    def store(result: Result) -> None:
        nonlocal stored
        rows = result.queries
        stage = stages[stored % STAGES][: rows.size, :]
        stored += 1
        engine.divide(stage, result)
        kernel.dma(context[result.head, rows.start : rows.stop, :], stage)

    engine.run(heads, _Operands(kernel, engine, q_view, k_view, v_view).load, store)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The context against float64 attention of the rounded operands."""
        exact = attention_reference(*(decode(bits[n], "bf16") for n in "qkv"), causal=causal)
        return product_metrics(decode(outputs["context"], "fp32"), exact)

    notes = [
        f"the host casts to BF16 and stores Q and K transposed, [{heads}, {dims}, {seq}]",
        f"blocks of {engine.size} queries and {engine.block} keys",
    ]
    return kernel.program(macs=attention_macs(seq, dims, heads, causal=causal), notes=notes, metrics=metrics)
