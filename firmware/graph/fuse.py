"""Nodes that become one: Graph to Graph, pure. A value that is used elsewhere too, or is an output, stays.

permute of the two last axes, matmul  -> transpose_a, transpose_b
matmul, add of [N]                    -> bias
matmul, unary                         -> activation
add, layernorm or rmsnorm             -> residual
permute [B, S, H, D], attention       -> heads_last, at its inputs and behind it
A reshape between a matmul and what is done to its numbers goes behind that.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from firmware.graph.ir import Graph, Node, Value

__all__ = ["fuse"]

HEADS = (0, 2, 1, 3)
FLOATS = ("fp32", "bf16", "fp16")


class _Sight:
    """Who makes what, and who uses it."""

    def __init__(self, graph: Graph, nodes: list[Node]):
        self.makers = {node.output.name: node for node in nodes}
        self.uses = Counter(value.name for node in nodes for value in node.inputs.values())
        self.uses.update(value.name for value in graph.outputs)

    def maker(self, value: Value | None, op: str, *, alone: bool = True) -> Node | None:
        """The node that makes a value, if it is of this operator (and nobody else uses the value)."""
        node = None if value is None else self.makers.get(value.name)
        fits = node is not None and node.op == op and (not alone or self.uses[node.output.name] == 1)
        return node if fits else None


def _labels(first: Node, *others: Node) -> str:
    return " + ".join(dict.fromkeys(one.label for one in (first, *others) if one.label))


def _swapped(node: Node, name: str, before: Node, **attributes: object) -> Node:
    """`node` with what `before`, which made its input `name`, was given."""
    inputs = {**node.inputs, name: before.inputs["x"]}
    return replace(node, inputs=inputs, attributes={**node.attributes, **attributes}, label=_labels(before, node))


def _turned_operand(node: Node, sight: _Sight) -> list[Node] | None:
    if node.op != "matmul":
        return None
    for name in "ab":
        before = sight.maker(node.inputs[name], "permute", alone=False)
        if before is None:
            continue
        axes = [a % len(before.output.shape) for a in before.attributes["axes"]]
        rank = len(axes)
        if axes != [*range(rank - 2), rank - 1, rank - 2]:
            continue
        flag = f"transpose_{name}"
        return [_swapped(node, name, before, **{flag: not node.attributes.get(flag, False)})]
    return None


def _of_sums(node: Node) -> str | None:
    """The name of the operand whose numbers a node works on one by one, if a matmul could do that."""
    if node.op == "unary" and node.attributes["function"] != "not":
        return "x"
    if node.op == "binary" and node.attributes["op"] == "add" and len(node.inputs) == 2:
        for name, other in (("a", "b"), ("b", "a")):
            if (
                node.inputs[other].shape == node.inputs[name].shape[-1:]
                and node.inputs[name].shape == node.output.shape
            ):
                return name
    return None


def _reshape_behind(node: Node, sight: _Sight) -> list[Node] | None:
    name = _of_sums(node)
    before = sight.maker(node.inputs[name], "reshape") if name is not None else None
    if name is None or before is None:
        return None
    source = before.inputs["x"]
    if sight.maker(source, "matmul") is None or source.shape[-1:] != before.output.shape[-1:]:
        return None
    inner = Value(f"{node.output.name} flat", source.shape, node.output.dtype)
    first = replace(node, inputs={**node.inputs, name: source}, output=inner)
    return [first, replace(before, inputs={"x": inner}, output=node.output)]


def _into_matmul(node: Node, sight: _Sight) -> list[Node] | None:
    name = _of_sums(node)
    before = sight.maker(node.inputs[name], "matmul") if name is not None else None
    if name is None or before is None or before.attributes.get("activation") is not None:
        return None
    if node.output.dtype not in FLOATS:
        return None
    if node.op == "unary":
        more = {"activation": node.attributes["function"]}
        more |= {"slope": node.attributes["slope"]} if "slope" in node.attributes else {}
        return [_joined(before, node, attributes={**before.attributes, **more})]
    if "bias" in before.inputs:
        return None
    bias = node.inputs["a" if name == "b" else "b"]
    if bias.dtype not in FLOATS:
        return None
    return [_joined(before, node, inputs={**before.inputs, "bias": bias})]


def _joined(before: Node, node: Node, **changes: object) -> Node:
    """`before` with what `node` did: its output, and the lines and labels of both."""
    return replace(before, output=node.output, label=_labels(before, node), **changes)  # pyright: ignore[reportArgumentType]


def _residual(node: Node, sight: _Sight) -> list[Node] | None:
    if node.op not in ("layernorm", "rmsnorm") or "residual" in node.inputs:
        return None
    before = sight.maker(node.inputs["x"], "binary")
    if before is None or before.attributes["op"] != "add" or len(before.inputs) != 2:
        return None
    a, b = before.inputs["a"], before.inputs["b"]
    if a.shape != b.shape or not {a.dtype, b.dtype, before.output.dtype} <= set(FLOATS):
        return None
    return [replace(node, inputs={**node.inputs, "x": a, "residual": b}, label=_labels(before, node))]


def _heads(node: Node, sight: _Sight) -> list[Node] | None:
    if node.op == "attention":
        last = tuple(node.attributes.get("heads_last", ()))
        for name in "qkv":
            before = sight.maker(node.inputs[name], "permute", alone=False)
            if before is not None and tuple(before.attributes["axes"]) == HEADS:
                now = tuple(n for n in last if n != name) if name in last else (*last, name)
                return [_swapped(node, name, before, heads_last=now)]
    if node.op == "permute" and tuple(node.attributes["axes"]) == HEADS:
        before = sight.maker(node.inputs["x"], "attention")
        if before is not None:
            last = tuple(before.attributes.get("heads_last", ()))
            now = tuple(n for n in last if n != "out") if "out" in last else (*last, "out")
            return [_joined(before, node, attributes={**before.attributes, "heads_last": now})]
    return None


RULES: tuple[Callable[[Node, _Sight], list[Node] | None], ...] = (
    _turned_operand, _reshape_behind, _into_matmul, _residual, _heads,
)  # fmt: skip


def _needed(graph: Graph, nodes: list[Node]) -> list[Node]:
    """Nodes without those whose values nobody uses."""
    wanted = {value.name for value in graph.outputs}
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.output.name in wanted:
            kept.append(node)
            wanted.update(value.name for value in node.inputs.values())
    return kept[::-1]


def fuse(graph: Graph) -> Graph:
    """The same outputs from fewer nodes."""
    nodes, changed = _needed(graph, list(graph.nodes)), True
    while changed:
        changed = False
        for index, node in enumerate(nodes):
            sight = _Sight(graph, nodes)
            found = next((made for rule in RULES if (made := rule(node, sight)) is not None), None)
            if found is not None:
                nodes = _needed(graph, [*nodes[:index], *found, *nodes[index + 1 :]])
                changed = True
                break
    return replace(graph, nodes=tuple(nodes))
