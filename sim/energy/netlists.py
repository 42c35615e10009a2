"""Components as gates: each unit of them through Yosys once, kept by what Yosys sees and does."""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from amaranth.lib import wiring

from sim.area import synthesis
from sim.area.design import units_of
from sim.area.units import Unit
from sim.energy import cell_netlist
from sim.energy.cell_netlist import CellNetlist, cell_netlist_of
from sim.energy.gates import Gates, flat
from sim.errors import PlexusError
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
    own = "".join(hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in (cell_netlist.__file__, __file__))
    key = hashlib.sha256(f"{unit.digest} {synthesis.made_by()} {own}".encode()).hexdigest()[:20]
    return shelf() / "netlists" / f"{key}.json"


def _netlist(unit: Unit, tick: Callable[[], None]) -> CellNetlist:
    """Equal units may have other names inside: in a file, units that are placed have numbers, as in `boxes`."""
    place, names = _place(unit), list(unit.boxes)
    with suppress(OSError, ValueError, TypeError, IndexError):
        kept = CellNetlist(**json.loads(place.read_text()))
        return replace(kept, boxes=[(names[int(number)], pins) for number, pins in kept.boxes])
    found = cell_netlist_of(synthesis.mapped_text(unit, tick), unit.modules[0].name)
    place.parent.mkdir(parents=True, exist_ok=True)
    general = replace(found, boxes=[(str(_number(names, name)), pins) for name, pins in found.boxes])
    with whole_file(place) as file:
        file.write_text(json.dumps(general.as_dict(), separators=(",", ":")))
    return found


def _number(names: Sequence[str], name: str) -> int:
    """Errors: PlexusError for what is placed and is no unit, as a RAM."""
    if name not in names:
        raise PlexusError(f"a unit places {name}, whose toggles cannot be counted in gates")
    return names.index(name)


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
