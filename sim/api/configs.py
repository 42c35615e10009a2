"""Configurations of a core by name, by file, and with changes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rtl.contract.config import Config, load
from rtl.contract.config_changes import changed, merge
from rtl.contract.config_changes import settings as parsed_settings
from sim.api.errors import as_errors
from sim.errors import PlexusError
from sim.run.variant import plain
from sim.systems.core.configs import CONFIGURATIONS

__all__ = ["Settings", "list_configs", "load_config"]

Settings = Sequence[str] | Mapping[str, Any]
"""Changes of fields: {"dma.engines": 8} or ["dma.engines=8"]."""


def list_configs() -> dict[str, str]:
    """Names of the configurations of a core there are, and each in a line; `plexus list NAME` tells all fields."""
    about = CONFIGURATIONS.about or str
    return {name: about(cfg) for name, cfg in CONFIGURATIONS.named.items()}


@as_errors()
def load_config(config: str | os.PathLike[str] | Config = "small", settings: Settings = ()) -> Config:
    """A configuration: a name of `list_configs`, a .toml file or a Config, with changed fields on top.

    As in load_config("small", {"hbm.latency_ns": 50, "tensor.nvfp4": True}). Errors: plexus.Error.
    """
    texts = _texts(settings)
    if not isinstance(config, Config):
        if not isinstance(config, (str, os.PathLike)):
            raise PlexusError(f"config is a name, a .toml file or a plexus.Config, not {type(config).__name__}")
        name = os.fspath(config)
        if not isinstance(name, str) or "\0" in name:
            raise PlexusError(f"config is a name or a .toml file, and {name!r} can be none")
        return load(name, texts)
    if not texts:
        return config
    changes: dict[str, Any] = {}
    merge(changes, parsed_settings(texts))
    return changed(config, changes, "a setting")


def _texts(settings: Any) -> list[str]:
    """Settings as `--set` takes them. PlexusError for what is neither a mapping nor a list."""
    rule = 'settings are a mapping or a list, as {"hbm.latency_ns": 50} or ["hbm.latency_ns=50"]'
    if isinstance(settings, str):
        raise PlexusError(f"{rule}, not the text {settings!r}")
    if isinstance(settings, Mapping):
        return [f"{key}={plain(value)}" for key, value in settings.items()]
    if not isinstance(settings, Iterable):
        raise PlexusError(f"{rule}, not {settings!r}")
    texts = list(settings)
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise PlexusError(f"{rule}; {wrong[0]!r} is no text of a list")
    return texts
