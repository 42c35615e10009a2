"""The ledger of cycles, verif/plan/cycles.toml: python -m verif.checks.cycles [SECTION...] [--only TEXT] [--write]

Runs every row of it with `plexus run` and compares; all sections if none is named. A run that does not say match fails
too. --write puts what was measured into the ledger, so that a change of a figure is a line of the review.
"""

import argparse
import contextlib
import io
import json
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.cli import main as plexus
from sim.systems.registry import system_of_workload
from sim.toolchain import ROOT

__all__ = ["FABRIC", "LEDGER", "Entry", "changes", "entries", "exceptions", "main", "measure", "renewed"]

LEDGER = ROOT / "verif" / "plan" / "cycles.toml"
FABRIC = "fabric"
"""The section of systems without configurations (System.ledger_sections); others are called as the configuration."""
_EXCEPTIONS = "cannot"
"""Workloads that a configuration cannot hold, and why."""
_ROW = re.compile(r'^"(?P<run>[^"]+)" = \{.*\}$')


class LedgerError(Exception):
    """A run that has no figures: it was refused, or bits differ. The text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row: `run` is a workload and its parameters, as in "gemm m=64 k=96"."""

    section: str
    run: str
    figures: Mapping[str, int]

    @property
    def workload(self) -> str:
        """Its name."""
        return shlex.split(self.run)[0]

    @property
    def params(self) -> list[str]:
        """Its parameters, each name=value."""
        return shlex.split(self.run)[1:]

    @property
    def words(self) -> list[str]:
        """What stands behind `plexus` to run it."""
        config = [] if self.section == FABRIC else ["--config", self.section]
        return ["run", self.workload, *config, *(word for param in self.params for word in ("-p", param))]

    def __str__(self) -> str:
        return f"{self.section}: {self.run}"


def entries(path: Path = LEDGER) -> list[Entry]:
    """All rows, in the order of the file."""
    book = tomllib.loads(path.read_text())
    return [
        Entry(section=section, run=run, figures=figures)
        for section, rows in book.items()
        if section != _EXCEPTIONS
        for run, figures in rows.items()
    ]


def exceptions(path: Path = LEDGER) -> dict[str, dict[str, str]]:
    """By configuration: workloads that it cannot hold, and why."""
    return tomllib.loads(path.read_text()).get(_EXCEPTIONS, {})


def _figures(report: Mapping[str, Any]) -> dict[str, int]:
    """What the ledger keeps of a report. What did not take place (an engine that had nothing to do) is left out."""
    figures = system_of_workload(report["workload"]).exact_figures(report)
    return {name: value for name, value in figures.items() if value}


def measure(entry: Entry, folder: Path) -> dict[str, int]:
    """Run it, with the report in `folder`. Errors: LedgerError if there is no match."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = plexus([*entry.words, "--out", str(folder)])
    if code:
        first = next((line for line in said.getvalue().splitlines() if line.strip()), "nothing said")
        raise LedgerError(f"{entry}: exit code {code}: {first}")
    report = json.loads((folder / "report.json").read_text())
    if report["match"] is not True:
        raise LedgerError(f"{entry}: bits differ")
    return _figures(report)


@dataclass(frozen=True, slots=True)
class Change:
    """A figure that is not the ledger's; None: it is not there."""

    entry: Entry
    name: str
    was: int | None
    now: int | None

    def __str__(self) -> str:
        was, now = (f"{n:,}" if n is not None else "none" for n in (self.was, self.now))
        ratio = f"{self.now / self.was:.4f} x" if self.was and self.now else "-"
        return f"{self.entry.section:8} {self.entry.run:52} {self.name:14} {was:>10} -> {now:>10}  {ratio}"


def changes(entry: Entry, now: Mapping[str, int]) -> list[Change]:
    """Where a run's figures are not the ledger's."""
    names = dict.fromkeys([*entry.figures, *now])
    pairs = [(name, entry.figures.get(name), now.get(name)) for name in names]
    return [Change(entry, name, was, is_) for name, was, is_ in pairs if was != is_]


def renewed(text: str, measured: Mapping[tuple[str, str], Mapping[str, int]]) -> str:
    """The ledger's text with new figures of the runs (section, run) that were measured; all else stays as it is."""
    lines, section = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        row = _ROW.match(line)
        if row and (figures := measured.get((section, row["run"]))):
            line = f'"{row["run"]}" = {{ {", ".join(f"{name} = {n}" for name, n in figures.items())} }}'
        lines.append(line)
    return "\n".join(lines) + "\n"


def _measured(asked: Iterable[Entry]) -> Iterator[tuple[Entry, Mapping[str, int] | LedgerError]]:
    for entry in asked:
        with tempfile.TemporaryDirectory(prefix="plexus-cycles-") as folder:
            try:
                yield entry, measure(entry, Path(folder))
            except LedgerError as error:
                yield entry, error


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. 1 if a figure is not the ledger's and was not asked to be renewed, or a run has none."""
    parser = argparse.ArgumentParser(prog="python -m verif.checks.cycles")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="as in tiny, small or fabric; all if none")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows that contain this text")
    parser.add_argument("--write", action="store_true", help="put what was measured into the ledger")
    parser.add_argument("--ledger", type=Path, default=LEDGER, metavar="FILE")
    given = parser.parse_args(arguments)
    book = entries(given.ledger)
    known = list(dict.fromkeys(e.section for e in book))
    for section in given.sections:
        if section not in known:
            parser.error(f"the ledger has no section {section!r}; it has {', '.join(known)}")
    asked = [e for e in book if e.section in (given.sections or known) and given.only in e.run]
    if not asked:
        parser.error(f"no row of these sections contains {given.only!r}")
    found: list[Change] = []
    measured: dict[tuple[str, str], Mapping[str, int]] = {}
    broken = 0
    for entry, now in _measured(asked):
        if isinstance(now, LedgerError):
            print(f"WRONG  {now}", flush=True)
            broken += 1
            continue
        measured[entry.section, entry.run] = now
        for change in changes(entry, now):
            print(change, flush=True)
            found.append(change)
    print(f"{len(asked)} runs, {broken} without figures, {len(found)} figures changed")
    if given.write:
        given.ledger.write_text(renewed(given.ledger.read_text(), measured))
    elif found:
        print("a change that is meant: python -m verif.checks.cycles --write", file=sys.stderr)
    return 1 if broken or (found and not given.write) else 0


if __name__ == "__main__":
    sys.exit(main())
