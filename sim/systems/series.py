"""What a link or a switch did in time: counts at some two hundred cycles of the measurement, in series.npz."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sim.column_file import load_columns, save_columns

__all__ = ["FILE", "FORMAT", "SAMPLES", "Series", "load_series", "save_series", "stops"]

FILE = "series.npz"
"""Beside report.json."""

FORMAT = 1
SAMPLES = 200
"""Times into which a measurement is cut, fewer if it is shorter than so many flit times."""


@dataclass(kw_only=True)
class Series:
    """Every field is a column of series.npz; docs/trace.md says what each holds. Counts grow from sample to sample, and
    begin with what they were when the measurement began."""

    flit_cycles: int
    cycle: list[int] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)
    payload_flits: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    by_class: list[Sequence[int]] = field(default_factory=list)
    waiting: list[Sequence[int]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    replays: list[int] = field(default_factory=list)
    downs: list[int] = field(default_factory=list)
    event_cycle: list[int] = field(default_factory=list)
    event_kind: list[str] = field(default_factory=list)
    event_port: list[int] = field(default_factory=list)
    latency: list[Sequence[int]] = field(default_factory=list)


def stops(cycles: int, flit_cycles: int) -> list[int]:
    """Cycles of a measurement at which a sample is taken, the last one its end."""
    count = max(1, min(SAMPLES, cycles // flit_cycles))
    return [cycles * (n + 1) // count for n in range(count)]


def save_series(series: Series, folder: Path) -> Path:
    """`folder`/series.npz, whole or not at all. Errors: PlexusError if it cannot be written."""
    save_columns(folder / FILE, {"format": FORMAT, **{f.name: getattr(series, f.name) for f in fields(Series)}})
    return folder / FILE


def load_series(folder: Path) -> Series:
    """The series beside a report. Errors: PlexusError if there is none, or it is torn or of another format."""
    names = [f.name for f in fields(Series)]
    columns = load_columns(folder / FILE, FORMAT, names, "the run was made by an older version; run it again")
    values: dict[str, Any] = {name: column.tolist() for name, column in columns.items()}
    return Series(**values)
