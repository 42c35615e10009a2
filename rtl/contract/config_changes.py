"""Changes of a configuration: from texts, from tables of a TOML file, one over the other."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from rtl.contract.config_sections import ConfigError

__all__ = ["changed", "difference", "merge", "named_values", "parsed", "settings"]

ConfigT = TypeVar("ConfigT")


def _keys(cls: type) -> dict[str, Any]:
    return {f.name: f for f in dataclasses.fields(cls)}


def changed(config: ConfigT, changes: Mapping[str, Any], where: str) -> ConfigT:
    """`config` with nested `changes` from `where`; unknown keys and wrong types end in a ConfigError."""
    fields = _keys(type(config))
    new: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in fields:
            raise ConfigError(f"{where} names {key!r}, which is no field; fields are {', '.join(fields)}")
        current = getattr(config, key)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{where} sets {key} to {value!r}; set a field of it, as in {key}.FIELD")
            section: dict[str, Any] = {}
            for name, inner in cast(Mapping[str, Any], value).items():
                known = _keys(type(current))
                if name not in known:
                    raise ConfigError(
                        f"{where} names {key}.{name}, which is no field; fields of {key} are {', '.join(known)}"
                    )
                section[name] = _typed(f"{key}.{name}", inner, getattr(current, name), named_values(known[name]))
            new[key] = dataclasses.replace(current, **section)  # type: ignore[type-var]
        else:
            new[key] = _typed(key, value, current, named_values(fields[key]))
    return dataclasses.replace(config, **new)  # type: ignore[type-var]


def difference(config: Any, base: Any, prefix: str = "") -> dict[str, Any]:
    """Fields of `config` that are not as in `base`, by `section.key`; names of configurations do not count."""
    found: dict[str, Any] = {}
    kind = cast("type[object]", type(config))
    for name in _keys(kind):
        new, old = getattr(config, name), getattr(base, name)
        if dataclasses.is_dataclass(new):
            found |= difference(new, old, f"{prefix}{name}.")
        elif name != "name" and new != old:
            found[f"{prefix}{name}"] = new
    return found


def named_values(field: Any) -> Mapping[str, tuple[int, ...]]:
    """Texts that stand for values of a field."""
    knob = field.metadata.get("knob")
    return knob.named if knob is not None else {}


def _typed(name: str, value: Any, current: Any, names: Mapping[str, tuple[int, ...]]) -> Any:
    if isinstance(current, bool):
        known: dict[int | str, bool] = {True: True, False: False, "true": True, "false": False}
        if isinstance(value, (int, str)) and value in known:
            return known[value]
    if isinstance(current, tuple):
        return names[value] if isinstance(value, str) and value in names else _numbers(name, value, names)
    if isinstance(value, bool) or type(value) is not type(current):
        kind = {int: "a whole number", str: "a text", bool: "true or false"}[type(current)]
        raise ConfigError(f"{name} must be {kind}, not {value!r}")
    return value


def _numbers(name: str, value: Any, names: Iterable[str]) -> tuple[int, ...]:
    """Of a list in a file, or of a text as in 8:4:2:1."""
    try:
        members = cast("list[int]", value) if not isinstance(value, str) else [int(one) for one in value.split(":")]
        return tuple(members)
    except (TypeError, ValueError):
        known = "".join(f", {one}" for one in names)
        raise ConfigError(f"{name} must be whole numbers, as in 8:4:2:1{known}, not {value!r}") from None


def parsed(text: str) -> dict[str, Any]:
    """The change that `section.key=value` asks for."""
    key, equals, value = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"a setting is written section.key=value, not {text!r}")
    parts = key.strip().split(".")
    try:
        change: Any = int(value.strip().replace("_", ""), 0) if value.isascii() else value
    except ValueError:
        change = value.strip()
    for part in reversed(parts):
        change = {part: change}
    return change


def settings(texts: Iterable[str]) -> dict[str, Any]:
    """The changes that `section.key=value` texts ask for, each key once. Errors: ConfigError."""
    changes: dict[str, Any] = {}
    given: dict[str, str] = {}
    for text in texts:
        change = parsed(text)
        key = text.partition("=")[0].strip()
        if key in given:
            raise ConfigError(f"{key} is set twice, by {given[key]!r} and by {text!r}; give it once")
        given[key] = text
        merge(changes, change)
    return changes


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add nested changes to others; later ones win."""
    for key, value in more.items():
        if not isinstance(value, Mapping):
            into[key] = value
            continue
        section = cast(Mapping[str, Any], value)
        if isinstance(into.get(key), dict):
            merge(into[key], section)
        else:
            into[key] = dict(section)
