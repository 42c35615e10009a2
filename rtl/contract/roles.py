"""What a change of a configuration costs: by field, and the one model that serves many configurations.

A field of Role.ROOM says how much of something there is: partitions of SBUF as long as that, so many rings, formats
that the array can do. A program that needs less runs in more room with the same cycles, counters and bits, as
tests/system/test_roles.py holds each of them to. Of a field of Role.KNOB hardware would do more at once if it could:
such a model is told to do less (rtl/contract/limits.py). So a model serves every configuration that differs from its
own in fields of Role.HOST, has less room, smaller knobs, or other clocks with the same bridges between them. What a
configuration refuses, its kernels and the golden machine refuse.

Only programs that give GPSIMD cores something to do can tell whether there are any, only those with sums whether there
are adders beside SBUF, only those with several traffic classes whether the DMA has more than one, and only those with
indices whether it takes any. All others run on a model without (`needed`), which is built in half of the time and
simulated faster. Adders, classes and indices come together: few programs need one of them, and fewer models are built.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from enum import Flag, auto
from typing import Any, TypeVar

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import Config, DmaConfig, GpsimdConfig
from rtl.contract.config_changes import changed
from rtl.contract.config_fields import ConfigError, Role, fields_of

ConfigT = TypeVar("ConfigT", bound=AnyConfig)

__all__ = ["OF_CLASSES", "Uses", "covers", "envelope", "model_values", "needed", "roles", "values"]

_UP_TO = (Role.ROOM, Role.KNOB)
_ONE_CLASS = DmaConfig(engines=4, classes=1)
OF_CLASSES = ("weights", "strict_class", "strict_cap", "priority")
"""Fields of dma that tell classes apart."""


class Uses(Flag):
    """What of a machine a program uses, of what a model may be without."""

    CORES = auto()  # gives GPSIMD cores something to do, which may be any copy
    SUMS = auto()  # descriptors that add
    CLASSES = auto()  # descriptors of another class than 0
    INDICES = auto()  # descriptors whose rows indices choose


_NOTHING = Uses(0)


def roles(cfg: AnyConfig) -> dict[str, Role]:
    """The role of every field but names, as section.field."""
    return {key: role for key, role, _ in _fields(cfg)}


def values(cfg: AnyConfig) -> dict[str, Any]:
    """The value of every field but names, as section.field."""
    return {key: value for key, _, value in _fields(cfg)}


def _fields(config: AnyConfig) -> Iterator[tuple[str, Role, Any]]:
    for key, knob, value in fields_of(config):
        yield key, knob.role if knob else Role.MODEL, value


def model_values(cfg: AnyConfig) -> dict[str, Any]:
    """What is equal for all that one model can serve, as section.field."""
    own = {key: value for key, role, value in _fields(cfg) if role == Role.MODEL}
    if isinstance(cfg, Config):
        close = cfg.close_clocks
        own |= {
            f"{name}.clock_mhz above half of tensor.clock_mhz": name in close for name in ("vector", "scalar", "gpsimd")
        }
        if not cfg.gpsimd.enabled:  # what there would be of it does not count
            own = {k: value for k, value in own.items() if k == "gpsimd.enabled" or not k.startswith("gpsimd.")}
    return own


def covers(model: AnyConfig, cfg: AnyConfig) -> bool:
    """Whether a model of the configuration `model` runs programs of `cfg` as a model of its own would."""
    if type(model) is not type(cfg):
        return False
    return model_values(model) == model_values(cfg) and all(
        role not in _UP_TO or there >= wanted
        for (_, role, there), (_, _, wanted) in zip(_fields(model), _fields(cfg), strict=True)
    )


def needed(cfg: Config, uses: Uses = _NOTHING) -> Config:
    """What a model must be of to run programs of `cfg` that use no more, with the same cycles and counters."""
    if Uses.CORES in uses:
        return cfg
    dma, sbuf = cfg.dma, cfg.sbuf
    has_lane = dma.classes > 1 and (dma.priority or dma.strict_class >= 0)  # whose ports order writes otherwise
    if not uses and not has_lane:
        one = {name: getattr(_ONE_CLASS, name) for name in OF_CLASSES}
        dma = dataclasses.replace(dma, classes=1, **one)
    if not uses:
        dma = dataclasses.replace(dma, indirect=False)
        sbuf = dataclasses.replace(sbuf, adders=False)
    gpsimd = GpsimdConfig(enabled=False, clock_mhz=cfg.gpsimd.clock_mhz)
    return dataclasses.replace(cfg, gpsimd=gpsimd, dma=dma, sbuf=sbuf)


def envelope(configs: Sequence[ConfigT]) -> ConfigT:
    """The first of them with the most room and the largest knobs of all.

    Errors: ConfigError if they differ in what a model of its own needs.
    """
    first = configs[0]
    shared = model_values(first)
    for cfg in configs[1:]:
        for key, value in model_values(cfg).items():
            if value != shared[key]:
                raise ConfigError(f"no model serves both {key}={shared[key]} and {key}={value}")
    changes: dict[str, Any] = {}
    columns = zip(*(_fields(cfg) for cfg in configs), strict=True)
    for column in columns:
        key, role, _ = column[0]
        values = [value for _, _, value in column]
        if role in _UP_TO:
            section, _, name = key.rpartition(".")
            into = changes.setdefault(section, {}) if section else changes
            into[name] = max(values)
    return changed(first, changes, "an envelope")
