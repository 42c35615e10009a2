"""Fields of a configuration: value, range, unit and meaning in one place, which checks, lists and documents read."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from enum import Enum
from typing import Any, cast

__all__ = [
    "ConfigError",
    "Knob",
    "Role",
    "built_values",
    "check",
    "choice",
    "fields_of",
    "flag",
    "knobs",
    "need",
    "number",
    "numbers",
]


class ConfigError(ValueError):
    """A configuration that makes no sense; the text is one sentence with the value and the rule."""


class Role(Enum):
    """What another value of a field costs."""

    HOST = "host"  # nothing: no hardware depends on it
    ROOM = "room"  # nothing, if a model has at least that much of it (rtl/contract/roles.py)
    KNOB = "knob"  # the same, by a limit that the model is told (rtl/contract/limits.py)
    CLOCK = "clock"  # nothing, if it stays on its side of half the root clock
    MODEL = "model"  # a model of its own


def need(ok: bool, sentence: str) -> None:
    """ConfigError with this sentence unless `ok`."""
    if not ok:
        raise ConfigError(sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """What is known of a field. `also`: rules between fields, in words, which its section checks by itself.

    `role`: what a change of it costs, see Role. `count`: of a tuple, how many numbers; `named`: texts that stand for
    such tuples in settings and files.
    """

    meaning: str
    unit: str = ""
    low: int = 0
    high: int = 0
    of_two: bool = False
    among: tuple[Any, ...] = ()
    count: int = 0
    named: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    also: str = ""
    role: Role = Role.MODEL

    @property
    def range(self) -> str:
        """Values that it takes, in words."""
        if self.among:
            words = [str(one).lower() if isinstance(one, bool) else str(one) for one in self.among]
            text = f"{', '.join(words[:-1])} or {words[-1]}"
        elif self.count:
            text = f"{self.count} numbers from {self.low} to {self.high}"
            if self.named:
                text += ", or " + ", ".join(f"{name} ({':'.join(map(str, one))})" for name, one in self.named.items())
        else:
            text = f"{'a power of two ' if self.of_two else ''}from {self.low} to {self.high}"
        return f"{text}; {self.also}" if self.also else text

    def check(self, name: str, value: Any) -> None:
        """ConfigError unless the value of the field `name` obeys."""
        if self.among and isinstance(self.among[0], bool):
            need(type(value) is bool, f"{name} must be true or false, not {value!r}")
        elif self.among:
            words = f"{', '.join(map(str, self.among[:-1]))} or {self.among[-1]}"
            shown = repr(value) if isinstance(self.among[0], str) else value
            need(type(value) is type(self.among[0]) and value in self.among, f"{name} must be {words}, not {shown}")
        elif self.count:
            members = list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else []
            good = len(members) == self.count
            good = good and all(type(one) is int and self.low <= one <= self.high for one in members)
            shown = ", ".join(map(str, members)) if isinstance(value, tuple) else repr(value)
            need(good, f"{name} must be {self.count} numbers from {self.low} to {self.high}, not {shown}")
        else:
            need(type(value) is int, f"{name} must be a whole number, not {value!r}")
            fits = self.low <= value <= self.high and not (self.of_two and value & (value - 1))
            what = "a power of two " if self.of_two else ""
            need(fits, f"{name} must be {what}from {self.low} to {self.high}, not {value}")


def _field(default: Any, knob: Knob) -> Any:
    return field(metadata={"knob": knob}) if default is MISSING else field(default=default, metadata={"knob": knob})


def number(
    meaning: str,
    low: int,
    high: int,
    default: Any = MISSING,
    *,
    unit: str = "",
    of_two: bool = False,
    also: str = "",
    role: Role = Role.MODEL,
) -> Any:
    """A field: a whole number in a range, or a power of two in it."""
    return _field(default, Knob(meaning=meaning, low=low, high=high, unit=unit, of_two=of_two, also=also, role=role))


def numbers(
    meaning: str,
    count: int,
    low: int,
    high: int,
    default: tuple[int, ...],
    *,
    also: str = "",
    named: Mapping[str, tuple[int, ...]] | None = None,
) -> Any:
    """A field: so many whole numbers in a range; some may have names."""
    return _field(default, Knob(meaning=meaning, count=count, low=low, high=high, also=also, named=named or {}))


def flag(meaning: str, default: bool, *, also: str = "", role: Role = Role.MODEL) -> Any:
    """A field: true or false."""
    return _field(default, Knob(meaning=meaning, among=(True, False), also=also, role=role))


def choice(meaning: str, among: tuple[Any, ...], default: Any, *, unit: str = "") -> Any:
    """A field: one of these."""
    return _field(default, Knob(meaning=meaning, among=among, unit=unit))


def check(section: str, config: Any) -> None:
    """ConfigError unless every field that has a Knob obeys it; called `section.field` there."""
    for name, knob in knobs(type(config)).items():
        if knob is not None:
            knob.check(f"{section}.{name}" if section else name, getattr(config, name))


def knobs(cls: Any) -> dict[str, Knob | None]:
    """The Knob of each field of a section that is not a section itself, nor a name; None where one is missing."""
    return {
        f.name: f.metadata.get("knob")
        for f in dataclasses.fields(cls)
        if f.name != "name" and not dataclasses.is_dataclass(f.type)
    }


def fields_of(config: Any, prefix: str = "") -> Iterator[tuple[str, Knob | None, Any]]:
    """Every field but names, as section.field, with its Knob and its value, in order."""
    known = knobs(type(config))
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if dataclasses.is_dataclass(value):
            yield from fields_of(value, f"{prefix}{f.name}.")
        elif f.name != "name":
            yield f"{prefix}{f.name}", known[f.name], value


def built_values(config: Any, *, every: bool = False) -> dict[str, Any]:
    """Nested values that hardware is built from: no names, and no field of Role.HOST but with `every`."""
    known = knobs(type(config))
    values: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value, knob = getattr(config, f.name), known.get(f.name)
        if dataclasses.is_dataclass(value):
            values[f.name] = built_values(value, every=every)
        elif f.name != "name" and (every or knob is None or knob.role != Role.HOST):
            values[f.name] = value
    return values
