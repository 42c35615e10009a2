"""Which variant of a configuration and a workload a run is: what was changed, in words, and a folder of its own."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.contract.config_changes import difference
from sim.systems.configurations import by_name
from sim.toolchain import build_root

__all__ = ["changes", "default_folder", "described", "is_named", "plain"]

_SHOWN = 6


def changes(cfg: AnyConfig) -> tuple[str, dict[str, Any]]:
    """Name of the configuration that `cfg` goes out from, and the fields that are not as there, `section.key`.

    That of its own name; without one, as for a file, the one of its kind with fewest differences.
    """
    known = {name: base for name, base in by_name().items() if type(base) is type(cfg)}
    if cfg.name in known:
        return cfg.name, difference(cfg, known[cfg.name])
    found = {name: difference(cfg, base) for name, base in known.items()}
    nearest = min(found, key=lambda name: len(found[name]))
    return nearest, found[nearest]


def is_named(cfg: AnyConfig) -> bool:
    """Whether it is one of the named configurations as it is."""
    return by_name().get(cfg.name) == cfg


def described(config: str, base: str, changed: Mapping[str, Any], file: str | None) -> str:
    """As in "small", "small with dma.engines=8", "mine.toml, small with dma.engines=8"."""
    parts = [f"{key}={plain(value)}" for key, value in changed.items()]
    more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    text = f"{base} with {', '.join(parts[:_SHOWN])}{more}" if parts else base
    own = file or (config if config != base else "")
    return f"{own}, {text}" if own else text


def plain(value: Any) -> str:
    """A value of a configuration as a setting has it."""
    return ":".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value).lower()


def default_folder(workload: str, cfg: AnyConfig, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Path:
    """build/runs/WORKLOAD-CONFIG, and of a variant with a hash of what makes it one: two never share a folder.

    `settings`: parameters, seed and all else that was asked for; `defaults`: the same if nothing is.
    """
    name = f"{workload}-{cfg.name}"
    if not is_named(cfg) or dict(settings) != dict(defaults):
        what = json.dumps([cfg.as_dict(), dict(settings)], sort_keys=True, default=str)
        name += f"-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
    return build_root() / "runs" / name
