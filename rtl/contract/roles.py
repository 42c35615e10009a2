"""What a change of a configuration costs: by field, and the one model that serves many configurations.

A field of Role.ROOM says how much of something there is: partitions of SBUF as long as that, so many rings, formats
that the array can do. A program that needs less runs in more room with the same cycles, counters and bits, as
tests/system/test_roles.py holds each of them to. So a model serves every configuration that differs from its own in
fields of Role.HOST, or has less room. What a configuration refuses, its kernels and the golden machine refuse.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from rtl.contract.any_config import AnyConfig
from rtl.contract.config_changes import changed
from rtl.contract.config_fields import ConfigError, Role, fields_of

ConfigT = TypeVar("ConfigT", bound=AnyConfig)

__all__ = ["covers", "envelope", "roles", "values"]


def roles(cfg: AnyConfig) -> dict[str, Role]:
    """The role of every field but names, as section.field."""
    return {key: role for key, role, _ in _fields(cfg)}


def values(cfg: AnyConfig) -> dict[str, Any]:
    """The value of every field but names, as section.field."""
    return {key: value for key, _, value in _fields(cfg)}


def _fields(config: AnyConfig) -> Iterator[tuple[str, Role, Any]]:
    for key, knob, value in fields_of(config):
        yield key, knob.role if knob else Role.MODEL, value


def covers(model: AnyConfig, cfg: AnyConfig) -> bool:
    """Whether a model of the configuration `model` runs programs of `cfg` as a model of its own would."""
    if type(model) is not type(cfg):
        return False
    return all(
        role == Role.HOST or there == wanted or (role == Role.ROOM and there >= wanted)
        for (_, role, there), (_, _, wanted) in zip(_fields(model), _fields(cfg), strict=True)
    )


def envelope(configs: Sequence[ConfigT]) -> ConfigT:
    """The first of them with the most room of all. Errors: ConfigError if they differ in a field of Role.MODEL."""
    first = configs[0]
    changes: dict[str, Any] = {}
    columns = zip(*(_fields(cfg) for cfg in configs), strict=True)
    for column in columns:
        key, role, _ = column[0]
        values = [value for _, _, value in column]
        if role == Role.MODEL and len(set(values)) > 1:
            other = next(value for value in values if value != values[0])
            raise ConfigError(f"no model serves both {key}={values[0]} and {key}={other}")
        if role == Role.ROOM:
            section, _, name = key.rpartition(".")
            into = changes.setdefault(section, {}) if section else changes
            into[name] = max(values)
    return changed(first, changes, "an envelope")
