"""`make coverage`: adds up what runs with PLEXUS_COVERAGE=1 have left, and writes build/coverage/index.html.

Exit code 1 if a unit is below 90 % and verif/plan/coverage.toml gives no reason, or gives one that is out of date.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

from sim.build.coverage import DATA
from sim.errors import PlexusError
from sim.toolchain import ROOT, build_root
from verif.checks.code_coverage.holes import MEASURES, Row, judge, reasons_of, rows_of, unmet
from verif.checks.code_coverage.page import page
from verif.checks.code_coverage.units import Unit, add_model
from verif.checks.merge import STAMP, merge

__all__ = ["gather", "main"]

PLAN = ROOT / "verif" / "plan" / "coverage.toml"


def gather(root: Path, since: float = 0.0) -> dict[str, Unit]:
    """Units by file, from all runs under `root` that were made at `since` (s) or later. A run with a fault is none."""
    runs: dict[Path, list[Path]] = defaultdict(list)
    for path in sorted(root.glob(f"*/*/run-*/{DATA}")):
        if path.stat().st_mtime >= since and not json.loads((path.parent / "manifest.json").read_text())["plant"]:
            runs[path.parents[1]].append(path)
    units: dict[str, Unit] = {}
    for folder, data in runs.items():
        add_model(units, folder, data)
    return units


def _as_json(row: Row) -> dict[str, object]:
    measures = {m: {"hit": row.hit[m], "points": row.of[m], "percent": row.percent(m)} for m in MEASURES}
    return {**measures, "left_out": row.left_out, "holes": row.holes}


def main() -> int:
    """Write the page; 1 if something is to be settled or nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m verif.checks.code_coverage", description=__doc__)
    parser.add_argument("--part", action="store_true", help="only some benches ran: say nothing of units in no model")
    parser.add_argument("--all", action="store_true", help="runs before the last make coverage count too")
    asked = parser.parse_args()
    root = build_root()
    stamp = root / STAMP
    since = stamp.stat().st_mtime if stamp.exists() and not asked.all else 0.0
    try:
        units = gather(root, since)
        if not units:
            raise PlexusError(f"no run under {root} has left {DATA}: run make coverage")
        reasons = reasons_of(PLAN)
    except PlexusError as why:
        print(f"plexus: {why}", file=sys.stderr)
        return 2
    rows = rows_of(units)
    absent = unmet(units)
    wrong = judge(rows, absent, reasons, part=asked.part)
    folder = root / "coverage"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(page(rows, reasons, absent, merge(root), wrong))
    what = {"units": {row.unit: _as_json(row) for row in rows}, "in_no_model": absent, "to_be_settled": wrong}
    (folder / "index.json").write_text(json.dumps(what, indent=1))
    for text in wrong:
        print(text)
    total = {m: (sum(r.hit[m] for r in rows), sum(r.of[m] for r in rows)) for m in MEASURES}
    shown = ", ".join(f"{hit} of {of} {m} points" for m, (hit, of) in total.items())
    print(f"{len(rows)} units: {shown}; {len(wrong)} to be settled; see {folder / 'index.html'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
