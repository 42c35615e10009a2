"""The table of a sweep: a row a point in its order, or a row a variant and workload over all seeds; as CSV, and as
parquet where pyarrow is installed."""

import csv
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.explore.outcome import exact
from sim.explore.points import Point
from sim.whole_file import whole_file

__all__ = ["Table", "make_table", "write_csv", "write_parquet"]

Table = list[dict[str, Any]]


def make_table(
    points: Sequence[Point],
    rows: Mapping[str, Mapping[str, Any]],
    base: Mapping[str, Any],
    areas: Mapping[str, Mapping[str, Any]] | None = None,
) -> Table:
    """A row a point that has one: what it is, its status, its fields and parameters, its area if that was asked for,
    its exact figures. `base`: values of fields that a point does not change, but another one does."""
    table: Table = []
    changed = list(dict.fromkeys(field for point in points for field in point.changes))
    for point in points:
        row = rows.get(point.key)
        if row is None:
            continue
        cells: dict[str, Any] = {
            "key": point.key,
            "variant": point.variant,
            "workload": point.workload,
            **({"layer": point.layer} if point.layer else {}),
            "seed": point.seed,
            "status": row["status"],
            "sentence": row.get("sentence", ""),
        }
        cells |= {f"set {field}": point.changes.get(field, base.get(field)) for field in changed}
        cells |= {f"param {name}": value for name, value in point.params.items()}
        cells |= (areas or {}).get(point.key, {})
        report = row.get("report", {})
        cells |= {name: value for name, value in report.items() if exact(name) and name not in cells}
        table.append(cells)
    return table


def columns(table: Table) -> list[str]:
    """All columns in the order of their first row."""
    return list(dict.fromkeys(name for row in table for name in row))


def write_csv(table: Table, path: Path) -> None:
    """Whole or not at all; an empty cell where a row has no such column. Errors: PlexusError."""
    with whole_file(path) as place, place.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, columns(table), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def write_parquet(table: Table, path: Path) -> bool:
    """The same for programs of your own, if pyarrow is installed; whether it is."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        return False
    names = columns(table)
    data: dict[str, list[Any]] = {}
    for name in names:
        cells = [row.get(name) for row in table]
        kinds = {type(cell) for cell in cells if cell is not None}
        data[name] = (
            cells if len(kinds) < 2 or kinds <= {int, float} else [None if c is None else str(c) for c in cells]
        )
    with whole_file(path) as place:
        parquet.write_table(arrow.table(data), place)
    return True
