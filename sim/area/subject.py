"""Of what the area is asked: a top at a configuration, or a configuration, whose whole design it then is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import NAMED, load
from sim.build.component import config_kind
from sim.build.tops import TOPS
from sim.build.tops import top as find_top
from sim.errors import PlexusError
from sim.run.repeat import configured
from sim.systems.configurations import by_name, kind_of_type
from sim.toolchain import build_root

__all__ = ["WHOLE", "Subject", "config_of", "subject_of"]

WHOLE = {"core": "core", "switch": "switch", "link": "port_device"}
"""The top that is all of a configuration, by the kind of its system."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A top at a configuration."""

    top: str
    cfg: AnyConfig

    def folder(self, options: Mapping[str, Any]) -> Path:
        """build/area/TOP-CONFIG, with a hash if anything is not as named."""
        named = by_name().get(self.cfg.name) == self.cfg and not options
        more = "" if named else f"-{self.cfg.hash}{''.join(f'-{k}={json.dumps(v)}' for k, v in options.items())}"
        return build_root() / "area" / f"{self.top}-{Path(self.cfg.name).stem}{more}".replace("/", "_")


def config_of(source: str, settings: Sequence[str]) -> AnyConfig:
    """A named configuration or a FILE.toml of a core, with changes. Errors: PlexusError and ConfigError."""
    return load(source, settings) if source in NAMED or source.endswith(".toml") else configured(source, settings)


def subject_of(what: str, config: str | None, settings: Sequence[str]) -> Subject:
    """Errors: PlexusError and ConfigError, one sentence: neither a top nor a configuration, or two that do not fit."""
    if what not in TOPS and (what in by_name() or what.endswith(".toml")):
        if config is not None:
            raise PlexusError(f"{what} is a configuration itself, so it takes no --config {config}")
        cfg = config_of(what, settings)
        kind = kind_of_type(type(cfg))
        assert kind is not None  # it has a name
        return Subject(WHOLE[kind.kind], cfg)
    if what not in TOPS:
        raise PlexusError(
            f"{what!r} is neither a top nor a configuration; `plexus list tops` and `plexus list configs` name them"
        )
    wanted = config_kind(find_top(what))
    if wanted is None:
        return Subject(what, config_of(config or "small", settings))
    cfg = config_of(config or ("small" if wanted.kind == "core" else next(iter(wanted.named))), settings)
    if not isinstance(cfg, wanted.type):
        raise PlexusError(f"top {what} is made from a configuration of a {wanted.kind}, and {config} is none")
    return Subject(what, cfg)
