"""`plexus area`: gates, registers, RAM and levels of logic of a design, by unit."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sim.cli_options import SetOption, path_of, shown

__all__ = ["area"]


def area(
    what: Annotated[
        str, typer.Argument(metavar="TOP|CONFIG", help="As in `plexus list tops` and `configs`, or a FILE.toml.")
    ],
    config: Annotated[
        str | None,
        typer.Option(
            "--config", "-c", metavar="NAME|FILE.toml", help="Of a top; default small, or the system's first."
        ),
    ] = None,
    set_: SetOption = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="key=value", help="A keyword of the top. May be repeated.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Units at once; default: as many as processors.")] = os.cpu_count()
    or 1,
    level_ps: Annotated[
        float | None, typer.Option(metavar="PS", min=0.1, help="Delay of a level of logic; default 9.5.")
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="More time for fewer levels, of units that are too deep for their clock.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="A line for each unit.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON and nothing else.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", parser=path_of, help="For area.json, area.html, area.svg; default build/area/TOP-CONFIG."
        ),
    ] = None,
) -> None:
    """Gate equivalents, flip-flops, RAM bits and levels of logic between registers, by unit.

    As in: plexus area small, or plexus area exp --level-ps 12. Units are synthesised once and kept.
    """
    from sim.area.area import area_of
    from sim.area.clocks import LEVEL_PS
    from sim.area.subject import subject_of
    from sim.area.terminal import show
    from sim.area.write import write_area
    from sim.progress import progress
    from sim.run.repeat import options_from

    options = options_from(option or ())
    subject = subject_of(what, config, set_ or ())
    with progress(f"area {subject.top} {subject.cfg.name}") as step:
        report = area_of(
            subject.top, subject.cfg, options=options, jobs=jobs, deep=deep, level_ps=level_ps or LEVEL_PS, step=step
        )
    written = write_area(report, out or subject.folder(options))
    if json_:
        json.dump(report, sys.stdout, indent=1)
        print()
        return
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 120)  # a file has no edge
    show(report, console, every=every)
    console.print()
    for name, path in written.items():
        console.print(f"{name}: {shown(path)}", style="bright_black", highlight=False)
