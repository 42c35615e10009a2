"""A sweep from its file to its table and page."""

import fcntl
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sim.errors import PlexusError
from sim.explore.areas import areas_of
from sim.explore.cluster import run_on_cluster
from sim.explore.energies import energies_of
from sim.explore.local import run_locally
from sim.explore.made_of import made_of
from sim.explore.page import write_explore_page
from sim.explore.plan import Plan, make_plan
from sim.explore.points import Point, points_of
from sim.explore.rows import Rows
from sim.explore.sweep import Sweep, read_sweep
from sim.explore.table import make_table, write_csv, write_parquet
from sim.toolchain import ROOT, build_root, tool_versions

__all__ = ["Explored", "default_place", "explore"]

PAGES_MAX = 200
"""Runs of a sweep that have a page each; with more, `plexus report` makes the one that is wanted."""


@dataclass(slots=True, kw_only=True)
class Explored:
    """What a sweep came to. `statuses` of all points; `ran` now; `kept` from before; `stale`, made by other sources."""

    folder: Path
    points: int
    ran: int = 0
    kept: int = 0
    stale: int = 0
    models: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)


def default_place(path: Path) -> Path:
    """build/explore/NAME of the sweep."""
    return build_root() / "explore" / path.stem


def _commit() -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    done = subprocess.run(
        [git, "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _wanted(points: Sequence[Point], rows: Rows, retry: bool) -> list[Point]:
    first = {point.key: point for point in reversed(points)}.values()  # layers of one size are run once
    return [p for p in first if p.key not in rows.found or (retry and rows.found[p.key]["status"] != "ok")]


def _left(plan: Plan, wanted: Sequence[Point]) -> Plan:
    """The part of a plan that is still to do, on the models of the whole: a sweep that goes on builds no others."""
    numbers = {point.number for point in wanted}
    groups = [replace(group, points=[p for p in group.points if p.number in numbers]) for group in plan.groups]
    refused = [(point, why) for point, why in plan.refused if point.number in numbers]
    return Plan(groups=[group for group in groups if group.points], refused=refused)


def explore(
    path: Path,
    folder: Path,
    *,
    jobs: int,
    console: Console,
    retry: bool = False,
    fresh: bool = False,
    dry: bool = False,
    fast: bool = False,
    cluster: str | None = None,
) -> tuple[Sweep, Plan, Explored]:
    """Run what has no row yet, then write table and page. `dry`: only the plan. `cluster`: address of a Dask scheduler,
    whose workers run the points. Errors: PlexusError, one sentence."""
    sweep = read_sweep(path)
    sweep = replace(sweep, fast=sweep.fast or fast)
    points = points_of(sweep)
    if dry:
        plan = make_plan(points, folder, fast=sweep.fast)
        return sweep, plan, Explored(folder=folder, points=len(points), models=len(plan.groups))
    with _alone(folder):
        return _explore(sweep, points, folder, jobs, console, retry=retry, fresh=fresh, cluster=cluster)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder's lock, which goes with the process. Errors: PlexusError if another one has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise PlexusError(f"nothing can be written in the folder {folder}: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = f"another plexus explore is at work in {folder}; wait for it, or name an --out"
            raise PlexusError(why) from None
        yield


def _explore(
    sweep: Sweep,
    points: Sequence[Point],
    folder: Path,
    jobs: int,
    console: Console,
    *,
    retry: bool,
    fresh: bool,
    cluster: str | None,
) -> tuple[Sweep, Plan, Explored]:
    rows = Rows(folder, made_of(), fresh=fresh)
    wanted = _wanted(points, rows, retry)
    plan = _left(make_plan(points, folder, fast=sweep.fast), wanted)
    commit = _commit()

    def keep(point: Point, outcome: Mapping[str, Any]) -> None:
        about = {"key": point.key, "command": point.command, "variant": dict(point.changes), "workload": point.workload}
        about |= {"params": dict(point.params), "seed": point.seed, "base": point.base, "commit": commit}
        rows.add({**about, "tools": tool_versions(), **outcome})

    for point, sentence in plan.refused:
        keep(point, {"status": "refused", "sentence": sentence})
    areas: dict[str, dict[str, Any]] = {}
    try:
        _run(plan, folder, sweep, len(points), jobs, console, keep, cluster)
        if sweep.area:
            areas = areas_of(points, rows.found, folder, jobs)
        if sweep.energy:
            for key, columns in energies_of(sweep, points, rows.found, folder).items():
                areas[key] = areas.get(key, {}) | columns
    except BaseException:
        rows.again()
        raise
    finally:  # an interrupted sweep has the table of what there is
        _write(sweep, points, rows, folder, areas)
    statuses = Counter(rows.found[point.key]["status"] for point in points)
    return (
        sweep,
        plan,
        Explored(
            folder=folder,
            points=len(points),
            ran=len(wanted),
            kept=len({point.key for point in points}) - len(wanted),
            stale=rows.stale,
            models=len(plan.groups),
            statuses=dict(sorted(statuses.items())),
        ),
    )


def _run(
    plan: Plan,
    folder: Path,
    sweep: Sweep,
    count: int,
    jobs: int,
    console: Console,
    keep: Any,
    cluster: str | None,
) -> None:
    total = sum(len(group.points) for group in plan.groups)
    parts = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*parts, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"explore {sweep.name}", total=total)

        def came(point: Point, outcome: dict[str, Any]) -> None:
            keep(point, outcome)
            bar.advance(task)

        how: dict[str, Any] = {"timeout_seconds": sweep.timeout_seconds, "fast": sweep.fast, "came": came}
        how["pages"] = count <= PAGES_MAX
        if cluster is not None and total:
            run_on_cluster(plan, folder, address=cluster, **how)
        elif total:
            run_locally(plan, folder, jobs=min(jobs, total), **how)


def _write(
    sweep: Sweep, points: Sequence[Point], rows: Rows, folder: Path, areas: Mapping[str, Mapping[str, Any]]
) -> None:
    table = make_table(points, rows.found, sweep.base_values, areas)
    if table:
        write_csv(table, folder / "table.csv")
        write_parquet(table, folder / "table.parquet")
        write_explore_page(sweep, table, folder)
