"""The ten cells of cells.lib: their areas, and the same gates as ABC reads them with their delays."""

import re
from functools import cache
from pathlib import Path

__all__ = ["AREA_GE", "LIBERTY", "LOGIC", "genlib"]

LIBERTY = Path(__file__).resolve().parent / "cells.lib"
_CELL = re.compile(r"cell\((\w+)\)\s*\{ area : ([\d.]+);(.*?)(?=\n  cell\(|\n\}\n)", re.S)
_FUNCTION = re.compile(r'pin\(Y\) \{ direction : output; function : "([^"]+)"')


def _cells() -> dict[str, tuple[float, str]]:
    found = {name: (float(area), body) for name, area, body in _CELL.findall(LIBERTY.read_text())}
    return {name: (area, match[1] if (match := _FUNCTION.search(body)) else "") for name, (area, body) in found.items()}


AREA_GE = {name: area for name, (area, _) in _cells().items()}
"""Gate equivalents of each cell: NAND2 is 1."""

LOGIC = {name: int(name != "INV") for name, (_, function) in _cells().items() if function}
"""Levels of each cell of logic: an inverter is free, every other one counts 1."""


@cache
def genlib() -> str:
    """The cells of logic for ABC, with their levels as delays: a delay of 0 is more than a liberty can say to it."""
    lines = ["GATE _const0_ 0 z=CONST0;", "GATE _const1_ 0 z=CONST1;"]
    for name, (area, function) in _cells().items():
        if function:
            delay = LOGIC[name]
            text = function.replace("&", "*").replace("|", "+")
            lines.append(f"GATE {name} {area:g} Y={text}; PIN * UNKNOWN 1 999 {delay} 0 {delay} 0")
    return "\n".join(lines) + "\n"
