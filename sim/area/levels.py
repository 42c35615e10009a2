"""Levels of logic: the longest path through a mapped netlist, in gates of two inputs; inverters are free."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.area.cells import LOGIC

__all__ = ["Path", "longest_path"]

_Cell = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Path:
    """`levels` from a register, RAM or input to a register, RAM or output; their names."""

    levels: int
    begin: str
    end: str


def _outputs(cell: _Cell, port: str) -> bool:
    return cell.get("port_directions", {}).get(port, "input") == "output"


def _names(module: _Cell) -> dict[int, str]:
    """Of every net the name that tells most: one that a source gives, the shortest of them."""
    found: dict[int, str] = {}
    ranked = sorted(module["netnames"].items(), key=lambda item: (item[1]["hide_name"], len(item[0]), item[0]))
    for name, about in ranked:
        bits = about["bits"]
        for at, bit in enumerate(bits):
            if isinstance(bit, int):
                found.setdefault(bit, f"{name}[{at}]" if len(bits) > 1 else name)
    return found


def longest_path(module: _Cell) -> Path:
    """Of a module in Yosys's JSON that consists of the ten cells and black boxes. Errors: ValueError for a loop."""
    driver: dict[int, _Cell] = {}
    for cell in module["cells"].values():
        if cell["type"] in LOGIC:
            driver[cell["connections"]["Y"][0]] = cell
    level: dict[Any, int] = {}
    before: dict[Any, Any] = {}

    def settle(net: Any) -> int:
        stack, open_ = [net], set[Any]()
        while stack:
            top = stack[-1]
            if top in level:
                stack.pop()
                continue
            cell = driver.get(top)
            if cell is None:
                level[top] = 0
                continue
            inputs = [bits[0] for port, bits in cell["connections"].items() if port != "Y"]
            missing = [n for n in inputs if n not in level]
            if missing:
                if top in open_:
                    raise ValueError(f"the logic has a loop through net {top}")
                open_.add(top)
                stack += missing
                continue
            before[top] = max(inputs, key=lambda n: level[n])
            level[top] = level[before[top]] + LOGIC[cell["type"]]
        return level[net]

    ends: list[tuple[Any, str]] = [
        (bit, f"output {port}")
        for port, about in module["ports"].items()
        if about["direction"] == "output"
        for bit in about["bits"]
    ]
    for name, cell in module["cells"].items():
        if cell["type"] not in LOGIC:
            ends += [
                (bit, name) for port, bits in cell["connections"].items() if not _outputs(cell, port) for bit in bits
            ]
    worst, place = 0, ""
    net: Any = None
    for bit, where in ends:
        if isinstance(bit, int) and settle(bit) > worst:
            worst, net, place = level[bit], bit, where
    if net is None:
        return Path(0, "", "")
    first = net
    while first in before:
        first = before[first]
    names = _names(module)
    return Path(worst, names.get(first, str(first)), _end(module, place, net, names))


def _end(module: _Cell, place: str, net: int, names: Mapping[int, str]) -> str:
    """The register by the name of what it holds, anything else by its own."""
    cell = module["cells"].get(place)
    if cell is None:
        return names.get(net, place)
    if cell["type"].startswith("$_DFF"):
        return names.get(cell["connections"]["Q"][0], place)
    return re.sub(r"^\$.*\$", "", place)
