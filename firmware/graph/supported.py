"""Operators by name, and why a node is none of them."""

from collections.abc import Callable
from dataclasses import dataclass

from firmware.graph.emitter import Emitter
from firmware.graph.ir import Node
from firmware.graph.operators import attention, binary, matmul, moves, norms, reduce, small, softmax, unary
from rtl.contract.config import Config

__all__ = ["OPERATORS", "Operator", "why_not"]

FORMATS = ("fp32", "bf16", "fp16", "int32", "uint8")


@dataclass(frozen=True, slots=True)
class Operator:
    """What a node of this operator becomes. `tables`: functions that it needs; `plan`: constants that it streams."""

    why_not: Callable[[Config, Node], str | None]
    emit: Callable[[Emitter, Node], None]
    tables: Callable[[Node], set[str]] = lambda node: set()
    plan: Callable[[Emitter, Node], None] = lambda e, node: None


OPERATORS: dict[str, Operator] = {
    "matmul": Operator(matmul.why_not, matmul.emit, matmul.tables, matmul.plan),
    "attention": Operator(attention.why_not, attention.emit),
    "softmax": Operator(softmax.why_not, softmax.emit),
    "layernorm": Operator(norms.why_not, norms.emit, norms.tables),
    "rmsnorm": Operator(norms.why_not, norms.emit, norms.tables),
    "unary": Operator(unary.why_not, unary.emit, unary.tables),
    "binary": Operator(binary.why_not, binary.emit),
    "where": Operator(small.why_not, small.where),
    "reduce": Operator(reduce.why_not, reduce.emit),
    **{name: Operator(moves.why_not, emit) for name, emit in moves.MOVES.items()},
    "cat": Operator(moves.why_not, moves.cat),
    "cast": Operator(small.why_not, small.cast),
    "fill": Operator(small.why_not, small.fill),
}


def why_not(cfg: Config, node: Node) -> str | None:
    """Why a node cannot run on the machine, in a few words; None if it can."""
    operator = OPERATORS.get(node.op)
    if operator is None:
        return f"there is no operator {node.op!r}; there are {', '.join(OPERATORS)}"
    for name, value in (*node.inputs.items(), ("output", node.output)):
        if value.dtype not in FORMATS:
            return f"{name} is {value.dtype}; values are {', '.join(FORMATS)}"
        if 0 in value.shape:
            return f"{name} has the shape {value.shape}; every axis must have at least 1 element"
    return operator.why_not(cfg, node)
