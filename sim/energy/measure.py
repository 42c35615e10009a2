"""Toggles of each event of a unit: measured once, kept by what the unit consists of and how it is driven."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rtl.contract.config_fields import built_values
from sim.build.sources import sources_of
from sim.build.tops import Top, factory
from sim.energy.events import Unit
from sim.energy.gates import Gates
from sim.energy.netlists import Made, gates_of, made_of, shelf
from sim.energy.simulation import Simulation
from sim.energy.values import KINDS, Source
from sim.progress import Progress
from sim.toolchain import tool_versions
from sim.whole_file import whole_file

__all__ = ["measured"]

_MODULES = ("sim.energy.core.catalogue", "sim.energy.fabric.units", "sim.energy.measure")
"""With all that they import: how units are driven and toggles counted."""
Rows = list[dict[str, Any]]
"""A row an event: `event`, `unit`, `per`, weighted toggles by kind of data, flip-flops and how many take something."""


def _kept(path: Path) -> Rows | None:
    with suppress(OSError, ValueError, TypeError):
        rows = json.loads(path.read_text())
        if isinstance(rows, list) and all({"event", *KINDS} <= row.keys() for row in rows):
            return rows
    return None


def _keep(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as place:
        place.write_text(json.dumps(rows))


def _key(*what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:20]


def _asked(unit: Unit) -> Path:
    """Where rows are by what was asked: nothing must be elaborated to find them."""
    rooms = [one.factory.partition(":")[0] for one in (unit, *unit.beside)]
    options = {name: repr(value) for name, value in unit.options.items()}
    cfg = built_values(unit.cfg) if unit.cfg else None
    events = [event.name for event in unit.events]
    sources = sources_of([*_MODULES, *rooms]).digest
    return shelf() / "asked" / f"{_key(unit.factory, options, cfg, events, sources, tool_versions())}.json"


def _found(unit: Unit, made: Sequence[Made]) -> Path:
    """The same by what it consists of: another configuration may have the same unit."""
    rooms = ("sim/energy/", "rtl/contract/", "firmware/")
    own = sorted(digest for name, digest in sources_of(_MODULES).files.items() if name.startswith(rooms))
    events = [event.name for event in unit.events]
    return shelf() / "toggles" / f"{_key([one.digest for one in made], events, own)}.json"


class _Maker:
    """Elaborates and synthesises what is needed, once."""

    def __init__(self, step: Progress):
        self.step = step
        self.made: dict[str, Made] = {}
        self.gates: dict[str, Gates] = {}

    def consists(self, unit: Unit) -> Made:
        """The units of a unit."""
        if unit.name not in self.made:
            self.step.stage("elaborate")
            make = factory(Top(unit.name, unit.factory, ""))
            component = make(**({"cfg": unit.cfg} if unit.cfg else {}), **unit.options)
            self.made[unit.name] = made_of(component, "unit")
        return self.made[unit.name]

    def netlist(self, unit: Unit) -> Gates:
        """Its gates."""
        if unit.name not in self.gates:
            made = self.consists(unit)
            self.step.stage("synthesise")

            def came(part: str) -> None:
                self.step.note(f"{unit.name}, {part}")

            self.gates[unit.name] = gates_of(made, tick=self.step.tick, came=came)
        return self.gates[unit.name]

    def toggles(self, unit: Unit) -> Rows:
        """Of its events."""
        needed = (unit, *unit.beside)
        gates = [self.netlist(one) for one in needed]
        self.step.stage("count toggles")
        sims = [Simulation(one, unit.words) for one in gates]
        rows: Rows = []
        for event in unit.events:
            row: dict[str, Any] = {"event": event.name, "unit": unit.name, "per": event.per}
            for kind in KINDS:
                self.step.note(f"{event.name}, {kind}")
                for sim in sims:
                    sim.restart()
                event.drive(sims, Source(kind, event.name, unit.words))
                row[kind] = round(sims[0].toggles.each, 1)
            row["registers"] = sum(sims[0].registers.values())
            row["registers_written"] = round(sims[0].toggles.registers, 1)
            rows.append(row)
        return rows


def measured(units: Sequence[Unit], step: Progress) -> Rows:
    """Rows of all events. Errors: PlexusError. What was measured before an error or an interrupt is kept."""
    maker = _Maker(step)
    rows: Rows = []
    for unit in units:
        asked = _asked(unit)
        found = _kept(asked)
        if found is None:
            place = _found(unit, [maker.consists(one) for one in (unit, *unit.beside)])
            found = _kept(place)
            if found is None:
                found = maker.toggles(unit)
                _keep(place, found)
            _keep(asked, found)
        rows += found
    return rows
