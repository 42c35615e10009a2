"""The page of a sweep: index.html beside its table, one file, nothing asked for from anywhere."""

from pathlib import Path
from typing import Any

from sim.explore.analysis import over_seeds, pareto, sensitivity, varied
from sim.explore.sweep import Sweep
from sim.explore.table import Table, columns
from sim.page.embed import page_text
from sim.whole_file import whole_file

__all__ = ["PAGE", "explore_data", "write_explore_page"]

PAGE = "index.html"


def explore_data(sweep: Sweep, table: Table, folder: Path) -> dict[str, Any]:
    """All that explore.js wants."""
    names = columns(table)
    plain = [o.column for o in sweep.objectives]
    numbers = [n for n in names if all(isinstance(r.get(n), (int, float, type(None))) for r in table)]
    grid = [row for row in table if row["variant"] not in sweep.named.values()]
    statuses: dict[str, int] = {}
    for row in table:
        statuses[row["status"]] = statuses.get(row["status"], 0) + 1
    return {
        "title": f"{sweep.name}: {len(table)} runs on {Path(sweep.base).stem}",
        "verdict": ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(statuses.items())),
        "good": set(statuses) <= {"ok", "refused", "does_not_fit"},
        "note": f"checked: {sweep.check}; objectives: "
        + ", ".join(f"{o.column} ({'less' if o.least else 'more'} is better)" for o in sweep.objectives),
        "columns": names,
        "numbers": [n for n in numbers if any(r.get(n) is not None for r in table)],
        "rows": [[row.get(name) for name in names] for row in table],
        "varied": varied(table),
        "named": bool(sweep.named),
        "objectives": [[o.column, o.least] for o in sweep.objectives],
        "pareto": pareto(table, sweep.objectives),
        "sensitivity": {column: sensitivity(grid, column) for column in plain},
        "seeds": over_seeds(table, plain[0]) if len(sweep.seeds) > 1 else [],
        "pages": [(folder / "runs" / row["key"] / "report.html").exists() for row in table],
    }


def write_explore_page(sweep: Sweep, table: Table, folder: Path) -> Path:
    """`folder`/index.html, whole or not at all. Errors: PlexusError."""
    path = folder / PAGE
    with whole_file(path) as place:
        place.write_text(page_text(explore_data(sweep, table, folder), "explore"), encoding="utf-8")
    return path
