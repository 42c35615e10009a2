"""Workload `attention` on random queries, keys and values: softmax(Q K^T / sqrt(head)) V for each head.

Q^T, K^T [heads, head, tokens] and V [heads, tokens, values] lie in HBM as BF16 and enter the array as they are: scores
are scaled in FP32, behind it. The scalar engine divides the results. With fewer heads of keys and values than of
queries a group of query heads shares one, which is loaded once. A single query a head (a token that is decoded) would
use one row of the array: then the queries of a group are the rows, and each head of keys is gone through once.
"""

import math
from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, TileView
from firmware.kernels.attention_blocks import Sight, identity_bits
from firmware.kernels.attention_core import Attention, Result
from firmware.kernels.attention_operands import Operands
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import Span
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["attention", "attention_macs", "attention_reference", "identity"]

STAGES = 3  # results on their way to HBM


def identity(k: Kernel) -> HbmView:
    """The identity that transposes, as large as the array, in HBM."""
    size = min(k.cfg.tensor.rows, k.cfg.tensor.cols)
    return k.hbm("identity", (size, size), "bf16", np.array(identity_bits(size), np.uint16))


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


def attention(
    cfg: Config,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    causal: bool = False,
    window: int | None = None,
    sinks: np.ndarray | None = None,
) -> Program:
    """A program for float32 q [heads, queries, head], k [key heads, keys, head], v [key heads, keys, values] in BF16.

    causal, window: `Sight`. sinks [heads]: a logit of each head beside its scores, FP32, without a value.
    Output: `context` [heads, queries, values] FP32; of single queries of several heads a key head [key heads, heads of
    a group, values]. Errors: KernelError.
    """
    _shapes(q, k, v)
    sight = Sight(q.shape[1], k.shape[1], causal, window)
    beside = None if sinks is None else np.repeat(sinks[:, None], q.shape[1], axis=1)
    stacked = q.shape[1] == 1 and q.shape[0] > k.shape[0]
    if stacked:
        low = sight.seen(Span(0, 1)).start
        q, k, v = q.reshape(k.shape[0], -1, q.shape[2]), k[:, low:], v[:, low:]
        sight = Sight(q.shape[1], k.shape[1])
        beside = None if beside is None else beside.reshape(q.shape[:2])
    heads, queries, dims = q.shape
    values = v.shape[2]
    kernel = Kernel(cfg, "attention")
    bits = {name: encode(x, "bf16") for name, x in (("q", q), ("k", k), ("v", v))}
    q_view, k_view = (
        kernel.hbm(f"{n}_t", (b.shape[0], dims, b.shape[1]), "bf16", np.ascontiguousarray(b.swapaxes(1, 2)))
        for n, b in ((n, bits[n]) for n in "qk")
    )
    v_view = kernel.hbm("v", v.shape, "bf16", np.ascontiguousarray(bits["v"]))
    context = kernel.hbm("context", (heads, queries, values), "fp32")
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    sink_tile = None if beside is None else _sink_columns(kernel, beside, size)
    engine = Attention(kernel, dims, sight, identity(kernel), values=values, sinks=sink_tile)
    stages = [kernel.sbuf(f"stage{i}", partitions=size, columns=values, dtype="fp32") for i in range(STAGES)]
    stored = 0

    def store(result: Result) -> None:
        nonlocal stored
        rows = result.queries
        stage = stages[stored % STAGES][: rows.size, :]
        stored += 1
        engine.divide(stage, result)
        kernel.dma(context[result.head, rows.start : rows.stop, :], stage)

    engine.run(heads, Operands(kernel, engine, q_view, k_view, v_view).load, store)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The context against float64 attention of the rounded operands."""
        real = [decode(bits[n], "bf16") for n in "qkv"]
        exact = attention_reference(real[0], real[1], real[2], sight, beside)
        return product_metrics(decode(outputs["context"], "fp32"), exact)

    notes = [
        f"the host casts to BF16 and stores Q and K transposed, [{heads}, {dims}, {queries}]",
        f"blocks of {engine.size} queries and {engine.block} keys",
    ]
    if stacked:
        notes.append(f"the single queries of {queries} heads that share keys are the rows of one product")
    return kernel.program(macs=attention_macs(sight, dims, heads, values), notes=notes, metrics=metrics)


def _sink_columns(k: Kernel, sinks: np.ndarray, size: int) -> TileView:
    """Sinks [heads, queries] as columns of SBUF, one for each tile of queries of a head."""
    heads, queries = sinks.shape
    tiles = -(-queries // size)
    padded = np.zeros((heads, tiles * size), np.float32)
    padded[:, :queries] = sinks
    bits = np.ascontiguousarray(encode(padded, "fp32").reshape(heads * tiles, size).T)
    tile = k.sbuf("sinks", partitions=size, columns=heads * tiles, dtype="fp32")
    k.dma(tile[:, :], k.hbm("sink_columns", bits.shape, "fp32", bits)[:, :])
    return tile[:, :]
