"""What a workload is: a name, checked parameters, and how its program is built."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firmware.program import Program
from firmware.views import KernelError, MemoryFullError
from rtl.contract.config import Config
from rtl.contract.roles import Uses

__all__ = ["Param", "Workload", "parse_params"]


def _as_they_are(params: dict[str, Any]) -> dict[str, Any]:
    return params


def _as_it_is(cfg: Config, _: Mapping[str, Any]) -> Config:
    return cfg


def _no_more(_: Mapping[str, Any]) -> Uses:
    return Uses(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A parameter: its type (int, float, bool or str), default and what it means; `choices` and limits if any."""

    type: type
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None

    def parse(self, name: str, text: str) -> Any:
        """The value of `text`. KernelError, one sentence, if it is none."""
        value: Any = text
        if self.type is bool:
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            if text.lower() not in words:
                raise KernelError(f"{name} must be true or false, not {text!r}")
            return words[text.lower()]
        if self.type is int:
            try:
                value = int(text, 0) if text.isascii() else None
            except ValueError:
                value = None
            if value is None:
                raise KernelError(f"{name} must be a whole number, not {text!r}")
        if self.type is float:
            try:
                value = float(text)
            except ValueError:
                raise KernelError(f"{name} must be a number, not {text!r}") from None
        return self.check(name, value)

    def check(self, name: str, value: Any) -> Any:
        """`value` if it obeys the rules. KernelError if not."""
        if value is None and self.default is None:
            return None
        if value is None or type(value) is not self.type:
            kind = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[self.type]
            raise KernelError(f"{name} must be {kind}, not {value!r}")
        if self.choices and value not in self.choices:
            raise KernelError(f"{name} must be one of {', '.join(self.choices)}, not {value!r}")
        if self.type is float and not math.isfinite(value):
            raise KernelError(f"{name} must be a finite number, not {value!r}")
        if self.minimum is not None and value < self.minimum:
            raise KernelError(f"{name} must be at least {self.minimum}, not {value}")
        if self.maximum is not None and value > self.maximum:
            raise KernelError(f"{name} must be at most {self.maximum}, not {value}")
        return value


def parse_params(settings: Iterable[str], params: Mapping[str, Param], owner: str) -> dict[str, Any]:
    """Parameters of `owner` from texts `name=value`, each name once, without defaults. KernelError."""
    given: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise KernelError(f"a parameter is written name=value, not {text!r}")
        value = _known(name, params, owner).parse(name, value.strip())
        if name in given:
            raise KernelError(f"{name} is given twice, as {given[name]} and as {value}; give it once")
        given[name] = value
    return given


def _known(name: str, params: Mapping[str, Param], owner: str) -> Param:
    if name not in params:
        raise KernelError(f"{owner} has no parameter {name!r}; it has {', '.join(params) or 'none'}")
    return params[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named program. `maker` takes the configuration, the parameters and the seed of the run.

    `settle` gives parameters whose defaults depend on each other their values, or refuses what does not go together.
    `configure`: the configuration that it runs on with these parameters, of the one that was asked for.
    `uses`: what a program with these parameters may use of a machine (Program.uses).
    """

    name: str
    doc: str
    params: Mapping[str, Param] = field(default_factory=dict)
    maker: Callable[[Config, Mapping[str, Any], int], Program]
    settle: Callable[[dict[str, Any]], dict[str, Any]] = _as_they_are
    configure: Callable[[Config, Mapping[str, Any]], Config] = _as_it_is
    uses: Callable[[Mapping[str, Any]], Uses] = _no_more

    def parse(self, settings: Iterable[str]) -> dict[str, Any]:
        """All parameters from texts `name=value`, each name once. KernelError."""
        return self.complete(parse_params(settings, self.params, f"workload {self.name}"))

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Checked parameters with the defaults of those that are not given. KernelError."""
        for name, value in given.items():
            _known(name, self.params, f"workload {self.name}").check(name, value)
        return self.settle({name: given.get(name, param.default) for name, param in self.params.items()})

    def build(
        self,
        cfg: Config,
        params: Mapping[str, Any] | None = None,
        seed: int = 0,
        maker: Callable[[Config, Mapping[str, Any], int], Program] | None = None,
    ) -> Program:
        """The program for `cfg`; by another `maker`, if its values come from somewhere else. MemoryFullError, which
        names the sizes if a memory is too small for them."""
        complete = self.complete(params or {})
        try:
            program = (maker or self.maker)(cfg, complete, seed)
        except MemoryFullError as error:
            sizes = [f"{n}={v}" for n, v in complete.items() if type(v) is int and v and n != "seed"]
            what = ", ".join((["this text"] if complete.get("text") else []) + sizes)
            of = f" of {what}" if what else ""
            raise MemoryFullError(f"{self.name}{of} does not fit the memories of {cfg.name}: {error}") from None
        program.params = complete
        return program

    def metrics(self, program: Program, outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The workload's own numbers about a result."""
        return program.metrics(outputs)
