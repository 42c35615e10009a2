"""What no run has hit, in words, and whether verif/plan/coverage.toml gives a reason for it."""

import ast
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sim.errors import PlexusError
from sim.toolchain import ROOT
from verif.checks.code_coverage.units import Unit, percent_floor

__all__ = ["LIMIT_PERCENT", "Row", "judge", "reasons_of", "rows_of", "unmet"]

LIMIT_PERCENT = 90
MEASURES = ("line", "toggle")


@dataclass(frozen=True, slots=True)
class Row:
    """A unit of the table. `hit`, `of`: points by measure; `holes`: (place, words) of what was never hit."""

    unit: str
    hit: dict[str, int]
    of: dict[str, int]
    holes: list[tuple[str, str]]
    left_out: dict[str, int]

    def percent(self, measure: str) -> float:
        """In tenths, rounded down."""
        return percent_floor(self.hit[measure], self.of[measure])

    def low(self, measure: str) -> bool:
        """Below the limit."""
        return self.hit[measure] * 100 < LIMIT_PERCENT * self.of[measure]

    @property
    def worst(self) -> float:
        """The lower percentage."""
        return min(self.percent(m) for m in MEASURES)


def _ranges(bits: Iterable[int]) -> str:
    """0-3 7."""
    known = set(bits)
    starts = sorted(n for n in known if n - 1 not in known)
    ends = sorted(n for n in known if n + 1 not in known)
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _holes(unit: Unit) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for (at, branch, what), hits in unit.lines.items():
        if not hits:
            path = " > ".join(part for part in branch.path if not part.startswith("always"))
            words = f"{branch.of or 'expression'}: {path + ', ' if path else ''}{what}"
            found.append((branch.place or at, f"{words} (no. {branch.nth + 1})" if branch.nth else words))
    still: dict[tuple[str, str, int], dict[bool, set[int]]] = {}
    for bit, hits in unit.toggles.items():
        if not hits:
            still.setdefault((bit.place, bit.name, bit.nth), {}).setdefault(bit.rises, set()).add(bit.bit)
    for (place, name, nth), ways in still.items():
        both = ways.get(True, set()) & ways.get(False, set())
        words = [f"bits {_ranges(both)} never move"] if both else []
        words += [
            f"bits {_ranges(ways[rises] - both)} never {way}"
            for rises, way in ((True, "rise"), (False, "fall"))
            if ways.get(rises, set()) - both
        ]
        found.append((place, f"{name}{f' (no. {nth + 1})' if nth else ''}: {', '.join(words)}"))
    return sorted(found)


def rows_of(units: Mapping[str, Unit]) -> list[Row]:
    """The worst first."""
    rows = [
        Row(
            name,
            {"line": sum(map(bool, u.lines.values())), "toggle": sum(map(bool, u.toggles.values()))},
            {"line": len(u.lines), "toggle": len(u.toggles)},
            _holes(u),
            {rule: len(what) for rule, what in sorted(u.left_out.items())},
        )
        for name, u in units.items()
    ]
    return sorted(rows, key=lambda row: (row.worst, row.unit))


def unmet(units: Mapping[str, Unit], root: Path = ROOT) -> list[str]:
    """Files of rtl/ with a component, none of which was in a model."""
    files = [p for p in sorted((root / "rtl").rglob("*.py")) if p.relative_to(root).as_posix() not in units]
    return [p.relative_to(root).as_posix() for p in files if "elaborate" in _methods(p)]


def _methods(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def reasons_of(path: Path) -> dict[str, dict[str, str]]:
    """By unit and measure (line, toggle, or unmet). Errors: PlexusError for anything else in the file."""
    reasons = tomllib.loads(path.read_text()).get("unit", {})
    for unit, given in reasons.items():
        for measure, reason in given.items():
            if measure not in (*MEASURES, "unmet"):
                raise PlexusError(f"{path.name}: {unit} has {measure!r}; a reason is for line, toggle or unmet")
            if not isinstance(reason, str) or len(reason.split()) < 4:
                raise PlexusError(f"{path.name}: the reason for {measure} of {unit} is a sentence, not {reason!r}")
    return reasons


def judge(
    rows: Iterable[Row], absent: Iterable[str], reasons: Mapping[str, Mapping[str, str]], *, part: bool = False
) -> list[str]:
    """A sentence for each hole without a reason and each reason without a hole. `part`: only some benches ran, so
    that nothing is said of units that were not met."""
    wrong: list[str] = []
    met = {row.unit: row for row in rows}
    for name, row in met.items():
        for measure in MEASURES:
            given = measure in reasons.get(name, {})
            shown = f"{row.percent(measure)} % ({row.hit[measure]} of {row.of[measure]})"
            if row.low(measure) and not given:
                wrong.append(f"{name}: {measure} coverage is {shown}, and no reason is given")
            if given and not row.low(measure):
                wrong.append(f"{name}: {measure} coverage is {shown}, so the reason given is out of date")
        if "unmet" in reasons.get(name, {}):
            wrong.append(f"{name} is in a model now, so the reason why not is out of date")
    if part:
        return wrong
    absent = set(absent)
    wrong += [f"{n}: no bench has it in its model" for n in sorted(absent) if "unmet" not in reasons.get(n, {})]
    gone = [name for name in reasons if name not in met and name not in absent]
    return wrong + [f"{name}: reasons are given for a unit that is not there" for name in gone]
