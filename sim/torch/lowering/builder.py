"""Nodes for one operator of torch after the other, with the names and formats that they need."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from firmware.graph.ir import Node, Value
from sim.torch.errors import Unsupported

__all__ = ["Builder", "broadcast"]

_TRUTHS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "and", "or", "xor")


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that NumPy broadcasts these to; they are known to agree."""
    rank = max(len(shape) for shape in shapes)
    full = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((n for n in axis if n != 1), 1) for axis in zip(*full))


class Builder:
    """Nodes so far. `products`: the kind of matrix products, bf16 or fp32. `origin` and `label` go to the next nodes;
    `shape` and `dtype` are those of the operator's (first) result; `truth`: it is a truth value, not a byte."""

    def __init__(self, products: str):
        self.products = products
        self.nodes: list[Node] = []
        self.origin = ""
        self.label = ""
        self.shape: tuple[int, ...] = ()
        self.dtype = "fp32"
        self.truth = False

    def node(
        self, op: str, inputs: Mapping[str, Value], shape: Sequence[int], dtype: str, /, **attributes: Any
    ) -> Value:
        """The result of one more node."""
        out = Value(f"n{len(self.nodes)}", tuple(int(n) for n in shape), dtype)
        self.nodes.append(Node(op, dict(inputs), out, attributes, self.origin, self.label))
        return out

    def cast(self, x: Value, dtype: str) -> Value:
        """x itself if it has that format."""
        return x if x.dtype == dtype else self.node("cast", {"x": x}, x.shape, dtype)

    def unary(self, function: str, x: Value, dtype: str = "") -> Value:
        """In floating point, unless `dtype` says otherwise."""
        want = dtype or (x.dtype if x.dtype in ("fp32", "bf16", "fp16") else "fp32")
        return self.node("unary", {"x": self.cast(x, want)}, x.shape, want, function=function)

    def binary(self, op: str, a: Value | float, b: Value | float, dtype: str = "") -> Value:
        """Of two values, or a value and a number. `dtype`: of the operands, and of a result that is no truth value."""
        values = {name: v for name, v in (("a", a), ("b", b)) if isinstance(v, Value)}
        scalars = [v for v in (a, b) if not isinstance(v, Value)]
        want = dtype or next(iter(values.values())).dtype
        inputs = {name: self.cast(v, want) for name, v in values.items()}
        attributes: dict[str, Any] = {"op": op} | ({"scalar": float(scalars[0])} if scalars else {})
        shape = broadcast(*(v.shape for v in inputs.values()))
        return self.node("binary", inputs, shape, "uint8" if op in _TRUTHS else want, **attributes)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """x itself if it has that shape."""
        return x if x.shape == tuple(shape) else self.node("reshape", {"x": x}, shape, x.dtype)

    def permute(self, x: Value, axes: Sequence[int]) -> Value:
        """x itself if axes stay where they are."""
        whole = tuple(axis % len(axes) for axis in axes)
        if whole == tuple(range(len(whole))):
            return x
        return self.node("permute", {"x": x}, [x.shape[a] for a in whole], x.dtype, axes=whole)

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """x itself if it has that shape."""
        return x if x.shape == tuple(shape) else self.node("expand", {"x": x}, shape, x.dtype)

    def reduce(self, op: str, x: Value, axes: Sequence[int], keep: bool) -> Value:
        """Over axes, all of them if there are none in the list."""
        rank = len(x.shape)
        if not rank:
            return x
        chosen = tuple(sorted({axis % rank for axis in axes})) or tuple(range(rank))
        shape = [1 if i in chosen else n for i, n in enumerate(x.shape) if keep or i not in chosen]
        return self.node("reduce", {"x": x}, shape, x.dtype, op=op, axes=chosen)

    def slice(self, x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
        """Elements of one axis; x itself if it is all of them."""
        if (start, stop, step) == (0, x.shape[axis], 1):
            return x
        if step < 1 or stop <= start:
            raise Unsupported("an empty or descending slice moves nothing")
        starts, stops, steps = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
        starts[axis], stops[axis], steps[axis] = start, stop, step
        shape = list(x.shape)
        shape[axis] = math.ceil((stop - start) / step)
        return self.node(
            "slice", {"x": x}, shape, x.dtype, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps)
        )

    def matmul(self, a: Value, b: Value, bias: Value | None = None, dtype: str = "") -> Value:
        """a [*, M, K], b [*, K, N], in FP32 and rounded to `dtype`, that of a by default."""
        inputs = {"a": a, "b": b} | ({} if bias is None else {"bias": bias})
        lead = a.shape[:-2] or b.shape[:-2]
        return self.node(
            "matmul", inputs, (*lead, a.shape[-2], b.shape[-1]), dtype or a.dtype, kind=self.kind(a), activation=None
        )

    def kind(self, *operands: Value) -> str:
        """Of a product of these: fp32 only if it was asked for and they are wider than bf16."""
        return self.products if any(v.dtype != "bf16" for v in operands) else "bf16"
