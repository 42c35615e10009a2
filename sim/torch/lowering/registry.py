"""Which operators of aten there are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from sim.torch.lowering.bounds import Bound

__all__ = ["HOST", "OPERATORS", "Operator", "host", "lower"]

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """`function(builder, *args, **kwargs)` makes nodes for it; tensors are Values then. `becomes`: for the table.
    `moves`: it only moves elements, so alone it is left to the host."""

    name: str
    function: Function
    becomes: str
    bound: Bound
    moves: bool = False


OPERATORS: dict[Any, Operator] = {}
"""By torch's OpOverload."""
HOST: dict[Any, str] = {}
"""Operators that are the host's by design, and why; fallback=False allows them."""


def find(name: str) -> Any:
    """An OpOverload by its name, as aten.add.Tensor; None if this torch has it not."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def lower(names: str, becomes: str, bound: Bound, moves: bool = False) -> Callable[[Function], Function]:
    """Put a function into OPERATORS for each of these names, aten.NAME.OVERLOAD, separated by blanks."""

    def decorate(function: Function) -> Function:
        for name in names.split():
            found = find(name)
            if found is not None:
                OPERATORS[found] = Operator(name, function, becomes, bound, moves)
        return function

    return decorate


def host(names: str, why: str) -> None:
    """These are the host's."""
    HOST.update({found: why for name in names.split() if (found := find(name)) is not None})
