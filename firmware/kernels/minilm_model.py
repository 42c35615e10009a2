"""Workloads `encoder-layer` and `minilm`: a layer of all-MiniLM-L6-v2 and the whole model, for a real text.

The host makes tokens, looks up rows of the embedding tables and casts weights. From there on everything is computed by
the core: sums of embeddings, norms, layers, the mean over the tokens and its length.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel
from firmware.kernels.attention_blocks import Sight
from firmware.kernels.attention_reference import attention_macs
from firmware.kernels.encoder import Encoder, Shape
from firmware.kernels.gemm import product_metrics
from firmware.kernels.minilm import LAYER_NORM_EPSILON, embed, model_tensors, text_tokens
from firmware.kernels.minilm_reference import (
    HEADS,
    HIDDEN,
    LAYERS,
    WIDTH,
    layer_values,
    reference_embedding,
    reference_layer,
)
from firmware.kernels.self_attention import weight_tensors
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["encoder_layer", "minilm", "text_encoder_layer"]


def _layer_macs(shape: Shape) -> int:
    products = shape.tokens * (4 * shape.width**2 + 2 * shape.width * shape.hidden)
    return products + attention_macs(Sight(shape.tokens, shape.tokens), shape.width // shape.heads, shape.heads)


def _shape(tokens: int) -> Shape:
    return Shape(tokens, WIDTH, HEADS, HIDDEN, LAYER_NORM_EPSILON)


def _rows(k: Kernel, name: str, values: np.ndarray) -> HbmView:
    return k.hbm(name, values.shape, "fp32", encode(np.ascontiguousarray(values), "fp32"))


def _load(encoder: Encoder, x: HbmView) -> None:
    for tile, target in zip(encoder.tiles, encoder.x, strict=True):
        encoder.k.dma(target[: tile.size, :], x[tile.start : tile.stop, :])


def encoder_layer(
    cfg: Config, x: np.ndarray, values: Mapping[str, np.ndarray], heads: int, epsilon: float = LAYER_NORM_EPSILON
) -> Program:
    """A layer for float32 x [tokens, width] and arrays as minilm_reference.layer_values names them.

    Output: `y` [tokens, width], FP32. KernelError.
    """
    tokens, width = x.shape
    shape = Shape(tokens, width, heads, values["up"].shape[0], epsilon)
    k = Kernel(cfg, "encoder-layer")
    x_view = _rows(k, "x", x)
    weights = weight_tensors(k, "", values)
    y = k.hbm("y", x.shape, "fp32")
    encoder = Encoder(k, shape)
    _load(encoder, x_view)
    encoder.layer(weights)
    for tile, out in zip(encoder.tiles, encoder.x, strict=True):
        k.dma(y[tile.start : tile.stop, :], out[: tile.size, :])

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against FP32 of uncast operands."""
        exact = reference_layer(values, x, heads, epsilon)["y"]
        return {"tokens": tokens, **product_metrics(decode(outputs["y"], "fp32"), exact)}

    notes = [
        "the host casts the weights to BF16 and transposes them to K-major; biases, gains and shifts are FP32",
        "errors are against FP32 of uncast operands",
    ]
    return k.program(macs=_layer_macs(shape), notes=notes, metrics=metrics)


def text_encoder_layer(cfg: Config, *, text: str) -> Program:
    """Layer 0 of the model for a text. KernelError."""
    tensors, ids = model_tensors(), text_tokens(text)
    program = encoder_layer(cfg, embed(ids, tensors), layer_values(tensors, 0), HEADS)
    program.notes.insert(0, f"the text has {len(ids)} tokens; the host computes their embeddings and LayerNorm in FP32")
    return program


def minilm(cfg: Config, *, text: str) -> Program:
    """A text in, its embedding out: `embedding` [1, 384] FP32 of length 1. KernelError."""
    tensors, ids = model_tensors(), text_tokens(text)
    tokens = len(ids)
    k = Kernel(cfg, "minilm")
    word = _rows(k, "word", tensors["embeddings.word_embeddings.weight"][ids])
    position = _rows(k, "position", tensors["embeddings.position_embeddings.weight"][:tokens])
    kind = _rows(k, "kind", tensors["embeddings.token_type_embeddings.weight"][0])
    gain, shift = (_rows(k, f"norm_{n}", tensors[f"embeddings.LayerNorm.{n}"]) for n in ("weight", "bias"))
    layers = [weight_tensors(k, f"layer{i}_", layer_values(tensors, i)) for i in range(LAYERS)]
    embedding = k.hbm("embedding", (1, WIDTH), "fp32")
    encoder = Encoder(k, _shape(tokens))
    _embed(encoder, word, position, kind)
    encoder.norm(gain, shift)
    for weights in layers:
        encoder.layer(weights)
    encoder.pool(embedding[:, :])

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against the FP32 embedding; `length` should be 1."""
        got, exact = decode(outputs["embedding"], "fp32")[0], reference_embedding(tensors, ids)
        return {"tokens": tokens, "length": float(np.linalg.norm(got)), **product_metrics(got, exact)}

    notes = [
        f"the text has {tokens} tokens; the host looks up rows of the embedding tables and casts the weights to BF16",
        "the embedding is the mean over the tokens divided by its length; errors are against FP32 of uncast operands",
    ]
    return k.program(macs=LAYERS * _layer_macs(encoder.shape), notes=notes, metrics=metrics)


def _embed(encoder: Encoder, word: HbmView, position: HbmView, kind: HbmView) -> None:
    """x = word + kind + position."""
    k = encoder.k
    row = encoder.row(kind)
    positions = [tile for tile in encoder.vectors if tile != row.tile]
    _load(encoder, word)
    for i, (tile, x) in enumerate(zip(encoder.tiles, encoder.x, strict=True)):
        part = slice(0, tile.size)
        beside = positions[i % len(positions)][part, :]
        k.dma(beside, position[tile.start : tile.stop, :])
        k.vector.tensor_tensor(x[part, :], x[part, :], "add", row[part, :])
        k.vector.tensor_tensor(x[part, :], x[part, :], "add", beside)
