"""Of which units a design consists, and how often: kept by its sources and configuration, so that asking again
elaborates nothing."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from rtl.contract.any_config import AnyConfig
from rtl.contract.config_fields import built_values
from rtl.emit.netlist import netlist_of
from sim.area.macros import Macro
from sim.area.modules import modules_of
from sim.area.units import Unit, take_apart
from sim.build.component import make_component
from sim.build.sources import sources_of
from sim.build.tops import Top
from sim.toolchain import activate, tool_versions
from sim.whole_file import whole_file

__all__ = ["Use", "elaborated", "kept_uses", "keep_uses", "place_of", "units_of", "uses_of"]

_NUMBER = re.compile(r"\$\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A unit in a design. `branches`: instances by the first step of the way to them; of one instance `macros`,
    `registers_bits` as described, `delay_bits`, `clock_gates`."""

    digest: str
    name: str
    branches: Mapping[str, int]
    domains: Sequence[str]
    macros: Mapping[Macro, int]
    registers_bits: int
    delay_bits: int
    clock_gates: int

    @property
    def count(self) -> int:
        """Instances."""
        return sum(self.branches.values())


def _name(unit: Unit, top: str) -> str:
    """The shortest way to it; of several that differ in numbers only, with stars for these."""
    plain = {_NUMBER.sub("", name.removeprefix("plexus_").removeprefix(f"{top}.")) for name in unit.names}
    found = sorted(plain, key=lambda name: (name.count("."), len(name), name))
    general = {re.sub(r"\d+", "*", name) for name in found}
    return general.pop() if len(found) > 1 and len(general) == 1 else found[0]


def uses_of(units: Sequence[Unit], top: str) -> list[Use]:
    """What is to be known of units, each under a name of its own."""
    names = [_name(unit, top) for unit in units]
    often = Counter(names)
    return [
        Use(
            digest=unit.digest,
            name=name if often[name] == 1 else f"{name} {unit.digest[:4]}",
            branches=dict(sorted(unit.branches.items())),
            domains=sorted(unit.domains),
            macros=dict(sorted(unit.macros.items())),
            registers_bits=unit.registers_bits,
            delay_bits=unit.delay_bits,
            clock_gates=unit.clock_gates,
        )
        for unit, name in zip(units, names, strict=True)
    ]


def units_of(component: wiring.Component, name: str) -> list[Unit]:
    """The units of a component, which is called `name`. Errors: PlexusError for a part that has no gates."""
    activate()
    return take_apart(modules_of(netlist_of(component, name)))


def elaborated(top: Top, cfg: AnyConfig, options: Mapping[str, Any]) -> list[Unit]:
    """The units of a top. Errors: PlexusError for a part that has no gates, or an option that is none."""
    return units_of(make_component(top, cfg, options), top.name)


def place_of(shelf: Path, top: Top, cfg: AnyConfig, options: Mapping[str, Any]) -> Path:
    """Where the uses of a design are kept: by all that they depend on, as it is now."""
    modules = [top.factory.partition(":")[0], "rtl.emit.netlist", "sim.area.design"]
    what = {
        "top": top.factory,
        "config": built_values(cfg, every=not top.factory.startswith("rtl.")),
        "options": dict(options),
        "sources": sources_of(modules).digest,
        "tools": tool_versions(),
    }
    return shelf / "designs" / f"{hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:20]}.json"


def kept_uses(path: Path) -> list[Use] | None:
    """Those of a design that has been elaborated before; None also if what was kept is spoilt."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(path.read_text())
        return [Use(**{**use, "macros": {Macro(*shape): n for shape, n in use["macros"]}}) for use in found]
    return None


def keep_uses(path: Path, uses: Sequence[Use]) -> None:
    """For the next time. Errors: PlexusError if it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = []
    for use in uses:
        plain = {field.name: getattr(use, field.name) for field in fields(use)}
        shapes = [[list(astuple(macro)), number] for macro, number in use.macros.items()]
        texts.append({**plain, "macros": shapes})
    with whole_file(path) as place:
        place.write_text(json.dumps(texts))
