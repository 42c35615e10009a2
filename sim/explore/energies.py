"""Columns of energy for the points of a sweep: an index against its base, on the same workload, parameters and seed."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rtl.contract.config_fields import built_values
from sim.energy.energy_of import Energy, energy_of, index_of
from sim.energy.figures import Figures, read_figures
from sim.energy.table import table_of
from sim.errors import PlexusError
from sim.explore.more_columns import ENERGY_COLUMNS, is_base
from sim.explore.plan import task_of
from sim.explore.points import Point
from sim.explore.sweep import Sweep
from sim.explore.worker import asked_of
from sim.progress import progress
from sim.systems.registry import system_of_workload

__all__ = ["energies_of"]


class _Energies:
    """Of reports in the folders of runs; a table of events for each hardware, once."""

    def __init__(self, folder: Path, figures: Figures):
        self.folder, self.figures = folder, figures
        self.tables: dict[str, Mapping[str, Any] | None] = {}

    def of(self, point: Point) -> Energy | None:
        """None if it has none; why is told."""
        try:
            report = json.loads((self.folder / "runs" / point.key / "report.json").read_text())
            table = self._table(point)
            return None if table is None else energy_of(report, table, self.figures)
        except (OSError, ValueError) as error:
            print(f"plexus: {point.variant} has no energy: its report cannot be read: {error}", file=sys.stderr)
        except PlexusError as error:
            print(f"plexus: {point.variant} has no energy: {error}", file=sys.stderr)
        return None

    def _table(self, point: Point) -> Mapping[str, Any] | None:
        cfg: Any = system_of_workload(point.workload).resolve(asked_of(task_of(point, self.folder, None))).cfg
        key = json.dumps(built_values(cfg), sort_keys=True)
        if key not in self.tables:
            self.tables[key] = None  # what fails once is told once
            with progress(f"energy of {point.variant}") as step:
                self.tables[key] = table_of(cfg, step)
        return self.tables[key]


def _work(point: Point) -> str:
    return json.dumps([point.workload, dict(point.params), point.seed], sort_keys=True)


def energies_of(
    sweep: Sweep, points: Sequence[Point], rows: Mapping[str, Mapping[str, Any]], folder: Path
) -> dict[str, dict[str, Any]]:
    """The columns by the key of a point. A run that did not come to its end has none, nor one whose base has none."""
    energies = _Energies(folder, read_figures())
    found: dict[str, Energy] = {}
    bases: dict[str, Energy] = {}
    for point in points:
        if rows.get(point.key, {}).get("status") != "ok" or point.key in found:
            continue
        energy = energies.of(point)
        if energy is not None:
            found[point.key] = energy
            if is_base(point.changes, sweep.base_values):
                bases.setdefault(_work(point), energy)
    columns: dict[str, dict[str, Any]] = {}
    for point in points:
        base = bases.get(_work(point))
        if point.key in found and base is not None:
            index = index_of(found[point.key], base)
            columns[point.key] = {name: round(getattr(index, of), 6) for name, of in ENERGY_COLUMNS.items()}
    return columns
