"""reshape, permute, expand, slice, cat: elements that only move."""

from collections.abc import Callable
from math import prod

from firmware.graph.arrays import Array
from firmware.graph.copying import copy
from firmware.graph.emitter import Emitter
from firmware.graph.ir import Node
from rtl.contract.config import Config

__all__ = ["MOVES", "cat", "why_not"]


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    kinds = {value.dtype for value in (*node.inputs.values(), node.output)}
    if len(kinds) > 1:
        return f"formats differ: {', '.join(sorted(kinds))}"
    x, out = node.inputs.get("x"), node.output.shape
    if node.op == "reshape" and x is not None and prod(x.shape) != prod(out):
        return f"x has the shape {x.shape}, {prod(x.shape)} elements, and the output {out} has {prod(out)}"
    return None


def _reshape(node: Node, x: Array) -> Array:
    return x.reshape(node.output.shape)


def _permute(node: Node, x: Array) -> Array:
    return x.permute(node.attributes["axes"])


def _expand(node: Node, x: Array) -> Array:
    return x.expand(node.output.shape)


def _slice(node: Node, x: Array) -> Array:
    starts, steps = node.attributes["starts"], node.attributes.get("steps") or [1] * len(x.shape)
    offset = sum(a * s for a, s in zip(starts, x.strides, strict=True))
    return x.strided(offset, node.output.shape, [s * n for s, n in zip(x.strides, steps, strict=True)])


def _move(view: Callable[[Node, Array], Array]) -> Callable[[Emitter, Node], None]:
    def emit(e: Emitter, node: Node) -> None:
        source = view(node, e.find(node.inputs["x"]))
        if source.contiguous and e.alias(node.output, source):
            return
        e.kept.store(source)
        copy(e, e.make(node.output), source)

    return emit


MOVES = {"reshape": _move(_reshape), "permute": _move(_permute), "expand": _move(_expand), "slice": _move(_slice)}


def cat(e: Emitter, node: Node) -> None:
    """Inputs one behind the other."""
    axis, at, out = node.attributes["axis"], 0, e.make(node.output)
    axis %= len(out.shape)
    for name in sorted(node.inputs, key=int):
        source = e.read(node.inputs[name])
        copy(e, out.part(axis, at, source.shape[axis]), source)
        at += source.shape[axis]
