"""Every field of a configuration: value, range, unit, meaning, and whether a change builds anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.contract.config_fields import Knob, Role, built_values, fields_of
from sim.systems.configurations import configurations

__all__ = ["Row", "config_lines", "find_config", "rows", "shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A field. `builds`: another value makes another model of its own; else it is a parameter of the run."""

    key: str
    value: Any
    knob: Knob
    builds: bool


def find_config(name: str) -> tuple[str, AnyConfig] | None:
    """What a named configuration is of, and itself; None if there is none of that name."""
    return next(((one.kind, one.named[name]) for one in configurations() if name in one.named), None)


def rows(cfg: AnyConfig) -> list[Row]:
    """All fields but names, in order. LookupError names a field that says nothing of itself."""
    built = set(_keys(built_values(cfg)))
    found: list[Row] = []
    for key, knob, value in fields_of(cfg):
        if knob is None:
            raise LookupError(f"{key} of {type(cfg).__name__} says nothing of itself: make it with number() or such")
        found.append(Row(key=key, value=value, knob=knob, builds=key in built))
    return found


def _keys(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


_COSTS = {
    Role.HOST: "builds nothing",
    Role.ROOM: "less builds nothing",
    Role.KNOB: "less builds nothing",
    Role.CLOCK: "builds nothing on its side of half of tensor.clock_mhz",
    Role.MODEL: "builds",
}


def shown(value: Any) -> str:
    """A value as a user would write it."""
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def config_lines(cfg: AnyConfig) -> list[tuple[str, str]]:
    """A line for each field: what it is and its value; then meaning, range, unit and what a change costs."""
    lines: list[tuple[str, str]] = []
    for row in rows(cfg):
        cost = _COSTS[row.knob.role]
        about = "; ".join(filter(None, (row.knob.range, row.knob.unit, cost)))
        lines.append((f"{row.key}={shown(row.value)}", f"{row.knob.meaning} ({about})"))
    return lines
