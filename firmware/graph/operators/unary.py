"""unary: a function of each number."""

from firmware.graph.each import each
from firmware.graph.emitter import Emitter
from firmware.graph.functions import apply, table_of, unknown
from firmware.graph.ir import Node
from rtl.contract.config import Config

__all__ = ["emit", "tables", "why_not"]


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    x, name = node.inputs["x"], node.attributes["function"]
    if x.dtype == "int32" and name != "not":
        return f"{name} of int32 would be rounded to FP32; cast it first"
    if x.dtype == "uint8" and name != "not":
        return f"{name} of a truth value has no meaning; cast it first"
    return unknown(name)


def tables(node: Node) -> set[str]:
    """Functions of the table that it needs."""
    return table_of(node.attributes["function"])


def emit(e: Emitter, node: Node) -> None:
    """The output in HBM."""
    name = node.attributes["function"]
    x, out = e.read(node.inputs["x"]), e.make(node.output)
    each(e, out, [x], lambda made, given, own: apply(e.k, made, given[0], name, node.attributes))
