"""binary: two numbers to one, with broadcasting."""

from firmware.graph.each import each
from firmware.graph.emitter import Emitter
from firmware.graph.ir import Node
from firmware.views import TileView
from rtl.contract.config import Config

__all__ = ["emit", "why_not"]

COMPARISONS = {
    "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
}  # fmt: skip
WORD = (-(1 << 31), (1 << 31) - 1)
LOGIC = ("and", "or", "xor")
OPERATORS = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "maximum": "max",
    "minimum": "min",
    **COMPARISONS, **{name: name for name in LOGIC},
}  # fmt: skip


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    op = node.attributes["op"]
    if op not in OPERATORS:
        return f"there is no operator {op!r}; there are {', '.join(OPERATORS)}"
    kinds = {value.dtype for value in node.inputs.values()}
    if not kinds:
        return "it has no input"
    if op in LOGIC:
        return None
    if "int32" in kinds:
        scalar = node.attributes.get("scalar", 0)
        if op in ("equal", "not_equal") and kinds == {"int32"}:
            whole = WORD[0] <= scalar <= WORD[1] and int(scalar) == scalar
            return None if whole else f"its scalar is {scalar}, no whole number of 32 bits"
        return f"{op} of int32 would be rounded to FP32; only equal and not_equal are exact"
    if "uint8" in kinds and op not in COMPARISONS:
        return f"{op} of truth values has no meaning; cast them first"
    return None


def emit(e: Emitter, node: Node) -> None:
    """The output in HBM."""
    k, op = e.k, OPERATORS[node.attributes["op"]]
    values = list(node.inputs.values())
    sources, out = [e.read(value) for value in values], e.make(node.output)
    if len(sources) == 1:
        scalar, first = node.attributes["scalar"], "a" not in node.inputs
        own = ["int32"] if values[0].dtype == "int32" else ["fp32"] if op == "divide" and first else []

        def with_scalar(made: TileView, given: list[TileView], own: list[TileView]) -> None:
            x = given[0]
            if x.dtype == "int32":
                k.vector.tensor_scalar(own[0], x, "bit_xor", int(scalar))
                k.vector.tensor_scalar(made, own[0], op, 0.0)
            elif op == "divide" and not first:
                k.vector.tensor_scalar(made, x, "multiply", 1 / scalar if scalar else float("inf"))
            elif op == "divide":
                k.vector.reciprocal(own[0], x)
                k.vector.tensor_scalar(made, own[0], "multiply", float(scalar))
            else:
                k.vector.tensor_scalar(made, x, op, float(scalar), reverse0=first)

        each(e, out, sources, with_scalar, own)
        return

    def with_both(made: TileView, given: list[TileView], own: list[TileView]) -> None:
        x, y = given
        if {x.dtype, y.dtype} == {"int32"}:
            k.vector.tensor_tensor(own[0], x, "bit_xor", y)
            k.vector.tensor_scalar(made, own[0], op, 0.0)
        elif op == "divide":
            k.vector.reciprocal(own[0], y)
            k.vector.tensor_tensor(made, x, "multiply", own[0])
        else:
            k.vector.tensor_tensor(made, x, op, y)

    whole = {s.dtype for s in sources} == {"int32"}
    each(e, out, sources, with_both, ["int32"] if whole else ["fp32"] if op == "divide" else [])
