"""Components as gates: each unit of them through Yosys once, kept by what Yosys sees and does."""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from amaranth.lib import wiring

from sim.area import synthesis
from sim.area.design import units_of
from sim.area.units import Unit
from sim.energy import cell_netlist
from sim.energy.cell_netlist import CellNetlist, cell_netlist_of
from sim.energy.gates import Gates, flat
from sim.toolchain import build_root
from sim.whole_file import whole_file

__all__ = ["Made", "gates_of", "made_of", "shelf"]


@dataclass(frozen=True, slots=True)
class Made:
    """The units of a component, its own last, and a digest of them all."""

    units: Sequence[Unit]
    digest: str


def shelf() -> Path:
    """Where netlists and toggles are kept."""
    return build_root() / "energy"


def made_of(component: wiring.Component, name: str) -> Made:
    """What a component consists of. Errors: PlexusError for a part that has no gates."""
    units = units_of(component, name)
    text = json.dumps([unit.digest for unit in units])
    return Made(units, hashlib.sha256(f"{text} {synthesis.made_by()}".encode()).hexdigest())


def _place(unit: Unit) -> Path:
    own = hashlib.sha256(Path(cell_netlist.__file__).read_bytes()).hexdigest()
    key = hashlib.sha256(f"{unit.digest} {synthesis.made_by()} {own}".encode()).hexdigest()[:20]
    return shelf() / "netlists" / f"{key}.json"


def _netlist(unit: Unit, tick: Callable[[], None]) -> CellNetlist:
    place = _place(unit)
    with suppress(OSError, ValueError, TypeError):
        return CellNetlist(**json.loads(place.read_text()))
    found = cell_netlist_of(synthesis.mapped_text(unit, tick), unit.modules[0].name)
    place.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as file:
        file.write_text(json.dumps(found.as_dict(), separators=(",", ":")))
    return found


def gates_of(made: Made, *, tick: Callable[[], None], came: Callable[[str], None]) -> Gates:
    """The gates of a component. `came` hears the name of each unit that is there, `tick` is called meanwhile.

    Errors: PlexusError with Yosys's words, or for a RAM inside. What was made before an error is kept.
    """
    synthesis.shelf().mkdir(parents=True, exist_ok=True)
    synthesis.tidy()
    known: dict[str, CellNetlist] = {}
    for unit in made.units:
        netlist = _netlist(unit, tick)
        known |= dict.fromkeys(unit.names, netlist)
        came(unit.names[0])
    return flat(known, made.units[-1].names[0])
