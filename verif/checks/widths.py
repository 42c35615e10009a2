"""Assignments between units that narrow in silence, found in the elaborated hardware."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Const, Fragment, Signal, Value
from amaranth.lib.wiring import Component

from rtl.base.amaranth_internals import ArrayProxy, Assign, Part, Slice, Switch, SwitchValue

__all__ = ["silent_narrowings"]


def silent_narrowings(top: Component) -> list[str]:
    """Combinational assignments from a port to a port, of `top` or of units inside it, that drop upper bits.

    Only what is handed on as it is: a port, a part of one, or a choice between such. What is computed may wrap, as
    pointers do. An explicit slice says that bits are dropped on purpose, and is as wide as what it drives.
    """
    whole = Fragment.get(top, None)
    ports: dict[int, str] = {}
    for fragment in _fragments(whole):
        for unit in fragment.origins or ():
            if isinstance(unit, Component):
                for path, _, value in unit.signature.flatten(unit):
                    signal = Value.cast(value)
                    if isinstance(signal, Signal):
                        ports[id(signal)] = f"{type(unit).__name__}.{'.'.join(map(str, path))}"
    found: dict[str, None] = {}
    for fragment in _fragments(whole):
        for statement in _assignments(fragment.statements.get("comb", ())):
            to, of = _names(statement.lhs, ports), _names(statement.rhs, ports)
            bits, given = len(statement.lhs), _width(statement.rhs)
            if to and of and given > bits:
                where = ":".join(map(str, statement.src_loc or ("?",)))
                found[f"{where}: {to[0]} takes {bits} of the {given} bits of {of[0]}"] = None
    return list(found)


def _fragments(fragment: Any) -> Iterator[Any]:
    yield fragment
    for inner, *_ in fragment.subfragments:
        yield from _fragments(inner)


def _assignments(statements: Any) -> Iterator[Assign]:
    for statement in statements:
        if isinstance(statement, Assign):
            yield statement
        elif isinstance(statement, Switch):
            for case in statement.cases:
                yield from _assignments(case[1])


def _parts(value: Any) -> list[Any] | None:
    """What a value is made of if it only hands bits on; None if it computes."""
    if isinstance(value, (Signal, Const)):
        return []
    if isinstance(value, (Slice, Part)):
        return [value.value]
    if isinstance(value, SwitchValue):
        return [inner for _, inner in value.cases]
    if isinstance(value, ArrayProxy):
        return list(value._iter_as_values())
    return None


def _names(value: Any, ports: dict[int, str]) -> list[str]:
    """Ports that are handed on in a value."""
    if id(value) in ports:
        return [ports[id(value)]]
    return [name for part in _parts(value) or () for name in _names(part, ports)]


def _width(value: Any) -> int:
    """Bits that are handed on: of a choice those of its widest part; 0 of what is computed."""
    parts = _parts(value)
    if parts is None:
        return 0
    if isinstance(value, (SwitchValue, ArrayProxy)):
        return max(map(_width, parts), default=0)
    return len(value)
