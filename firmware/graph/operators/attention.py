"""attention: the machine's pipeline where it can, else two products with a softmax between them."""

from itertools import product as places
from math import prod, sqrt

import numpy as np

from firmware.graph.arrays import Array
from firmware.graph.each import each
from firmware.graph.emitter import Emitter
from firmware.graph.flash import Flash, fits
from firmware.graph.ir import Node
from firmware.graph.operators.softmax import softmax
from firmware.graph.product import Geometry, Product
from firmware.kernel import TileView
from firmware.kernels.spans import Span
from firmware.numbers import encode
from rtl.contract.config import Config

__all__ = ["emit", "why_not"]

FLOATS = ("fp32", "bf16", "fp16")


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    kind = node.attributes.get("kind", "bf16")
    if kind not in ("fp32", "bf16"):
        return f"its kind is {kind}; there are fp32, bf16"
    for name, value in (*node.inputs.items(), ("output", node.output)):
        if value.dtype not in FLOATS:
            return f"{name} is {value.dtype}; it takes {', '.join(FLOATS)}"
        if len(value.shape) != 4 and name != "mask":
            return f"{name} has {len(value.shape)} axes; it needs 4"
    return None


def heads(node: Node, name: str, array: Array) -> Array:
    """[B, H, S, D], however it lies."""
    return array.permute((0, 2, 1, 3)) if name in node.attributes.get("heads_last", ()) else array


def _multiply(e: Emitter, name: str, kind: str, pairs: list[tuple[Array, Array, Array]], factor: float) -> None:
    """out = factor * left right, for all (out, left, right) of one shape."""
    with e.k.scratch(name):
        out, left, _ = pairs[0]
        job = Product(e, Geometry.of(e.cfg, left.shape[0], left.shape[1], out.shape[1], kind), kind)
        for target, a, b in pairs:

            def take(rows: Span, columns: Span, sums: TileView, target: Array = target) -> None:
                staged = job.slot("out", job.width, target.dtype)[: rows.size, : columns.size]
                e.k.scalar.activation(staged, sums, "copy", scale=factor)
                e.k.dma(target.part(0, rows.start, rows.size).part(1, columns.start, columns.size).view(), staged)

            e.macs += prod(a.shape) * b.shape[1]
            job.run(a, b, take)


def emit(e: Emitter, node: Node) -> None:
    """The output in HBM. Without the pipeline scores and probabilities lie there too, in FP32."""
    q, key, v = (heads(node, n, e.find(node.inputs[n])) for n in ("q", "k", "v"))
    out = heads(node, "out", e.make(node.output))
    kind = node.attributes.get("kind", "bf16")
    batch, count, queries, dims = q.shape
    keys, share = key.shape[2], count // key.shape[1]
    scale = node.attributes.get("scale")
    scale = 1 / sqrt(dims) if scale is None else float(scale)
    causal = bool(node.attributes.get("causal"))
    masked = "mask" in node.inputs
    if kind == "bf16" and scale > 0 and not (causal and queries != keys) and fits(e, q, key, v):
        e.macs += batch * count * queries * keys * (dims + v.shape[3])
        Flash(e, q, key, v, out, scale, causal).run(e.read(node.inputs["mask"]) if masked else None)
        return
    e.kept.leave(out)
    for array in (q, key, v):
        e.kept.store(array)
    scores = e.temporary((batch, count, queries, keys), "fp32")
    both = list(places(range(batch), range(count)))

    def at(array: Array, b: int, h: int) -> Array:
        return array.at(0, b).at(0, h)

    pairs = [(at(scores, b, h), at(q, b, h), at(key, b, h // share).permute((1, 0))) for b, h in both]
    _multiply(e, "scores", kind, pairs, scale)
    masks = [e.read(node.inputs["mask"])] if masked else []
    if causal:
        hidden = np.triu(np.full((queries, keys), -np.inf, np.float32), 1)
        masks.append(e.data(encode(hidden, "fp32"), "fp32"))
    for mask in masks:
        before, scores = scores, e.temporary(scores.shape, "fp32")
        with e.k.scratch(f"mask of {scores.tensor.name}"):
            each(
                e,
                scores,
                [before, mask],
                lambda made, given, own: e.k.vector.tensor_tensor(made, given[0], "add", given[1]),
            )
    weights = e.temporary(scores.shape, "fp32")
    with e.k.scratch("softmax"):
        flat = (batch * count * queries, keys)
        softmax(e, weights.reshape(flat), scores.reshape(flat))
    _multiply(e, "values", kind, [(at(out, b, h), at(weights, b, h), at(v, b, h // share)) for b, h in both], 1.0)
