"""`plexus explore`: many runs from one file."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sim.cli_options import FastOption, path_of, shown

__all__ = ["explore"]


def explore(
    sweep: Annotated[Path, typer.Argument(metavar="SWEEP.toml", parser=path_of, help="What to vary and to run.")],
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once; default: as many as processors.")] = os.cpu_count()
    or 1,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", parser=path_of, help="Where rows go; default build/explore/NAME.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run what did not end well again.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the rows that are there.")] = False,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the workers of this scheduler of Dask.")
    ] = None,
    fast: FastOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run and built.")] = False,
) -> None:
    """Run a workload on many variants: a table and a page. The same command goes on where it was interrupted.

    As in: plexus explore sweeps/memory.toml --jobs 2
    """
    from sim.explore.explore import default_place
    from sim.explore.explore import explore as run

    folder = out or default_place(sweep)
    console = Console()
    asked, plan, found = run(
        sweep,
        folder,
        jobs=jobs,
        console=Console(stderr=True),
        retry=retry,
        fresh=fresh,
        dry=dry_run,
        fast=fast,
        cluster=cluster,
    )
    if dry_run:
        console.print(f"{asked.name}: {found.points:,} points, {found.models:,} models", highlight=False)
        for group in plan.groups:
            more = " ".join(group.model or ()) or "as it is"
            console.print(
                f"  {len(group.points):,} on {asked.base}: {more}; first {group.points[0].variant}", highlight=False
            )
        for refused in dict.fromkeys(f"{point.variant}: {sentence}" for point, sentence in plan.refused):
            console.print(f"  refused: {refused}", highlight=False)
        return
    told = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in found.statuses.items())
    console.print(f"{asked.name}: {found.points:,} points: {told}", highlight=False)
    console.print(f"  {found.ran:,} run now on {found.models:,} models, {found.kept:,} were there", highlight=False)
    if found.stale:
        console.print(f"  {found.stale:,} rows were of other sources or tools and do not count", highlight=False)
    for name in ("index.html", "table.csv"):
        if (folder / name).exists():
            console.print(
                f"{'page' if name == 'index.html' else 'table'}: {shown(folder / name)}",
                style="bright_black",
                highlight=False,
            )
    if set(found.statuses) - {"ok", "refused", "does_not_fit"}:
        raise typer.Exit(1)
