"""verif/plan/mutants.toml: survivors that are waived, each with its reason; mutation_scores.toml: scores reached.

A score is killed / (mutants - equivalent - waived). What was reached is the floor: below it `make mutants` fails.
People write the first file, `make mutants WRITE=1` the second, and docs/mutants.md from both.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sim.errors import PlexusError
from sim.toolchain import ROOT
from verif.mutants.measure import Measured, Tried

__all__ = ["PAGE", "SCORES", "Score", "page", "read_scores", "score_of", "survivors", "waivers", "write_scores"]

WAIVED = ROOT / "verif" / "plan" / "mutants.toml"
SCORES = ROOT / "verif" / "plan" / "mutation_scores.toml"
PAGE = ROOT / "docs" / "mutants.md"

_SCORES_HEAD = """\
# Mutants of each unit (40, seed 1) and what became of them, written by `make mutants WRITE=1`. A score is a floor: who
# falls below it fails `make mutants`, and a review sees it here. Units are those of verif/mutants/units.py.
"""
_PAGE_HEAD = """\
# Mutants: what the benches notice of faults that nobody chose

Written by `make mutants WRITE=1`; [verification.md](verification.md) says how they are made. Score: killed / (mutants -
equivalent - waived). Equivalent: proved to change nothing. Waived: survives for a reason in `verif/plan/mutants.toml`.

| unit | mutants | killed | equivalent | waived | survived | score % |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Score:
    """A row of the table."""

    mutants: int
    killed: int
    equivalent: int
    waived: int
    survived: int

    @property
    def percent(self) -> float:
        """Killed of those that can be, rounded down to a tenth; 100 if none can be."""
        able = self.mutants - self.equivalent - self.waived
        return (1000 * self.killed // able) / 10 if able else 100.0

    def as_toml(self) -> str:
        """An inline table."""
        return (
            f"{{ mutants = {self.mutants}, killed = {self.killed}, equivalent = {self.equivalent}, "
            f"waived = {self.waived}, survived = {self.survived} }}"
        )


@cache
def waivers(path: Path = WAIVED) -> dict[tuple[str, str], str]:
    """Reasons by unit and mutant. Errors: PlexusError for a row without one."""
    found: dict[tuple[str, str], str] = {}
    for row in tomllib.loads(path.read_text()).get("waived", []):
        if set(row) != {"unit", "mutant", "reason"} or not all(row.values()):
            raise PlexusError(f"a waiver has a unit, a mutant and a reason, not {row!r}")
        found[row["unit"], row["mutant"]] = row["reason"]
    return found


def survivors(measured: Measured, waived: Mapping[tuple[str, str], str]) -> list[Tried]:
    """Those that survived and are not waived."""
    return [t for t in measured.tried if t.fate == "survived" and (measured.unit, str(t.mutant)) not in waived]


def score_of(measured: Measured, waived: Mapping[tuple[str, str], str]) -> Score:
    """The row of a unit."""
    left = len(survivors(measured, waived))
    return Score(
        mutants=len(measured.tried),
        killed=measured.count("failed", "hung", "crashed"),
        equivalent=measured.count("equivalent"),
        waived=measured.count("survived") - left,
        survived=left,
    )


def read_scores(path: Path = SCORES) -> dict[str, Score]:
    """What was reached, by unit."""
    return {unit: Score(**row) for unit, row in tomllib.loads(path.read_text()).items()}


def write_scores(scores: Mapping[str, Score], order: Iterable[str]) -> None:
    """The file of scores, in this order."""
    rows = [f"{unit} = {scores[unit].as_toml()}\n" for unit in order if unit in scores]
    SCORES.write_text(_SCORES_HEAD + "\n" + "".join(rows))


def page(scores: Mapping[str, Score], order: Sequence[str], unmeasured: Mapping[str, str]) -> str:
    """The text of docs/mutants.md: units in `order`, then those without a score."""
    named = [(f"`{unit}`", scores[unit]) for unit in order if unit in scores]
    total = Score(*(sum(getattr(score, name) for _, score in named) for name in Score.__slots__))
    rows = [
        f"| {name} | {s.mutants} | {s.killed} | {s.equivalent} | {s.waived} | {s.survived} | {s.percent:.1f} |\n"
        for name, s in [*named, ("all", total)]
    ]
    without = dict.fromkeys((unit for unit in order if unit not in scores), "no score is recorded yet")
    lines = [f"* `{unit}`: {reason}\n" for unit, reason in {**without, **unmeasured}.items()]
    return _PAGE_HEAD + "".join(rows) + "\nNot measured:\n\n" + "".join(lines)
