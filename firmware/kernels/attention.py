"""Workload `attention` on random queries, keys and values: softmax(Q K^T / sqrt(head)) V for each head.

Q^T, K^T [heads, head, tokens] and V [heads, tokens, values] lie in HBM as BF16 and enter the array as they are: scores
are scaled in FP32, behind it. The scalar engine divides the results. With fewer heads of keys and values than of
queries a group of query heads shares one, which is loaded once. A single query a head (a token that is decoded) would
use one row of the array: then the queries of a group are the rows, and each head of keys is gone through once.
"""

from typing import Any

import numpy as np

from firmware.kernel import Kernel, TileView
from firmware.kernels.attention_heads import AttentionHeads
from firmware.kernels.attention_inputs import AttentionInputs
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import Span
from firmware.numbers import decode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["attention"]


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
    given = AttentionInputs.of(q, k, v, causal=causal, window=window, sinks=sinks)
    kernel = Kernel(cfg, "attention")
    work = AttentionHeads(kernel, given)
    context = kernel.hbm("context", given.context_shape, "fp32")

    def store(head: int, rows: Span, tile: TileView) -> None:
        kernel.dma(context[head, rows.start : rows.stop, :], tile)

    engine = work.start()
    work.run(engine, store)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The context against float64 attention of the rounded operands."""
        return product_metrics(decode(outputs["context"], "fp32"), given.exact())

    heads, queries, dims = given.q.shape
    notes = [
        f"the host casts to BF16 and stores Q and K transposed, [{heads}, {dims}, {queries}]",
        f"blocks of {engine.size} queries and {engine.block} keys",
    ]
    if given.stacked:
        notes.append(f"the single queries of {queries} heads that share keys are the rows of one product")
    return kernel.program(macs=given.macs, notes=notes, metrics=metrics)
