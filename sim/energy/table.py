"""The table of events of a configuration: what is measured of its units, its flip-flops, its RAM macros."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import Config
from rtl.contract.config_fields import built_values
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from sim.energy.core.catalogue import units_of_core
from sim.energy.core.macros import rows_of
from sim.energy.core.registers import registers_of
from sim.energy.events import Unit
from sim.energy.fabric import hardware
from sim.energy.fabric.units import units_of_link, units_of_switch
from sim.energy.macro_row import RowOf
from sim.energy.measure import measured
from sim.energy.simulation import CLOCK_GE
from sim.errors import PlexusError
from sim.progress import Progress
from sim.run.variant import changes
from sim.toolchain import tool_versions

__all__ = ["read_table", "table_of"]

FORMAT = 1


def _units(cfg: AnyConfig) -> tuple[Unit, ...]:
    if isinstance(cfg, Config):
        return units_of_core(cfg)
    if isinstance(cfg, LinkConfig):
        return units_of_link(cfg)
    if isinstance(cfg, SwitchConfig):
        return units_of_switch(cfg)
    raise PlexusError(f"{cfg.name} is no configuration of a core, a link or a switch")


def _hardware(cfg: AnyConfig, step: Progress) -> tuple[dict[str, dict[str, int]], dict[str, list[RowOf]]]:
    """Flip-flops by clock, and rows of RAM."""
    if isinstance(cfg, LinkConfig | SwitchConfig):
        return hardware.flip_flops_of(cfg, step), hardware.rows_of(cfg)
    assert isinstance(cfg, Config)
    return registers_of(cfg, step), rows_of(cfg)


def table_of(cfg: AnyConfig, step: Progress | None = None) -> dict[str, Any]:
    """Plain values; docs/energy.md has each key. Minutes for hardware that is new, else milliseconds. Errors:
    PlexusError. What was measured before an error or an interrupt is kept."""
    step = step or Progress(f"energy {cfg.name}")
    events = measured(_units(cfg), step)
    registers, rams = _hardware(cfg, step)
    base, changed = changes(cfg)
    return {
        "format": FORMAT,
        "config": cfg.name,
        "config_base": base,
        "config_changes": changed,
        "config_hash": cfg.hash,
        "hardware": built_values(cfg),
        "events": events,
        "registers": registers,
        "clock_ge": CLOCK_GE,
        "rams": {name: [asdict(macro) for macro in macros] for name, macros in rams.items()},
        "tool_versions": tool_versions(),
    }


def read_table(path: Path, cfg: AnyConfig) -> Mapping[str, Any]:
    """One that was written before. Errors: PlexusError if it is none, or of other hardware than this."""
    try:
        table = json.loads(path.read_text())
    except OSError as error:
        raise PlexusError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise PlexusError(f"{path} is no table of events: plexus energy CONFIG writes one, energy.json") from None
    if not isinstance(table, dict) or table.get("format") != FORMAT or "hardware" not in table:
        raise PlexusError(f"{path} is no table of events of format {FORMAT}: plexus energy CONFIG writes one")
    if table["hardware"] != json.loads(json.dumps(built_values(cfg))):
        raise PlexusError(f"{path} is a table of {table['config']}, whose hardware is not that of {cfg.name} here")
    return table
