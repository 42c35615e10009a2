"""Workload `gated-ffn`: y = (silu(x Wg) * (x Wu)) Wd for rows of tokens, the feed-forward block of Llama and its kin.

The inner values lie transposed, features on partitions, and stay in SBUF. The gate comes first, through the scalar
engine; then the vector engine multiplies it with x Wu as that leaves PSUM.
"""

from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError, TileView
from firmware.kernels.feed_forward import ACTIVATIONS, SLOTS, STAGES, feature_tiles, tokens_held
from firmware.kernels.gemm import product_metrics
from firmware.kernels.linear import Linear, psum_tiles
from firmware.kernels.spans import Span, spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["gated_ffn"]


def gated_ffn(cfg: Config, x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> Program:
    """A program for float32 x [tokens, width], gate and up [hidden, width], down [width, hidden], all in BF16.

    Output: `y` [tokens, width], FP32. Error, against float64 of the rounded operands: inner values within 2^-7 of
    themselves and the table's 2^-12. Errors: KernelError.
    """
    (tokens, width), hidden = x.shape, up.shape[0]
    if min(tokens, width, hidden) < 1 or gate.shape != up.shape:
        raise KernelError(f"gated-ffn needs tokens, width and hidden of at least 1, not {x.shape} and {up.shape}")
    k = Kernel(cfg, "gated-ffn")
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    operands = (("x", x), ("gate", gate), ("up", up), ("down", down))
    bits = {n: np.ascontiguousarray(encode(a.T, "bf16")) for n, a in operands}
    views = {n: k.hbm(f"{n}_t", b.shape, "bf16", b) for n, b in bits.items()}
    y = k.hbm("y", (tokens, width), "fp32")
    k.scalar.load_table(["silu"])
    wide, deep = spans(width, size), spans(hidden, size)
    linear = Linear(k, psum_tiles(k, min(cfg.tensor.moving_max, cfg.psum.bank_bytes // 4)), SLOTS)
    tall = min(size, tokens)
    stages = [
        k.sbuf(f"stage{i}", partitions=tall, columns=min(width, linear.columns), dtype="fp32") for i in range(STAGES)
    ]
    held = tokens_held(k, "gated-ffn", tokens, len(wide) + len(deep), size)
    x_t, x_operand = feature_tiles(k, "x", wide, held)
    inner, inner_operand = feature_tiles(k, "inner", deep, held)
    stored = 0

    def take_gate(features: Span, part: Span, sums: TileView) -> None:
        k.scalar.activation(inner[features.start // size][:, part.start : part.stop], sums, "silu")

    def take_up(features: Span, part: Span, sums: TileView) -> None:
        place = inner[features.start // size][:, part.start : part.stop]
        k.vector.tensor_tensor(place, sums, "multiply", place)

    for group in spans(tokens, held):
        for tile, cut in zip(x_t, wide, strict=True):
            k.dma(tile[:, : group.size], views["x"][cut.start : cut.stop, group.start : group.stop])

        def take_out(part: Span, columns: Span, sums: TileView, first: int = group.start) -> None:
            nonlocal stored
            stage = stages[stored % len(stages)][: part.size, : columns.size]
            stored += 1
            k.vector.copy(stage, sums)
            k.dma(y[first + part.start : first + part.stop, columns.start : columns.stop], stage)

        linear.by_features(views["gate"], x_operand, group.size, take_gate)
        linear.by_features(views["up"], x_operand, group.size, take_up)
        linear.by_tokens(views["down"], inner_operand, group.size, take_out)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against float64 of the rounded operands."""
        real = {n: decode(b, "bf16").T.astype(np.float64) for n, b in bits.items()}
        exact = ACTIVATIONS["silu"](real["x"] @ real["gate"].T) * (real["x"] @ real["up"].T) @ real["down"].T
        return product_metrics(decode(outputs["y"], "fp32"), exact)

    notes = ["the host casts x and the weights to BF16 and transposes them to K-major"]
    if held < tokens:
        notes.append(f"SBUF holds {held} tokens at a time; the weights are read {len(spans(tokens, held))} times")
    return k.program(macs=3 * tokens * width * hidden, notes=notes, metrics=metrics)
