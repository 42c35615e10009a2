"""One run of a bench as a command line, and back: `plexus bench TOP BENCH ...` repeats what `make test` ran."""

import dataclasses
import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import ConfigError
from rtl.contract.config_changes import named_values
from sim.errors import PlexusError
from sim.run.variant import changes
from sim.systems.configurations import by_name
from sim.toolchain import ROOT

__all__ = [
    "bench_modules",
    "command_line",
    "configured",
    "find_bench",
    "options_from",
    "settings_of",
    "short_name",
]


def command_line(
    top: str,
    bench: str,
    cfg: AnyConfig,
    *,
    options: Mapping[str, Any],
    seed: int,
    plant: str,
    testcase: str | None,
) -> str:
    """What a shell takes to run this again."""
    base, settings = settings_of(cfg)
    words = ["plexus", "bench", top, short_name(bench), "--config", base]
    for setting in settings:
        words += ["--set", setting]
    for key, value in options.items():
        words += ["--option", f"{key}={json.dumps(value)}"]
    words += ["--seed", str(seed)]
    words += ["--plant", plant] if plant else []
    words += ["--test", testcase] if testcase else []
    return shlex.join(words)


def settings_of(cfg: AnyConfig) -> tuple[str, list[str]]:
    """The named configuration that `cfg` goes out from, and `key=value` for what is not as there."""
    base, changed = changes(cfg)
    texts = {k: ":".join(map(str, v)) if isinstance(v, tuple) else str(v) for k, v in changed.items()}
    return base, [f"{key}={text}" for key, text in texts.items()]


def configured(name: str, settings: Iterable[str]) -> AnyConfig:
    """A named configuration of a core, a link or a switch with `key=value` changes, keys as in `plexus list NAME`.

    Errors: ConfigError, one sentence.
    """
    known = by_name()
    if name not in known:
        raise ConfigError(f"there is no configuration {name!r}; there are {', '.join(known)}")
    nested: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"a setting is written key=value, not {text!r}")
        section = nested
        *sections, last = key.strip().split(".")
        for part in sections:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                raise ConfigError(f"{part} of {key.strip()!r} is set to {section!r} too; set fields of it, or it alone")
        section[last] = value.strip()
    return _with(known[name], nested, "")


def _with(cfg: Any, new: Mapping[str, Any], prefix: str) -> Any:
    """`cfg` with all changes at once, for one alone may break a rule."""
    fields = {f.name: f for f in dataclasses.fields(cfg)}
    values: dict[str, Any] = {}
    for name, value in new.items():
        if name not in fields:
            raise ConfigError(f"{prefix}{name} is no field; fields are {', '.join(prefix + n for n in fields)}")
        current = getattr(cfg, name)
        if dataclasses.is_dataclass(current) != isinstance(value, dict):
            raise ConfigError(f"{prefix}{name} is {'no ' if isinstance(value, dict) else 'a '}section of fields")
        if isinstance(value, dict):
            values[name] = _with(current, value, f"{prefix}{name}.")
        else:
            texts = named_values(fields[name])
            values[name] = texts[value] if value in texts else _typed(prefix + name, value, current)
    return dataclasses.replace(cfg, **values)


def _typed(name: str, value: str, current: Any) -> Any:
    try:
        if isinstance(current, bool):
            return {"true": True, "false": False}[value.lower()]
        if isinstance(current, tuple):
            return tuple(int(part) for part in value.split(":"))
        return type(current)(value)
    except (KeyError, ValueError):
        kind = {bool: "true or false", tuple: "whole numbers with : between", int: "a whole number"}[type(current)]
        raise ConfigError(f"{name} must be {kind}, not {value!r}") from None


def options_from(texts: Iterable[str]) -> dict[str, Any]:
    """Options of a top from `key=value`; a value is JSON, or else a text."""
    options: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise PlexusError(f"an option is written key=value, not {text!r}")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def bench_modules() -> dict[str, str]:
    """Modules of all benches by room and name, as in link.scheduler."""
    files = sorted((ROOT / "verif" / "benches").glob("*/bench_*.py"))
    modules = (".".join(f.relative_to(ROOT).with_suffix("").parts) for f in files)
    return {short_name(module): module for module in modules}


def short_name(module: str) -> str:
    """verif.benches.link.bench_scheduler is link.scheduler; others keep their names."""
    return module.removeprefix("verif.benches.").replace(".bench_", ".")


def find_bench(top: str, bench: str | None) -> str:
    """The module of a bench: of this name, its room only where two share it, or without one of the name of the top."""
    known = bench_modules()
    wanted = bench or top
    found = [name for name in known if wanted in (name, name.partition(".")[2], known[name])]
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise PlexusError(f"{wanted} is the name of {len(found)} benches: {', '.join(found)}")
    why = f"there is no bench {bench!r}" if bench else f"no bench is called {top}, so name the one for it"
    raise PlexusError(f"{why}; there are {', '.join(known)}")
