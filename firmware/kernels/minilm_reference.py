"""all-MiniLM-L6-v2 in FP32 with NumPy alone: what kernels are judged by. Nothing of the machine is used."""

import math
from collections.abc import Mapping

import numpy as np

from firmware.kernels.minilm import LAYER_NORM_EPSILON, embed

__all__ = ["HEADS", "HIDDEN", "LAYERS", "WIDTH", "layer_values", "reference_embedding", "reference_layer"]

HEADS = 12
LAYERS = 6
WIDTH = 384
HIDDEN = 1536
_PLACES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "up": "intermediate.dense",
    "down": "output.dense",
}
_NORMS = {"1": "attention.output.LayerNorm", "2": "output.LayerNorm"}

Values = Mapping[str, np.ndarray]

_erf = np.vectorize(math.erf, otypes=[np.float32])


def layer_values(tensors: Values, layer: int) -> dict[str, np.ndarray]:
    """A layer's float32 arrays: matrices [out, in] by name, NAME_bias [out], gain1, shift1, gain2, shift2 [width]."""
    found: dict[str, np.ndarray] = {}
    prefix = f"encoder.layer.{layer}."
    for name, place in _PLACES.items():
        found[name] = tensors[f"{prefix}{place}.weight"]
        found[f"{name}_bias"] = tensors[f"{prefix}{place}.bias"]
    for number, place in _NORMS.items():
        found[f"gain{number}"] = tensors[f"{prefix}{place}.weight"]
        found[f"shift{number}"] = tensors[f"{prefix}{place}.bias"]
    return found


def _linear(values: Values, name: str, x: np.ndarray) -> np.ndarray:
    return x @ values[name].T + values[f"{name}_bias"]


def _norm(values: Values, number: str, x: np.ndarray, epsilon: float) -> np.ndarray:
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(epsilon)) * values[f"gain{number}"] + values[f"shift{number}"]


def reference_layer(
    values: Values, x: np.ndarray, heads: int = HEADS, epsilon: float = LAYER_NORM_EPSILON
) -> dict[str, np.ndarray]:
    """x [tokens, width] through one layer: `context` [tokens, width], before the output projection, and `y`."""
    tokens, width = x.shape

    def split(name: str) -> np.ndarray:
        return _linear(values, name, x).reshape(tokens, heads, width // heads).swapaxes(0, 1)

    scores = split("query") @ split("key").swapaxes(1, 2) / np.float32(math.sqrt(width // heads))
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights = weights / weights.sum(axis=2, keepdims=True)
    context = (weights @ split("value")).swapaxes(0, 1).reshape(tokens, width)
    x = _norm(values, "1", x + _linear(values, "output", context), epsilon)
    inner = _linear(values, "up", x)
    inner = inner * (1 + _erf(inner / np.float32(math.sqrt(2)))) / 2
    return {"context": context, "y": _norm(values, "2", x + _linear(values, "down", inner), epsilon)}


def reference_embedding(tensors: Values, ids: list[int]) -> np.ndarray:
    """The embedding of a text, [384], length 1: all layers, the mean over its tokens, divided by its length."""
    x = embed(ids, tensors)
    for layer in range(LAYERS):
        x = reference_layer(layer_values(tensors, layer), x)["y"]
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)
