"""matmul: products of the array, with bias and function on the way out of PSUM."""

from dataclasses import dataclass
from itertools import product as places
from math import prod

import numpy as np

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.graph.functions import apply, table_of, unknown
from firmware.graph.ir import Node
from firmware.graph.product import Geometry, Product, bias_parts, chunks
from firmware.kernel import TileView
from firmware.kernels.spans import Span
from firmware.numbers import decode, encode
from rtl.contract.config import Config

__all__ = ["emit", "plan", "tables", "why_not"]

KINDS = ("fp32", "bf16")
FLOATS = ("fp32", "bf16", "fp16")


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    kind = node.attributes.get("kind", "bf16")
    if kind not in KINDS:
        return f"its kind is {kind}; there are {', '.join(KINDS)}"
    for name, value in (*node.inputs.items(), ("output", node.output)):
        if value.dtype not in FLOATS:
            return f"{name} is {value.dtype}; products take {', '.join(FLOATS)}"
    a, b = node.inputs["a"].shape, node.inputs["b"].shape
    if len(a) < 2 or len(b) < 2:
        return f"operands have shapes {a} and {b}; each needs two axes"
    if a[:-2] != b[:-2] and a[:-2] and b[:-2]:
        return f"leading axes are {a[:-2]} and {b[:-2]}; they must be equal, or one of the two has none"
    activation = node.attributes.get("activation")
    return unknown(activation) if activation is not None else None


def tables(node: Node) -> set[str]:
    """Functions of the table that it needs."""
    return table_of(node.attributes.get("activation"))


@dataclass(frozen=True, slots=True)
class _Sizes:
    kind: str
    turned: tuple[bool, bool]
    lead: tuple[int, ...]
    rows: int
    depth: int
    columns: int


def _sizes(node: Node) -> _Sizes:
    kind = node.attributes.get("kind", "bf16")
    turned = (bool(node.attributes.get("transpose_a")), bool(node.attributes.get("transpose_b")))
    a, b = node.inputs["a"].shape, node.inputs["b"].shape
    rows, depth = (a[-1], a[-2]) if turned[0] else (a[-2], a[-1])
    columns = b[-2] if turned[1] else b[-1]
    lead = a[:-2] or b[:-2]
    if len(b) == 2 and not turned[0]:
        rows, lead = rows * prod(lead), ()
    return _Sizes(kind, turned, lead, rows, depth, columns)


def plan(e: Emitter, node: Node) -> None:
    """Announce the chunks of a constant right operand, K-major and rounded by the host."""
    s = _sizes(node)
    value = node.inputs["b"]
    bits = e.constant(value)
    if bits is None or s.lead or len(value.shape) != 2:
        return
    if value.dtype != s.kind:
        bits = encode(decode(bits, value.dtype), s.kind)
    array = e.prepared((value.name, s.kind, s.turned[1]), np.ascontiguousarray(bits.T if s.turned[1] else bits), s.kind)
    geometry = Geometry.of(e.cfg, s.rows, s.depth, s.columns, s.kind)
    e.weights.plan(chunks(geometry, array, _bias(e, node, s.kind)))


def _bias(e: Emitter, node: Node, kind: str) -> Array | None:
    """The parts of a constant bias."""
    value = node.inputs.get("bias")
    bits = None if value is None else e.constant(value)
    if value is None or bits is None:
        return None
    parts = bias_parts(decode(bits, value.dtype), kind)
    return e.prepared((value.name, kind, "bias"), parts, kind)


def _matrix(array: Array, place: tuple[int, ...], turned: bool) -> Array:
    """The matrix at a place of the leading axes, if there are any."""
    if len(array.shape) > 2:
        for index in place:
            array = array.at(0, index)
    return array.permute((1, 0)) if turned else array


def emit(e: Emitter, node: Node) -> None:
    """The output in HBM."""
    s, k = _sizes(node), e.k
    a, b, out = e.find(node.inputs["a"]), None, e.make(node.output)
    if s.turned[0]:
        e.kept.store(a)
    constant = e.constant(node.inputs["b"]) is not None and not s.lead and len(node.inputs["b"].shape) == 2
    if not constant:
        b = e.read(node.inputs["b"])
    if not s.lead:
        a = _flat(a) if len(a.shape) > 2 else a
        out = _flat(out)
    parts = _bias(e, node, s.kind) if constant else None
    bias = e.read(node.inputs["bias"]) if "bias" in node.inputs and parts is None else None
    activation = node.attributes.get("activation")
    job = Product(e, Geometry.of(e.cfg, s.rows, s.depth, s.columns, s.kind), s.kind)
    e.macs += prod(s.lead) * s.rows * s.depth * s.columns
    rows: dict[Span, TileView] = {}
    for place in places(*(range(n) for n in s.lead)):
        target = _matrix(out, place, False) if s.lead else out

        def take(part: Span, columns: Span, sums: TileView, target: Array = target) -> None:
            made = target.part(0, part.start, part.size).part(1, columns.start, columns.size)
            kept = e.kept.view(made)
            staged = job.slot("out", job.width, out.dtype)[: part.size, : columns.size] if kept is None else kept
            given = sums
            if bias is not None:
                if columns not in rows:
                    rows.clear()
                    tile = job.slot("bias", job.width, bias.dtype)[:, : columns.size]
                    own = bias.part(0, columns.start, columns.size)
                    k.dma(tile, own.expand((job.size, columns.size)).view())
                    rows[columns] = tile
                given = staged
                if activation is not None:
                    given = job.slot("biased", job.width, "fp32")[: part.size, : columns.size]
                k.vector.tensor_tensor(given, sums, "add", rows[columns][: part.size, :])
            if activation is not None:
                apply(k, staged, given, activation, node.attributes)
            elif bias is None:
                k.scalar.copy(staged, sums)
            if kept is None:
                k.dma(made.view(), staged)

        right = None if b is None else _matrix(b, place, s.turned[1])
        job.run(_matrix(a, place, s.turned[0]), right, take, parts.shape[0] if parts is not None else 0)


def _flat(array: Array) -> Array:
    return array.reshape((prod(array.shape[:-1]), array.shape[-1]))
