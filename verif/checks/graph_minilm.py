"""The layers of all-MiniLM-L6-v2 as a graph, as front ends make one, on the RTL.

python -m verif.checks.graph_minilm [CONFIG [LAYERS]]
"""

import sys
from typing import Any

import numpy as np

from firmware.graph.emit import emit
from firmware.graph.ir import Graph, Node, Value
from firmware.kernels.minilm import DEFAULT_TEXT, LAYER_NORM_EPSILON, embed, model_tensors, text_tokens
from firmware.kernels.minilm_reference import HEADS, HIDDEN, LAYERS, WIDTH, layer_values, reference_layer
from firmware.numbers import encode
from rtl.contract.config import named
from sim.api.run import run

__all__ = ["Model"]


class Model:
    """Nodes for some tokens: `graph` has the input x and one output, both [1, tokens, WIDTH]."""

    def __init__(self, tokens: int, layers: int = LAYERS):
        self.tokens = tokens
        self.nodes: list[Node] = []
        self.bits: dict[str, np.ndarray] = {}
        self.constants: list[Value] = []
        self.given = x = Value("x", (1, tokens, WIDTH), "fp32")
        tensors = model_tensors()
        for number in range(layers):
            x = self._layer(x, f"layer {number}", layer_values(tensors, number))
        self.graph = Graph("minilm-graph", (self.given,), (x,), tuple(self.nodes), self.bits, tuple(self.constants))

    def _constant(self, name: str, values: np.ndarray) -> Value:
        value = Value(name, values.shape, "fp32")
        self.bits[name] = encode(np.ascontiguousarray(values), "fp32")
        self.constants.append(value)
        return value

    def _node(self, operator: str, shape: tuple[int, ...], inputs: dict[str, Value], **attributes: Any) -> Value:
        value = Value(f"value {len(self.nodes)}", shape, "fp32")
        self.nodes.append(Node(operator, inputs, value, attributes, f"model.py:{len(self.nodes)}", operator))
        return value

    def _linear(self, x: Value, name: str, weights: np.ndarray, bias: np.ndarray) -> Value:
        wide, rows = weights.shape[0], (self.tokens, x.shape[-1])
        turned = self._node("permute", weights.T.shape, {"x": self._constant(f"{name} weight", weights)}, axes=(1, 0))
        flat = self._node("reshape", rows, {"x": x})
        sums = self._node("matmul", (self.tokens, wide), {"a": flat, "b": turned}, kind="bf16")
        deep = self._node("reshape", (1, self.tokens, wide), {"x": sums})
        return self._node("binary", deep.shape, {"a": deep, "b": self._constant(f"{name} bias", bias)}, op="add")

    def _norm(self, x: Value, residual: Value, name: str, gain: np.ndarray, shift: np.ndarray) -> Value:
        total = self._node("binary", x.shape, {"a": x, "b": residual}, op="add")
        vectors = {"gain": self._constant(f"{name} gain", gain), "shift": self._constant(f"{name} shift", shift)}
        return self._node("layernorm", x.shape, {"x": total, **vectors}, epsilon=LAYER_NORM_EPSILON)

    def _layer(self, x: Value, name: str, values: dict[str, np.ndarray]) -> Value:
        dims, axes = WIDTH // HEADS, (0, 2, 1, 3)
        apart, heads = (1, self.tokens, HEADS, dims), (1, HEADS, self.tokens, dims)

        def linear(given: Value, part: str) -> Value:
            return self._linear(given, f"{name} {part}", values[part], values[f"{part}_bias"])

        operands: dict[str, Value] = {}
        for part in ("query", "key", "value"):
            split = self._node("reshape", apart, {"x": linear(x, part)})
            operands[part[0]] = self._node("permute", heads, {"x": split}, axes=axes)
        context = self._node("permute", apart, {"x": self._node("attention", heads, operands, kind="bf16")}, axes=axes)
        joined = self._node("reshape", x.shape, {"x": context})
        x = self._norm(linear(joined, "output"), x, f"{name} norm 1", values["gain1"], values["shift1"])
        inner = self._node("unary", (1, self.tokens, HIDDEN), {"x": linear(x, "up")}, function="gelu")
        return self._norm(linear(inner, "down"), x, f"{name} norm 2", values["gain2"], values["shift2"])


def main() -> None:
    """Cycles, and the cosine with FP32."""
    tensors = model_tensors()
    ids = text_tokens(DEFAULT_TEXT)
    x = embed(ids, tensors)
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else LAYERS
    program = emit(named(sys.argv[1] if len(sys.argv) > 1 else "small"), Model(len(ids), layers).graph)
    result = run(program, {"x": x[None]}, device="rtl")
    for number in range(layers):
        x = reference_layer(layer_values(tensors, number), x)["y"]
    got = next(iter(result.outputs.values()))[0].astype(np.float64)
    cosine = float((got * x).sum() / np.linalg.norm(got) / np.linalg.norm(x))
    print(f"{result.cycles} cycles, bits match the golden machine: {result.report['match']}, cosine {cosine:.6f}")


if __name__ == "__main__":
    main()
