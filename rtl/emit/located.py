"""Where the names of emitted Verilog come from: Amaranth's `src` attributes, read and taken out again.

What is left is the text of the product to the letter; a reader of a coverage report wants to know the line of Python.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Place", "Places", "take_places"]

_ROOT = Path(__file__).resolve().parents[2]
_OURS = ("rtl", "verif")
_LINE = re.compile(r'^ *\(\* src = "([^"]*)" \*\)$')
_INSIDE = re.compile(r'\(\* src = "([^"]*)" \*\) ')
_MODULE = re.compile(r"^module (\S+?) ?\(")
_DECLARED = re.compile(r"^  (?:input|output|inout|wire|reg) (?:signed )?(?:\[[^\]]*\] )?(\S+?) ?(?:=.*)?;$")
_ASSIGNED = re.compile(r"^  assign (\S+) ")


@dataclass(frozen=True, slots=True)
class Place:
    """Of a module: `at`, as in rtl/base/fifo.py:52, where its description begins, empty if not in this repository.
    `names`: the same of signals in it, and of nets that an expression made."""

    at: str
    names: dict[str, str] = field(default_factory=dict)


Places = dict[str, Place]
"""By the name of a module, as it is written in the text."""


def _relative(source: str) -> str:
    """file:line from the repository's root on, empty for a file of a library."""
    file, _, line = source.partition("|")[0].rpartition(":")
    path = Path(file)
    if not path.is_relative_to(_ROOT):
        return ""
    inner = path.relative_to(_ROOT)
    return f"{inner.as_posix()}:{line.partition('.')[0]}" if inner.parts[0] in _OURS else ""


def take_places(text: str) -> tuple[str, Places]:
    """Verilog with `src` attributes as Yosys writes it: the same without them, and what they said."""
    lines: list[str] = []
    places: Places = {}
    above = ""
    module = Place("")
    for line in text.split("\n"):
        if alone := _LINE.match(line):
            above = _relative(alone[1])
            continue
        inside = _INSIDE.findall(line)
        if found := _MODULE.match(line):
            module = places.setdefault(found[1], Place(above))
        elif (declared := _DECLARED.match(line)) and above:
            module.names[declared[1]] = above
        elif inside and (assigned := _ASSIGNED.match(line)) and (place := _relative(inside[-1])):
            module.names.setdefault(assigned[1], place)
        lines.append(_INSIDE.sub("", line) if inside else line)
        above = ""
    return "\n".join(lines), places
