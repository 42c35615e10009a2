"""What a link or a switch did in time: counts at some two hundred cycles of the measurement, in series.npz."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from sim.errors import PlexusError
from sim.whole_file import whole_file

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
    path = folder / FILE
    columns: dict[str, Any] = {f.name: np.asarray(getattr(series, f.name)) for f in fields(Series)}
    with whole_file(path) as place:
        folder.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as out:
            np.savez_compressed(out, format=FORMAT, **columns)
    return path


def load_series(folder: Path) -> Series:
    """The series beside a report. Errors: PlexusError if there is none, or it is torn or of another format."""
    path = folder / FILE
    if not path.exists():
        raise PlexusError(f"{folder} has no {FILE}: the run was made by an older version; run it again")
    try:
        with np.load(path, allow_pickle=False) as columns:
            if int(columns["format"]) != FORMAT:
                raise PlexusError(f"{path} has format {int(columns['format'])}, not {FORMAT}: run it again")
            values: dict[str, Any] = {f.name: columns[f.name].tolist() for f in fields(Series)}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise PlexusError(f"{path} is torn: {error or type(error).__name__}") from None
    return Series(**values)
