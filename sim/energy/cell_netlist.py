"""One unit as Yosys mapped it: cells and the numbers of their nets; as plain values, for a file."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sim.area.cells import LOGIC
from sim.errors import PlexusError

__all__ = ["CONSTANTS", "CellNetlist", "cell_netlist_of"]

CONSTANTS = {"0": 0, "x": 0, "z": 0, "1": 1}
"""Net numbers of what drives itself; what may be anything is 0. Yosys numbers other nets from 2 on."""

_Bits = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNetlist:
    """`ports`: direction and nets by name; `cells`: kind, nets of its inputs by their pins' names, net of its output;
    `registers`: D, Q, clock; `boxes`: modules that are placed, nets by port; `initial`: nets of registers that begin at
    1."""

    ports: Mapping[str, tuple[str, _Bits]]
    cells: list[tuple[str, _Bits, int]]
    registers: list[tuple[int, int, int]]
    boxes: list[tuple[str, Mapping[str, _Bits]]]
    initial: _Bits

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def _nets(bits: list[Any]) -> _Bits:
    return [bit if isinstance(bit, int) else CONSTANTS[bit] for bit in bits]


def _initial(names: Mapping[str, Any]) -> _Bits:
    found: set[int] = set()
    for about in names.values():
        init = about.get("attributes", {}).get("init")
        if init is not None:
            pairs = zip(about["bits"], reversed(init), strict=False)
            found |= {bit for bit, value in pairs if value == "1" and isinstance(bit, int)}
    return sorted(found)


def cell_netlist_of(text: str, top: str) -> CellNetlist:
    """From Yosys's JSON. Errors: PlexusError for a memory: its words do not switch as gates do."""
    module = json.loads(text)["modules"][top]
    cells: list[tuple[str, _Bits, int]] = []
    registers: list[tuple[int, int, int]] = []
    boxes: list[tuple[str, Mapping[str, _Bits]]] = []
    for cell in module["cells"].values():
        kind, pins = cell["type"], {port: _nets(bits) for port, bits in cell["connections"].items()}
        if kind in LOGIC:
            cells.append((kind, [pins[port][0] for port in sorted(pins) if port != "Y"], pins["Y"][0]))
        elif kind == "$_DFF_P_":
            registers.append((pins["D"][0], pins["Q"][0], pins["C"][0]))
        elif kind.startswith("$") and kind != "$scopeinfo":
            raise PlexusError(f"{top} has a cell {kind}, whose toggles cannot be counted in gates")
        elif not kind.startswith("$"):
            boxes.append((kind, pins))
    ports = {name: (about["direction"], _nets(about["bits"])) for name, about in module["ports"].items()}
    initial = _initial(module["netnames"])
    return CellNetlist(ports=ports, cells=cells, registers=registers, boxes=boxes, initial=initial)
