"""What `plexus energy` does: a table of a configuration, or the energy of a run; written beside it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtl.contract.any_config import AnyConfig
from sim.area.subject import config_of
from sim.energy.energy_of import Energy, Index, energy_of, index_of
from sim.energy.figures import FIGURES, Figures, read_figures
from sim.energy.netlists import shelf
from sim.energy.run_energy import Finished, as_values, finished
from sim.energy.table import read_table, table_of
from sim.errors import PlexusError
from sim.progress import progress
from sim.run.variant import is_named
from sim.whole_file import whole_file

__all__ = ["FILE", "RunEnergy", "energy_of_run", "table_of_config"]

FILE = "energy.json"


def _write(values: Mapping[str, Any], folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlexusError(f"nothing can be written in the folder {folder}: {error.strerror}") from None
    with whole_file(folder / FILE) as place:
        place.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return folder / FILE


def _table(cfg: AnyConfig) -> dict[str, Any]:
    with progress(f"energy {cfg.name}") as step:
        return table_of(cfg, step)


def table_of_config(source: str, settings: Sequence[str], out: Path | None) -> tuple[dict[str, Any], Path]:
    """The table of a configuration, and its file. Errors: PlexusError and ConfigError, one sentence."""
    cfg = config_of(source, settings)
    table = _table(cfg)
    name = Path(cfg.name).stem if is_named(cfg) else f"{Path(cfg.name).stem}-{cfg.hash}"
    return table, _write(table, out or shelf() / name)


@dataclass(frozen=True, slots=True)
class RunEnergy:
    """Of one run: its report, its energy, an index if there was a base, all as values, and the file that has them."""

    report: Mapping[str, Any]
    energy: Energy
    index: Index | None
    values: dict[str, Any]
    path: Path

    @property
    def base(self) -> str:
        """The other run, in words."""
        differs = ", ".join(f"{key}={value}".lower() for key, value in self.values["base_differs"].items())
        return f"{self.values['base']}{f' ({differs})' if differs else ''}"


class _Energies:
    """Of runs; a table for each hardware once."""

    def __init__(self, table: Path | None, figures: Figures):
        self.table, self.figures = table, figures
        self.tables: dict[str, Mapping[str, Any]] = {}

    def of(self, run: Finished) -> Energy:
        """Errors: PlexusError."""
        if run.cfg.hash not in self.tables:
            self.tables[run.cfg.hash] = read_table(self.table, run.cfg) if self.table else _table(run.cfg)
        return energy_of(run.report, self.tables[run.cfg.hash], self.figures)


def energy_of_run(
    folder: Path, base: Path | None, table: Path | None, figures: Path | None, out: Path | None
) -> RunEnergy:
    """Errors: PlexusError, one sentence."""
    stated = read_figures(figures or FIGURES)
    energies, run = _Energies(table, stated), finished(folder)
    other = finished(base) if base is not None else None
    if other is not None and run.report["workload"] != other.report["workload"]:
        theirs = other.report["workload"]
        raise PlexusError(f"an index is of one workload: {folder} is a {run.report['workload']}, {base} a {theirs}")
    energy = energies.of(run)
    index = index_of(energy, energies.of(other)) if other is not None else None
    differs = _differs(run.report, other.report) if other is not None else {}
    values = as_values(run.report, energy, index) | {"base": str(base) if base else None, "base_differs": differs}
    values |= {"figures": stated.values}
    return RunEnergy(run.report, energy, index, values, _write(values, out or folder))


def _differs(report: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, the seed and fields of the configuration that are others in the base: what they are there."""
    ours, theirs = (_flat(one["params"] | {"seed": one["seed"]} | _fields(one)) for one in (report, other))
    return {key: theirs.get(key) for key in ours if theirs.get(key) != ours[key]}


def _fields(report: Mapping[str, Any]) -> dict[str, Any]:
    """All of its configuration."""
    return next(report[key] for key in ("config_resolved", "link", "switch") if key in report)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found
