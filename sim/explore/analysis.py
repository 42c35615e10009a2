"""What a table of a sweep says: which points nothing beats, and which field moves an objective how much."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sim.explore.sweep import Objective

__all__ = ["over_seeds", "pareto", "sensitivity", "varied"]

_Row = Mapping[str, Any]


def varied(table: Sequence[_Row]) -> list[str]:
    """Columns of fields and parameters that have more than one value."""
    names = list(dict.fromkeys(n for row in table for n in row if n.startswith(("set ", "param "))))
    return [name for name in names if len({str(row.get(name)) for row in table}) > 1]


def over_seeds(table: Sequence[_Row], column: str) -> list[dict[str, Any]]:
    """A row a variant, workload and parameters: `equal` over all seeds, or least, median and most of the column."""
    groups: dict[str, list[_Row]] = {}
    for row in table:
        if row["status"] == "ok" and isinstance(row.get(column), (int, float)):
            what = [row["variant"], row["workload"], *(f"{n}={row[n]}" for n in row if n.startswith("param "))]
            groups.setdefault(" ".join(what), []).append(row)
    found: list[dict[str, Any]] = []
    for what, rows in groups.items():
        values = [row[column] for row in rows]
        seeds = {"seeds": len(rows), "min": min(values), "median": statistics.median(values), "max": max(values)}
        found.append({"what": what, "equal": len(set(values)) == 1, **seeds})
    return found


def pareto(table: Sequence[_Row], objectives: Sequence[Objective]) -> list[int]:
    """Numbers of the rows that are ok, have all objectives, and that no other row of the same workload and parameters
    beats: as good in all and better in one."""

    def same(row: _Row) -> tuple[Any, ...]:
        return (row["workload"], row["seed"], *(row[n] for n in row if n.startswith("param ")))

    def values(row: _Row) -> tuple[float, ...] | None:
        found = [row.get(o.column) for o in objectives]
        if row["status"] != "ok" or not all(isinstance(v, (int, float)) for v in found):
            return None
        return tuple(
            float(v) if o.least else -float(v) for o, v in zip(objectives, found, strict=True) if v is not None
        )

    groups: dict[tuple[Any, ...], list[tuple[int, tuple[float, ...]]]] = {}
    for number, row in enumerate(table):
        if (found := values(row)) is not None:
            groups.setdefault(same(row), []).append((number, found))
    return sorted(
        number
        for rows in groups.values()
        for number, mine in rows
        if not any(all(a <= b for a, b in zip(other, mine, strict=True)) and other != mine for _, other in rows)
    )


def _ranks(values: np.ndarray) -> np.ndarray:
    """From 0, equal ones their mean."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values))
    for value in np.unique(values):
        ranks[values == value] = ranks[values == value].mean()
    return ranks


def _spearman(x: np.ndarray, y: np.ndarray) -> float | None:
    a, b = _ranks(x), _ranks(y)
    return float(np.corrcoef(a, b)[0, 1]) if a.std() and b.std() else None


def sensitivity(table: Sequence[_Row], objective: str) -> list[dict[str, Any]]:
    """For every workload with its other parameters the fields that vary, the strongest first.

    `share`: of the variance of the objective, that of its means by value of the field: in a full grid what the field
    alone explains. `elasticity`: percent of the objective for a percent of a number, by least squares of logarithms.
    `spearman`: rank correlation.
    """
    fields = [name for name in varied(table) if name.startswith("set ")]
    groups: dict[tuple[Any, ...], list[_Row]] = {}
    for row in table:
        if row["status"] == "ok" and isinstance(row.get(objective), (int, float)):
            what = (row["workload"], *(f"{n.removeprefix('param ')}={row[n]}" for n in row if n.startswith("param ")))
            groups.setdefault(what, []).append(row)
    found: list[dict[str, Any]] = []
    for what, rows in groups.items():
        y = np.array([float(row[objective]) for row in rows])
        whole = y.var()
        for name in fields:
            cells = [row.get(name) for row in rows]
            if len({str(c) for c in cells}) < 2 or any(c is None for c in cells) or not whole:
                continue
            means = {c: y[[str(d) == str(c) for d in cells]].mean() for c in cells}
            share = float(np.array([means[c] for c in cells]).var() / whole)
            numeric = all(isinstance(c, int) and not isinstance(c, bool) for c in cells)
            x = np.array([float(c) for c in cells]) if numeric else np.zeros(0)  # pyright: ignore[reportArgumentType]
            logs = numeric and (x > 0).all() and (y > 0).all()
            found.append(
                {
                    "workload": " ".join(map(str, what)),
                    "field": name.removeprefix("set "),
                    "share": share,
                    "elasticity": float(np.polyfit(np.log(x), np.log(y), 1)[0]) if logs else None,
                    "spearman": _spearman(x, y) if numeric else None,
                }
            )
    order = itertools.groupby(found, key=lambda one: one["workload"])
    return [one for _, ones in order for one in sorted(ones, key=lambda one: -one["share"])]
