"""where, cast, fill."""

from firmware.graph.each import each
from firmware.graph.emitter import Emitter
from firmware.graph.ir import Node
from firmware.views import TileView
from rtl.contract.config import Config

__all__ = ["cast", "fill", "where", "why_not"]

EXACT = 1 << 24


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    if node.op == "where":
        for name in "ab":
            value = node.inputs.get(name)
            if value is not None and value.dtype != node.output.dtype:
                return f"{name} is {value.dtype} and the output {node.output.dtype}; they must be the same"
            scalar = node.attributes.get(f"scalar_{name}", 0)
            if value is None and node.output.dtype == "int32" and abs(scalar) > EXACT:
                return f"scalar_{name} is {scalar}; int32 constants are exact up to 2^24"
    if node.op == "fill" and node.output.dtype == "int32" and abs(node.attributes["scalar"]) > EXACT:
        return f"the scalar is {node.attributes['scalar']}; int32 constants are exact up to 2^24"
    return None


def where(e: Emitter, node: Node) -> None:
    """The output in HBM: copies of equal formats pass bit for bit."""
    k, out = e.k, e.make(node.output)
    names = [name for name in ("condition", "a", "b") if name in node.inputs]

    def work(made: TileView, given: list[TileView], own: list[TileView]) -> None:
        x = dict(zip(names, given, strict=True))
        for name in "ba":
            if name not in x:
                x[name] = own[0] if name == "a" else made
                k.vector.memset(x[name], float(node.attributes[f"scalar_{name}"]))
            elif name == "b":
                k.vector.copy(made, x[name])
        k.vector.copy_predicated(made, x["condition"], x["a"])

    each(e, out, [e.read(node.inputs[name]) for name in names], work, [] if "a" in names else [out.dtype])


def cast(e: Emitter, node: Node) -> None:
    """Rounded to nearest even."""
    x, out = e.read(node.inputs["x"]), e.make(node.output)
    each(e, out, [x], lambda made, given, own: e.k.vector.copy(made, given[0]))


def fill(e: Emitter, node: Node) -> None:
    """A number everywhere."""
    scalar = float(node.attributes["scalar"])
    each(e, e.make(node.output), [], lambda made, given, own: e.k.vector.memset(made, scalar))
