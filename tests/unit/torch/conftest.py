"""Graphs of firmware/graph/ir.py computed by NumPy in float64: an independent reading of what its operators mean."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

KINDS = {"fp32": np.float32, "bf16": ml_dtypes.bfloat16, "fp16": np.float16, "int32": np.int32, "uint8": np.uint8}
_erf = np.vectorize(math.erf, otypes=[np.float64])

UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": _erf,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "sin": np.sin,
    "arctan": np.arctan,
    "sign": np.sign,
    "square": np.square,
    "negative": np.negative,
    "abs": np.abs,
    "not": lambda x: x == 0,
}
BINARY: dict[str, Callable[[Any, Any], np.ndarray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _rounded(x: np.ndarray, kind: str) -> np.ndarray:
    return x.astype(KINDS[kind]).astype(np.float64)


def _norm(i: Mapping[str, np.ndarray], a: Mapping[str, Any], centred: bool) -> np.ndarray:
    x = i["x"] + i.get("residual", 0)
    x = x - x.mean(axis=-1, keepdims=True) if centred else x
    x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + a["epsilon"])
    return x * i.get("gain", 1) + i.get("shift", 0)


def _attention(i: Mapping[str, np.ndarray], a: Mapping[str, Any]) -> np.ndarray:
    q, k, v = (_rounded(i[n].swapaxes(1, 2) if n in a["heads_last"] else i[n], a["kind"]) for n in ("q", "k", "v"))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * a["scale"] + i.get("mask", 0)
    if a["causal"]:
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    y = _softmax(scores) @ v
    return y.swapaxes(1, 2) if "out" in a["heads_last"] else y


def _matmul(i: Mapping[str, np.ndarray], a: Mapping[str, Any]) -> np.ndarray:
    x, y = _rounded(i["a"], a["kind"]), _rounded(i["b"], a["kind"])
    x = x.swapaxes(-1, -2) if a.get("transpose_a") else x
    y = y.swapaxes(-1, -2) if a.get("transpose_b") else y
    found = x @ y + i.get("bias", 0)
    return UNARY[a["activation"]](found) if a.get("activation") else found


def _node(op: str, i: dict[str, Any], a: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    match op:
        case "matmul":
            return _matmul(i, a)
        case "attention":
            return _attention(i, a)
        case "softmax":
            return _softmax(i["x"])
        case "layernorm" | "rmsnorm":
            return _norm(i, a, op == "layernorm")
        case "unary":
            return UNARY[a["function"]](i["x"])
        case "binary":
            return BINARY[a["op"]](i.get("a", a.get("scalar")), i.get("b", a.get("scalar")))
        case "where":
            return np.where(
                i["condition"] != 0, *((i | {n: a[f"scalar_{n}"]} if n not in i else i)[n] for n in ("a", "b"))
            )
        case "reduce":
            return REDUCE[a["op"]](i["x"], axis=a["axes"]).reshape(shape)
        case "reshape":
            return i["x"].reshape(shape)
        case "permute":
            return i["x"].transpose(a["axes"])
        case "expand":
            return np.broadcast_to(i["x"], shape)
        case "slice":
            return i["x"][tuple(map(slice, a["starts"], a["stops"], a["steps"]))]
        case "cat":
            return np.concatenate([i[str(n)] for n in range(len(i))], axis=a["axis"])
        case "cast":
            return i["x"]
        case "fill":
            return np.full(shape, a["scalar"])
    raise AssertionError(f"the form has no operator {op}")


def interpret(graph: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Bits of a graph's outputs for bits of its inputs; each result is rounded to its format."""
    kinds = {v.name: v.dtype for v in (*graph.inputs, *graph.constant_values)}
    known = {
        name: np.asarray(bits).view(KINDS[kinds[name]]).astype(np.float64)
        for name, bits in (graph.constants | dict(arrays)).items()
    }
    bits = {}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            out = node.output
            found = np.asarray(
                _node(node.op, {n: known[v.name] for n, v in node.inputs.items()}, node.attributes, out.shape)
            )
            assert found.shape == out.shape, f"{node.op} {node.label}: {found.shape} is not {out.shape}"
            kept = (np.rint(found) if out.dtype == "int32" else found).astype(KINDS[out.dtype])
            known[out.name], bits[out.name] = kept.astype(np.float64), np.ascontiguousarray(kept)
    return {v.name: bits[v.name].view(f"u{bits[v.name].itemsize}").reshape(v.shape) for v in graph.outputs}


@pytest.fixture
def interpreter() -> Callable[[Any, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """graph, bits of its inputs -> bits of its outputs."""
    return interpret
