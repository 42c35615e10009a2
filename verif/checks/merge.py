"""`make coverage`: add up what all runs have hit; one row a unit, and what nobody hit.

Counts of runs with a planted fault do not count. Writes build/coverage.json; exit code 1 if a bin is empty.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sim.toolchain import build_root

__all__ = ["main", "merge"]


STAMP = "coverage-start"
"""`make coverage` touches this before its runs: what is older belongs to other sources."""


def merge(root: Path) -> dict[str, Counter[str]]:
    """Hits by unit and bin over the runs under `root` since the stamp, over all if there is none."""
    stamp = root / STAMP
    since = stamp.stat().st_mtime if stamp.exists() else 0.0
    total: dict[str, Counter[str]] = {}
    for path in sorted(root.glob("*/*/run-*/coverage-*.json")):
        if path.stat().st_mtime < since:
            continue
        if json.loads((path.parent / "manifest.json").read_text())["plant"]:
            continue
        entry = json.loads(path.read_text())
        bins = total.setdefault(entry["name"], Counter())
        for name, hits in entry["bins"].items():
            bins[name] += hits
    return total


def main() -> int:
    """Print the table; 1 if a bin is empty or nothing was found."""
    root = build_root()
    total = merge(root)
    console = Console(width=None if sys.stdout.isatty() else 110)
    if not total:
        print(f"no run under {root} has left coverage: run make coverage", file=sys.stderr)
        return 1
    table = Table("unit", "bins hit", "fewest hits", "never hit")
    for name, bins in sorted(total.items()):
        hit = sum(count > 0 for count in bins.values())
        rarest = min(bins, key=lambda b: bins[b])
        missing = ", ".join(b for b, count in bins.items() if count == 0)
        table.add_row(name, f"{hit} of {len(bins)}", f"{rarest}: {bins[rarest]:,}", missing)
    console.print(table)
    root.joinpath("coverage.json").write_text(json.dumps(total, indent=1, sort_keys=True))
    return int(any(count == 0 for bins in total.values() for count in bins.values()))


if __name__ == "__main__":
    sys.exit(main())
