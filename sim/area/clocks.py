"""Periods of clock domains, and how many levels of logic fit into one."""

from collections.abc import Iterable
from typing import Any

from rtl.contract.any_config import AnyConfig
from sim.build.tops import Top

__all__ = ["LEVEL_PS", "MARGIN", "REGISTER_PS", "levels_in", "period_ps", "unit_period_ps"]

LEVEL_PS = 9.5
"""Of a gate of two inputs with its wire, in a process of 3 to 5 nm: an estimate (docs/area.md)."""
REGISTER_PS = 60.0
"""Of a flip-flop, from its clock to its output and from its input to its clock, and of skew: the same."""
MARGIN = 0.04
"""Of a period, for jitter and what varies."""
_PS = 1e6  # in a period of 1 MHz
_ENGINES = ("vector", "scalar", "gpsimd")
_OF_ENGINES = {
    "rtl.vector": "vector",
    "rtl.scalar": "scalar",
    "rtl.gpsimd": "gpsimd",
    "rtl.numeric.functions": "vector",
}
"""Rooms whose units, built alone, run on the clock of an engine."""
_WITH_CLOCKS = ("rtl.core", "rtl.vector.clocked", "rtl.scalar.clocked", "rtl.gpsimd.clocked")
"""Where the clocks of engines are made; their domains have names."""


def _root_mhz(cfg: Any) -> int:
    """The clock of a core, a link or the links of a switch."""
    for section in ("tensor", "link"):
        if hasattr(cfg, section):
            return getattr(cfg, section).clock_mhz
    return cfg.clock_mhz


def _engine_ps(cfg: Any, engine: str) -> float:
    """The shortest period of an engine's clock, whose edges are edges of the root clock."""
    root = _root_mhz(cfg)
    mhz = getattr(cfg, engine).clock_mhz if hasattr(cfg, engine) else root
    return (root // mhz) * _PS / root


def period_ps(cfg: AnyConfig, domains: Iterable[str]) -> float:
    """Of the fastest of these domains; a domain is an engine's if its name begins with that of the engine, else it has
    the root clock."""
    found = [next((e for e in _ENGINES if d.startswith(e)), "") for d in domains] or [""]
    return min(_engine_ps(cfg, engine) if engine else _PS / _root_mhz(cfg) for engine in found)


def unit_period_ps(cfg: AnyConfig, top: Top, domains: Iterable[str]) -> float:
    """Of a unit of these domains in a top, of what is built alone the clock that it has in a core."""
    if top.factory.partition(":")[0] in _WITH_CLOCKS:
        return period_ps(cfg, domains)
    return period_ps(cfg, [next((e for room, e in _OF_ENGINES.items() if top.factory.startswith(f"{room}.")), "")])


def levels_in(period: float, level_ps: float = LEVEL_PS) -> int:
    """Levels of logic between two registers that a period of so many ps holds."""
    return max(0, round((period * (1 - MARGIN) - REGISTER_PS) / level_ps))
