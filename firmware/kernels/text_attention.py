"""Workload `attention` of a text: layer 0 of all-MiniLM-L6-v2, projections with biases, softmax, context.

The host looks up embeddings and normalises them, in FP32. Where SBUF has no room for x^T it comes from HBM in pieces,
as often as a projection needs it.
"""

from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, TileView
from firmware.kernels.attention_blocks import Sight
from firmware.kernels.attention_core import Result
from firmware.kernels.attention_heads import STAGES
from firmware.kernels.attention_reference import attention_macs
from firmware.kernels.gemm import product_metrics
from firmware.kernels.linear import Operand
from firmware.kernels.minilm import embed, model_tensors, text_tokens
from firmware.kernels.minilm_reference import HEADS, WIDTH, layer_values, reference_layer
from firmware.kernels.self_attention import SelfAttention, weight_tensors
from firmware.kernels.spans import Span, spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["text_attention"]

DIMS = WIDTH // HEADS
PIECES = 4  # pieces of x^T in SBUF, if it does not fit


def _operand(k: Kernel, x_t: HbmView, size: int, limit: int) -> Operand:
    """x^T of HBM, in SBUF as a whole if it fits, else in pieces of at most `limit` tokens that come when asked for."""
    depth, tokens = x_t.shape
    cuts = spans(depth, size)
    row_bytes = -(-tokens * 2 // 16) * 16
    if len(cuts) * row_bytes <= k.sbuf_free() - 16:
        whole = [k.sbuf(f"x_t{i}", partitions=c.size, columns=tokens, dtype="bf16") for i, c in enumerate(cuts)]
        for tile, cut in zip(whole, cuts, strict=True):
            k.dma(tile[:, :], x_t[cut.start : cut.stop, :])
        return lambda i, part: whole[i][:, part.start : part.stop]
    pieces = [k.sbuf(f"x_t{i}", partitions=size, columns=limit, dtype="bf16") for i in range(PIECES)]
    count = 0

    def fetch(i: int, part: Span) -> TileView:
        nonlocal count
        cut = cuts[i]
        view = pieces[count % PIECES][: cut.size, : part.size]
        count += 1
        k.dma(view, x_t[cut.start : cut.stop, part.start : part.stop])
        return view

    return fetch


def text_attention(cfg: Config, *, text: str, heads: int = 1) -> Program:
    """The first `heads` heads of layer 0 for a text. Output: `context` [tokens, 32 heads] FP32. KernelError."""
    if not 1 <= heads <= HEADS:
        raise KernelError(f"heads must be from 1 to {HEADS}, those of a layer of the model, not {heads}")
    tensors, ids = model_tensors(), text_tokens(text)
    x = embed(ids, tensors)
    tokens, columns = len(ids), heads * DIMS
    k = Kernel(cfg, "attention")
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    values = layer_values(tensors, 0)
    first = {n: values[n][:columns] for p in ("query", "key", "value") for n in (p, f"{p}_bias")}
    weights = weight_tensors(k, "", first)
    x_t = k.hbm("x_t", (WIDTH, tokens), "bf16", np.ascontiguousarray(encode(x.T, "bf16")))
    context = k.hbm("context", (tokens, columns), "fp32")
    limit = min(-(-tokens // size) * size, cfg.tensor.moving_max, max(size, cfg.psum.bank_bytes // 4))
    attention = SelfAttention(k, tokens, DIMS, heads, tokens_max=limit)
    tall = min(size, tokens)
    value_bias = k.sbuf("value_row", partitions=tall, columns=columns, dtype="fp32")
    stages = [k.sbuf(f"stage{i}", partitions=tall, columns=DIMS, dtype="fp32") for i in range(STAGES)]
    x_operand = _operand(k, x_t, size, limit)
    k.dma(value_bias[:, :], weights["value_bias"].repeat(tall))
    attention.project(weights, x_operand, value_bias[:, :])
    stored = 0

    def store(result: Result) -> None:
        nonlocal stored
        rows = result.queries
        stage = stages[stored % STAGES][: rows.size, :]
        stored += 1
        attention.attention.divide(stage, result)
        k.dma(context[rows.start : rows.stop, result.head * DIMS : (result.head + 1) * DIMS], stage)

    attention.run(store)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The context against FP32, with nothing cast."""
        exact = reference_layer(values, x)["context"][:, :columns]
        return {"tokens": tokens, **product_metrics(decode(outputs["context"], "fp32"), exact)}

    notes = [
        f"the text has {tokens} tokens; the host computes their embeddings and LayerNorm in FP32",
        f"the host casts X and the weights to BF16 and transposes both to K-major [{WIDTH}, ...]",
        "projections, biases, softmax and context are computed by the core; errors are against FP32 of uncast operands",
    ]
    macs = 3 * tokens * WIDTH * columns + attention_macs(Sight(tokens, tokens), DIMS, heads)
    return k.program(macs=macs, notes=notes, metrics=metrics)
