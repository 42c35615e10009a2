"""Workload `ffn`: y = f(x W1^T + b1) W2^T + b2 for rows of tokens, f a function of the scalar engine.

The inner values lie transposed, features on partitions: so the scalar engine adds b1, a column, and applies f as they
leave PSUM, and the array takes them as they are. The vector engine adds b2.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError, TileView
from firmware.kernels.gemm import product_metrics
from firmware.kernels.linear import Linear, Operand, psum_tiles
from firmware.kernels.spans import Span, spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["ACTIVATIONS", "SLOTS", "STAGES", "feature_tiles", "feed_forward", "tokens_held"]

SLOTS = 6  # chunks of weights in SBUF
STAGES = 3  # results on their way to HBM


def _gelu(x: np.ndarray) -> np.ndarray:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return x * (1 + erf(x / math.sqrt(2))) / 2


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
    "relu": _relu,
}
"""In float64, to judge results by."""


def feature_tiles(k: Kernel, name: str, cuts: list[Span], tokens: int) -> tuple[list[TileView], Operand]:
    """BF16 tiles [features, tokens] of SBUF, and the operand that they are."""
    found = [k.sbuf(f"{name}{i}", partitions=c.size, columns=tokens, dtype="bf16")[:, :] for i, c in enumerate(cuts)]
    return found, lambda i, part: found[i][:, part.start : part.stop]


def tokens_held(k: Kernel, name: str, tokens: int, tiles: int, size: int) -> int:
    """Tokens that are in SBUF at a time, with `tiles` tiles of them."""
    held = k.sbuf_free() // tiles // 16 * 8
    if held < min(size, tokens):
        raise KernelError(
            f"{name} keeps {tiles} tiles of at least {min(size, tokens)} tokens in SBUF, which leaves room for {held}"
        )
    return tokens if held >= tokens else held // size * size


def feed_forward(
    cfg: Config,
    x: np.ndarray,
    up: np.ndarray,
    up_bias: np.ndarray,
    down: np.ndarray,
    down_bias: np.ndarray,
    *,
    activation: str = "gelu",
) -> Program:
    """A program for float32 x [tokens, width], up [hidden, width], down [width, hidden] in BF16, biases in FP32.

    Output: `y` [tokens, width], FP32. Errors: KernelError.
    """
    if activation not in ACTIVATIONS:
        raise KernelError(f"activation must be one of {', '.join(ACTIVATIONS)}, not {activation!r}")
    (tokens, width), hidden = x.shape, up.shape[0]
    if min(tokens, width, hidden) < 1:
        raise KernelError(f"ffn needs tokens, width and hidden of at least 1, not {tokens}, {width} and {hidden}")
    k = Kernel(cfg, "ffn")
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    bits = {n: np.ascontiguousarray(encode(a.T, "bf16")) for n, a in (("x", x), ("up", up), ("down", down))}
    views = {n: k.hbm(f"{n}_t", b.shape, "bf16", b) for n, b in bits.items()}
    up_bias_view = k.hbm("up_bias", (hidden, 1), "fp32", encode(up_bias, "fp32")[:, None])
    down_bias_view = k.hbm("down_bias", (width,), "fp32", encode(down_bias, "fp32"))
    y = k.hbm("y", (tokens, width), "fp32")
    if activation != "relu":
        k.scalar.load_table([activation])
    wide, deep = spans(width, size), spans(hidden, size)
    linear = Linear(k, psum_tiles(k, min(cfg.tensor.moving_max, cfg.psum.bank_bytes // 4)), SLOTS)
    tall = min(size, tokens)
    column = k.sbuf("column", partitions=size, columns=len(deep), dtype="fp32")
    row = k.sbuf("row", partitions=tall, columns=width, dtype="fp32")
    stages = [
        k.sbuf(f"stage{i}", partitions=tall, columns=min(width, linear.columns), dtype="fp32") for i in range(STAGES)
    ]
    held = tokens_held(k, "ffn", tokens, len(wide) + len(deep), size)
    x_t, x_operand = feature_tiles(k, "x", wide, held)
    inner, inner_operand = feature_tiles(k, "inner", deep, held)
    for i, cut in enumerate(deep):
        k.dma(column[: cut.size, i : i + 1], up_bias_view[cut.start : cut.stop, :])
    k.dma(row[:, :], down_bias_view.repeat(tall))
    stored = 0
    for group in spans(tokens, held):
        for tile, cut in zip(x_t, wide, strict=True):
            k.dma(tile[:, : group.size], views["x"][cut.start : cut.stop, group.start : group.stop])

        def take_inner(features: Span, part: Span, sums: TileView) -> None:
            number = features.start // size
            bias = column[: features.size, number : number + 1]
            k.scalar.activation(inner[number][:, part.start : part.stop], sums, activation, bias=bias)

        def take_out(part: Span, columns: Span, sums: TileView, first: int = group.start) -> None:
            nonlocal stored
            stage = stages[stored % len(stages)][: part.size, : columns.size]
            stored += 1
            k.vector.tensor_tensor(stage, sums, "add", row[: part.size, columns.start : columns.stop])
            k.dma(y[first + part.start : first + part.stop, columns.start : columns.stop], stage)

        linear.by_features(views["up"], x_operand, group.size, take_inner)
        linear.by_tokens(views["down"], inner_operand, group.size, take_out)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against float64 of the rounded operands."""
        real = {n: decode(b, "bf16").T.astype(np.float64) for n, b in bits.items()}
        exact = ACTIVATIONS[activation](real["x"] @ real["up"].T + up_bias) @ real["down"].T + down_bias
        return product_metrics(decode(outputs["y"], "fp32"), exact)

    notes = ["the host casts x and the weights to BF16 and transposes them to K-major"]
    if held < tokens:
        notes.append(f"SBUF holds {held} tokens at a time; the weights are read {len(spans(tokens, held))} times")
    return k.program(macs=2 * tokens * width * hidden, notes=notes, metrics=metrics)
