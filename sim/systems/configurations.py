"""Configurations of all systems: by name, by type, and back from plain values."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rtl.contract.any_config import AnyConfig
from sim.errors import PlexusError
from sim.systems.folders import modules

__all__ = ["Configurations", "by_name", "configurations", "kind_of_type", "restored"]

_PLACES = "sim.systems.*.configs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """Those of one system, CONFIGURATIONS in its configs.py.

    `kind`: what they are of, in a word; `title`: in the page of configurations; `about`: one in a line of
    `plexus list configs`, None if they are not listed there; `has_default`: whether `type` can be made of nothing.
    """

    kind: str
    type: type
    named: Mapping[str, AnyConfig]
    title: str
    about: Callable[[Any], str] | None = None
    has_default: bool = True

    def owns(self, values: Mapping[str, Any]) -> bool:
        """Whether these are the fields of one of them, as `as_dict()` gives them."""
        return set(values) == {f.name for f in dataclasses.fields(self.type)}

    def restore(self, values: Mapping[str, Any]) -> AnyConfig:
        """The configuration whose `as_dict()` this is, also by way of JSON."""
        return _restore(self.type, values)


def _restore(kind: Any, values: Mapping[str, Any]) -> Any:
    parts: dict[str, Any] = {}
    for f in dataclasses.fields(kind):
        value = values[f.name]
        inner = isinstance(f.type, type) and dataclasses.is_dataclass(f.type)
        parts[f.name] = _restore(f.type, value) if inner else tuple(value) if isinstance(value, list) else value
    return kind(**parts)


def configurations() -> list[Configurations]:
    """Of every system, in the order of their folders."""
    return [module.CONFIGURATIONS for module in modules(_PLACES)]


def by_name() -> dict[str, AnyConfig]:
    """All named configurations."""
    return {name: cfg for one in configurations() for name, cfg in one.named.items()}


def kind_of_type(kind: Any) -> Configurations | None:
    """The configurations of that type."""
    return next((one for one in configurations() if one.type is kind), None)


def restored(values: Mapping[str, Any]) -> AnyConfig:
    """The configuration of any system whose `as_dict()` this is. Errors: PlexusError if it is of none."""
    for one in configurations():
        if one.owns(values):
            return one.restore(values)
    kinds = ", ".join(one.kind for one in configurations())
    raise PlexusError(f"a configuration with the fields {', '.join(values)} is of no system; there are {kinds}")
