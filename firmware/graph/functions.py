"""Functions of one number: names, tables, and the instruction that computes them."""

from collections.abc import Mapping
from typing import Any

from firmware.kernel import Kernel, TileView
from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.isa import Function

__all__ = ["FUNCTIONS", "OWN", "apply", "table_of", "unknown"]

OWN = ("negative", "reciprocal", "abs", "square", "not")
"""Functions of the vector engine."""

FUNCTIONS = (*OWN, *(f.name.lower() for f in Function if f.name.lower() not in OWN))


def unknown(name: str) -> str | None:
    """A reason if there is no such function."""
    return None if name in FUNCTIONS else f"there is no function {name!r}; there are {', '.join(FUNCTIONS)}"


def table_of(name: str | None) -> set[str]:
    """The function, if it is one of a table."""
    found = None if name is None or name in OWN else Function[name.upper()]
    return {name} if name is not None and found is not None and found >= FIRST_TABLE_FUNCTION else set()


def apply(k: Kernel, out: TileView, x: TileView, name: str, attributes: Mapping[str, Any]) -> None:
    """out = name(x). The table has been loaded."""
    if name == "negative":
        k.vector.tensor_scalar(out, x, "multiply", -1.0)
    elif name == "reciprocal":
        k.vector.reciprocal(out, x)
    elif name in ("abs", "square"):
        k.vector.tensor_scalar(out, x, name)
    elif name == "not":
        k.vector.tensor_scalar(out, x, "eq", 0.0)
    else:
        slope = attributes.get("slope") if name in ("prelu", "leaky_relu") else None
        k.scalar.activation(out, x, name, slope=slope)
