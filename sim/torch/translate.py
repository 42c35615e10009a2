"""A graph of aten operators, whose tensors have shapes, as a graph of the machine's."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from firmware.graph.ir import Node, Value
from sim.torch.dtypes import format_of
from sim.torch.errors import Unsupported
from sim.torch.lowering.builder import Builder
from sim.torch.lowering.table import OPERATORS
from sim.torch.place import line_of, name_of

__all__ = ["Translated", "translate", "why_unsupported"]

WhyNot = Callable[[Node], str | None]


@dataclass(slots=True)
class Translated:
    """`inputs` in the order of the graph's placeholders, `outputs` in that of its results, with their dtypes."""

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    dtypes: list[torch.dtype] = field(default_factory=list)
    nodes: tuple[Node, ...] = ()


def _meta(node: fx.Node) -> torch.Tensor:
    found = node.meta.get("val")
    if isinstance(found, (tuple, list)):
        found = found[0]
    if not isinstance(found, torch.Tensor):
        raise Unsupported("its result is no tensor")
    return found


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(int(n) for n in tensor.shape)


def _value(name: str, node: fx.Node) -> Value:
    meta = _meta(node)
    wide = meta.dtype == torch.int64 and node.meta.get("plexus_int32", False)
    return Value(name, _shape(meta), "int32" if wide else format_of(meta.dtype))


def _lower(b: Builder, node: fx.Node, value_of: Callable[[fx.Node], Any]) -> Any:
    """What a node becomes: a Value, or a tuple of them."""
    if node.target is operator.getitem:
        whole, place = node.args
        assert isinstance(whole, fx.Node)
        return value_of(whole)[place]
    meta = _meta(node)
    b.origin, b.label, b.shape, b.dtype = line_of(node), name_of(node), _shape(meta), format_of(meta.dtype)
    b.truth = meta.dtype == torch.bool
    if not meta.numel():
        raise Unsupported("it has no element")
    args, kwargs = fx.map_arg((node.args, node.kwargs), value_of)
    return OPERATORS[node.target].function(b, *args, **kwargs)


def translate(graph: fx.Graph, products: str) -> Translated:
    """Errors: Unsupported, for a node that `why_unsupported` would name."""
    found, b = Translated(), Builder(products)
    values: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = _value(f"x{len(found.inputs)}", node)
            found.inputs.append(values[node])
        elif node.op == "output":
            results: Sequence[Any] = node.args[0] if isinstance(node.args[0], (tuple, list)) else node.args
            for result in results:
                value = values[result]
                if value in found.inputs or value in found.outputs:  # an output is an array of its own
                    value = b.node("reshape", {"x": value}, value.shape, value.dtype)
                found.outputs.append(value)
            found.dtypes = [_meta(result).dtype for result in results]
        else:
            values[node] = _lower(b, node, values.__getitem__)
    found.nodes = tuple(b.nodes)
    return found


def why_unsupported(node: fx.Node, products: str, why_not: WhyNot) -> str | None:
    """None if the machine computes a node; else why not, as the end of a sentence."""
    try:
        if node.target is operator.getitem:
            whole, place = node.args
            if not isinstance(whole, fx.Node) or whole.target not in OPERATORS:
                return "its operand comes from the host"
            why = why_unsupported(whole, products, why_not)
            if why is None and _alone(whole, Builder(products))[place] is None:
                return f"result {place} of {name_of(whole)} is not made"
            return why
        if node.target not in OPERATORS:
            return "there is no program for it"
        b = Builder(products)
        _alone(node, b)
        return next((why for one in b.nodes if (why := why_not(one))), None)
    except Unsupported as error:
        return str(error)
    except (TypeError, ValueError, IndexError, KeyError) as error:
        return f"its arguments are not connected ({error})"


def _alone(node: fx.Node, b: Builder) -> Any:
    """A node as if all its operands were inputs."""
    names: Mapping[fx.Node, Value] = {one: _value(f"x{i}", one) for i, one in enumerate(node.all_input_nodes)}
    return _lower(b, node, names.__getitem__)
