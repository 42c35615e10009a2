"""Figures of performance, each beside what it must reach, and the runs that they are taken from."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from firmware.workloads import find_workload
from rtl.contract.config import named
from sim.report.verdict import passed
from sim.systems.core.run import Run, run_workload
from sim.toolchain import build_root

__all__ = ["HOST_UNITS", "Bench", "Row", "merged", "read_rows", "table", "write_rows"]

HOST_UNITS = ("s", "GiB", "MB")
"""Units of figures that another machine changes; those of speed end with /s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `target` is what it must reach, as in ">= 0.92"; `peer` what it is compared with. `group`: that of
    sim.bench which measured it."""

    name: str
    what: str
    value: float
    unit: str
    target: str
    peer: str = ""
    match: bool = True
    group: str = ""

    @property
    def of_host(self) -> bool:
        """Whether the figure depends on the machine it is measured on: its time or its memory."""
        return self.unit in HOST_UNITS or self.unit.endswith("/s")

    @property
    def ok(self) -> bool:
        """Whether the target is reached; a figure without one always is."""
        way, _, limit = self.target.partition(" ")
        if not limit:
            return True
        bound = float(limit.replace(",", ""))
        return self.value >= bound if way == ">=" else self.value <= bound

    @property
    def number(self) -> str:
        """The figure with its unit, in as many digits as are of interest."""
        digits = 0 if self.value >= 1000 else 1 if self.value >= 10 else 3
        return f"{self.value:,.{digits}f} {self.unit.strip()}".strip()

    @property
    def verdict(self) -> str:
        """Whether it is what it must be."""
        return "bits differ" if not self.match else "-" if not self.target else "yes" if self.ok else "no"


def read_rows(path: Path) -> list[Row]:
    """The rows of a bench.json; none if it cannot be read."""
    try:
        return [Row(**{k: v for k, v in row.items() if k != "ok"}) for row in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        return []


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Save as JSON."""
    path.write_text(json.dumps([asdict(row) | {"ok": row.ok} for row in rows], indent=1) + "\n")


def merged(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Rows that were not measured again, and those that were."""
    fresh = {row.name for row in new}
    return [row for row in old if row.name not in fresh] + list(new)


def table(rows: Sequence[Row]) -> str:
    """In Markdown."""
    lines = ["| what | measured | target | reached | beside |", "|---|---|---|---|---|"]
    lines += [f"| {r.what} | {r.number} | {r.target or '-'} | {r.verdict} | {r.peer} |" for r in rows]
    return "\n".join(lines) + "\n"


class Bench:
    """Runs and figures. Runs are shared: what has been run once is not run again."""

    def __init__(self, console: Console):
        self.console = console
        self.rows: list[Row] = []
        self._runs: dict[tuple[Any, ...], dict[str, Any]] = {}

    def say(self, what: str) -> None:
        """A line about what is being done."""
        self.console.print(what, style="bright_black", highlight=False)

    def run(self, workload: str, params: dict[str, Any], array: str = "native", config: str = "full") -> dict[str, Any]:
        """The report of a run."""
        key = (workload, array, config, *sorted(params.items()))
        if key not in self._runs:
            self.say(" ".join(["running", workload, config, array, *(f"{k}={v}" for k, v in params.items())]))
            settled = find_workload(workload).complete(params)
            folder = build_root() / "bench" / "-".join(str(k) for k in key).replace(" ", "")
            asked = Run(workload=workload, params=settled, cfg=named(config), array=array, out=folder)
            self._runs[key] = run_workload(asked, self.console)
        return self._runs[key]

    def add(self, report: dict[str, Any] | None = None, *, match: bool = True, **fields: Any) -> None:
        """A figure, and whether the run that it comes from matched."""
        self.rows.append(Row(match=match and (report is None or passed(report)), **fields))
