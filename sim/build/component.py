"""The component of a top: which keywords its factory takes, and what may be left out."""

import inspect
from collections.abc import Mapping
from typing import Any

from rtl.contract.any_config import AnyConfig
from sim.build.tops import Top, factory
from sim.errors import PlexusError
from sim.systems.configurations import Configurations, kind_of_type

__all__ = ["config_kind", "has_option", "make_component"]


def _parameters(make: Any) -> dict[str, inspect.Parameter]:
    """Of a factory. Not of a class itself: some Pythons then look at Amaranth's __new__, which takes anything."""
    known = inspect.signature(make.__init__ if inspect.isclass(make) else make).parameters
    return {name: parameter for name, parameter in known.items() if name != "self"}


def has_option(t: Top, name: str) -> bool:
    """Whether the component of a top takes the keyword `name`."""
    return name in _parameters(factory(t))


def config_kind(t: Top) -> Configurations | None:
    """Of which system the configuration of a top is; None if it takes none, or any."""
    known = _parameters(factory(t))
    return kind_of_type(known["cfg"].annotation) if "cfg" in known else None


def make_component(t: Top, cfg: AnyConfig, options: Mapping[str, Any]) -> Any:
    """The component of a top; of another system than `cfg` is of at its defaults, if there are any.

    Errors: PlexusError for an option it does not have.
    """
    make = factory(t)
    known = _parameters(make)
    wanted = config_kind(t)
    if wanted is not None and wanted.has_default and not isinstance(cfg, wanted.type):
        cfg = wanted.type()
    for name in options:
        if name not in known:
            listed = ", ".join(n for n in known if n != "cfg") or "none"
            raise PlexusError(f"top {t.name} has no option {name!r}; its options are: {listed}")
    missing = [
        name
        for name, parameter in known.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in ("cfg", *options)
    ]
    if missing:
        raise PlexusError(f"top {t.name} needs {' and '.join(missing)}, so it is built by its bench only")
    args = [cfg] if "cfg" in known else []
    return make(*args, **options)
