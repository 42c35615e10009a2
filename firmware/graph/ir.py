"""Operators on whole arrays, in the order in which they run: what a front end makes, and `emit` turns into a Program.

Every value lies in HBM, rows contiguous; a value of no axes is one number. A truth value is `uint8`, 0 or 1. Each
operator makes one value. By its name, its inputs (? may be left out) and attributes:

    matmul     a [*, M, K], b [*, K, N], bias? [N] -> [*, M, N]; leading axes are equal, or one of the two has none
               transpose_a, transpose_b: the two last axes of that input lie the other way in memory
               kind: fp32 or bf16, to which operands are rounded; activation: a function of `unary`, or None
    attention  q [B, H, S, D], k [B, G, T, D], v [B, G, T, E], mask? (added; axes of 1 or of [B, H, S, T])
               -> [B, H, S, E]; G divides H. scale, causal (query i sees keys up to i), kind as of matmul
               heads_last: names of those that lie as [B, S, H, D] (q, k, v, out)
    softmax    x, along the last axis
    layernorm  x, gain?, shift?, residual? (added to x first), along the last axis; epsilon
    rmsnorm    x, gain?, residual?, along the last axis; epsilon
    unary      x; function: a name of the scalar engine's tables, or negative, reciprocal, abs, square, not
    binary     a, b, which broadcast as NumPy's do; op: add, subtract, multiply, divide, maximum, minimum, equal,
               not_equal, greater, greater_equal, less, less_equal, and, or, xor. One of the two may be left out:
               `scalar` is it then
    where      condition, a?, b?, which broadcast; scalar_a, scalar_b: what stands for those left out
    reduce     x; op: sum, mean, max, min; axes. The output's shape keeps these axes as 1, or has them not
    reshape    x: the same bytes under another shape
    permute    x; axes
    expand     x: axes of 1 repeated, new ones in front
    slice      x; starts, stops, steps: of each axis
    cat        inputs "0", "1", ..., along axis
    cast       x, rounded to the output's dtype
    fill       nothing; scalar
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Graph", "Node", "Value"]


@dataclass(frozen=True, slots=True)
class Value:
    """An array by name: its shape, and a format of rtl/contract/formats.py (fp32, bf16, fp16, int32, uint8)."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Node:
    """An operator: inputs by what they are to it. `origin`: the user's line; `label`: what the user calls it.

    `where` is both, "model.py:12 aten.addmm.default": what its instructions and copies carry into reports.
    """

    op: str
    inputs: Mapping[str, Value]
    output: Value
    attributes: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""
    label: str = ""

    @property
    def where(self) -> str:
        return " ".join(part for part in (self.origin, self.label) if part) or self.op


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in order. `constants`: bits (numbers.encode) of values that no node makes and no call gives."""

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    constant_values: tuple[Value, ...] = ()
