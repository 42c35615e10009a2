"""Points of many models to points of units: the same branch or bit of a unit is one point wherever it is placed.

A unit is a file of Python whose components were elaborated, or a cell written by hand. A point is hit if any instance
in any model of any run hit it. What is not counted is left out by a rule with a name, and counted there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sim.build.coverage import PLACES
from sim.toolchain import ROOT
from verif.checks.code_coverage.constants import constant_bits
from verif.checks.code_coverage.data import Point, add_up
from verif.checks.code_coverage.text import Branch, Module, Net, base_name, modules_of

__all__ = ["RULES", "Bit", "Unit", "add_model", "percent_floor"]

RULES = {
    "expression": "a net or port that an expression made, whose name nobody wrote",
    "clock": "clock and reset, which every bench moves",
    "below": "a signal that a module below has as a port of the same name, where it counts",
    "constant": "a bit that is given one constant only, through assignments, multiplexers and ports",
    "wide": "a signal of more than 256 bits, which Verilator does not count: payload of memories and flits",
    "memory": "an array of words; its ports count",
    "runs": "the head of a process, an initial value: they always run",
}
"""What is left out, and why that is no hole."""

_WIDE_BITS = 256
_FRAMES = "rtl/base/placed.py"
_CLOCK = re.compile(r"(.+_)?(clk|rst)")
_TOGGLE = re.compile(r"(.*?)((?:\[\d+\])*):([01])->[01]")


@dataclass(frozen=True, slots=True)
class Bit:
    """One direction of a bit. `place`: of the signal's declaration, else of the module."""

    at: str
    name: str
    place: str
    nth: int
    bit: int
    rises: bool


Way = tuple[str, Branch, str]
"""Of a branch: the module's place, the branch, and which way it goes (if, else, case, ...)."""


def percent_floor(hit: int, of: int) -> float:
    """In tenths, never more than it is: 100.0 only where all are hit, and where there is nothing to hit."""
    return hit * 1000 // of / 10 if of else 100.0


@dataclass(slots=True)
class Unit:
    """Hits of a unit's points. `left_out`: bits and branches by rule."""

    lines: Counter[Way] = field(default_factory=Counter)
    toggles: Counter[Bit] = field(default_factory=Counter)
    left_out: dict[str, set[object]] = field(default_factory=dict)

    def leave_out(self, rule: str, what: object) -> None:
        """By a rule of RULES."""
        self.left_out.setdefault(rule, set()).add(what)


class _Model:
    """The text of one model."""

    def __init__(self, folder: Path):
        places = json.loads((folder / PLACES).read_text())
        self.modules = list(modules_of((folder / "top.v").read_text(), places))

    @cached_property
    def by_line(self) -> dict[int, Module]:
        """The module that a line is in."""
        return {number: module for module in self.modules for number in module.text}

    @cached_property
    def constants(self) -> set[tuple[str, str, int]]:
        """Bits that are constant by wiring: module, name, number."""
        return constant_bits(self.modules)

    def rule_of(self, module: Module, net: Net, below: set[str]) -> str:
        """The rule that leaves out all of a signal, or nothing."""
        name = base_name(net.name)
        if not net.written:
            return "expression"
        if _CLOCK.fullmatch(name):
            return "clock"
        if net.array:
            return "memory"
        if net.width > _WIDE_BITS:
            return "wide"
        return "below" if net.name.strip() in below else ""

    def left_out(self) -> Iterator[tuple[Module, Net, int, str]]:
        """Bits left out, each with its rule."""
        for module in self.modules:
            below = {e.strip() for _, c in module.below for p, e in c.items() if base_name(p) == base_name(e.strip())}
            for net in module.nets.values():
                rule = self.rule_of(module, net, below)
                for bit in range(net.width):
                    if rule or (module.name, net.name, bit) in self.constants:
                        yield module, net, bit, rule or "constant"


def _file(at: str) -> str:
    return at.partition(":")[0]


def _is_unit(at: str) -> bool:
    """Tops of benches are none, nor frames around what is placed, which only pass ports on."""
    return at.startswith("rtl/") and _file(at) != _FRAMES


def add_model(units: dict[str, Unit], folder: Path, runs: Iterable[Path]) -> None:
    """Add what the `runs` (packed data of Verilator's) of the model in `folder` have hit."""
    model = _Model(folder)
    out: dict[tuple[str, str, int], str] = {}
    for module, net, bit, rule in model.left_out():
        out[module.name, net.name, bit] = rule
        if _is_unit(module.at):
            unit = units.setdefault(_file(module.at), Unit())
            unit.leave_out(rule, (module.at, base_name(net.name), net.place, net.nth, bit))
    for point, hits in add_up(runs).items():
        if point.file == "top.v":
            _add_of_text(units, model, out, point, hits)
        else:
            _add_of_cell(units, point, hits)


def _add_of_text(
    units: dict[str, Unit], model: _Model, out: dict[tuple[str, str, int], str], point: Point, hits: int
) -> None:
    module = model.by_line[point.line]
    if not _is_unit(module.at):
        return
    unit = units.setdefault(_file(module.at), Unit())
    if not point.toggle:
        other = Branch("", "", (module.text[point.line].strip(),), 0)
        branch = module.branches.get(point.line, other)
        if point.what == "block":
            unit.leave_out("runs", (module.at, branch))
        else:
            unit.lines[module.at, branch, point.what] += hits
        return
    net = module.nets.get(point.line)
    parts = _TOGGLE.fullmatch(point.what)
    if net is None or parts is None:
        raise AssertionError(f"line {point.line} of {module.name} has the toggle {point.what!r} and no signal")
    bit = int(parts[2].strip("[]") or 0) if parts[2].count("[") < 2 else -1
    if bit >= 0 and (module.name, net.name, bit) not in out:
        place = net.place or module.at
        unit.toggles[Bit(module.at, base_name(net.name), place, net.nth, bit, parts[3] == "0")] += hits


def _add_of_cell(units: dict[str, Unit], point: Point, hits: int) -> None:
    path = Path(point.file)
    if not path.is_relative_to(ROOT / "rtl"):
        return
    name = path.relative_to(ROOT).as_posix()
    unit = units.setdefault(name, Unit())
    at = f"{name}:{point.line}"
    if not point.toggle:
        if point.what == "block":
            unit.leave_out("runs", at)
        else:
            unit.lines[at, Branch("", at, (), point.column), point.what] += hits
        return
    parts = _TOGGLE.fullmatch(point.what)
    assert parts is not None, point
    if _CLOCK.fullmatch(parts[1]):
        unit.leave_out("clock", at)
    elif parts[2].count("[") > 1:
        unit.leave_out("memory", (at, parts[2]))
    else:
        unit.toggles[Bit(at, parts[1], at, 0, int(parts[2].strip("[]") or 0), parts[3] == "0")] += hits
