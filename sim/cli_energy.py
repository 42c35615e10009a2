"""`plexus energy`: what switches in units of a core, a link or a switch at each event; a run by part, and an index."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sim.cli_options import SetOption, path_of, shown

__all__ = ["energy"]


def _print(values: dict[str, Any]) -> None:
    json.dump(values, sys.stdout, indent=1)
    print()


def _console() -> Console:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 120)  # a file has no edge
    return console


def energy(
    what: Annotated[str, typer.Argument(metavar="CONFIG|DIR", help="A configuration, a FILE.toml, or a run's folder.")],
    base: Annotated[
        Path | None, typer.Option(metavar="DIR", parser=path_of, help="Folder of the run that is 1.0 in the index.")
    ] = None,
    set_: SetOption = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=path_of, help="Of events, made before; default: made or found."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", parser=path_of, help="Stated figures; default sim/energy/figures.toml."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON and nothing else.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", parser=path_of, help="For energy.json; default build/energy/CONFIG, or the run's."),
    ] = None,
) -> None:
    """Toggles of a configuration's gates at each event, or the energy of a run by part, as an index.

    As in: plexus energy small, or plexus energy build/runs/gemm-small --base build/runs/gemm-small-1a2b3c4d
    """
    from sim.energy.command import energy_of_run, table_of_config
    from sim.energy.terminal import show_run, show_table
    from sim.errors import PlexusError

    if not Path(what).is_dir():
        if base or table or figures:
            raise PlexusError(f"{what} is no folder of a run, and --base, --table and --figures are for one")
        report, path = table_of_config(what, set_ or (), out)
        if json_:
            _print(report)
            return
        console = _console()
        show_table(report, console)
    else:
        if set_:
            raise PlexusError(f"{what} is the folder of a run, whose configuration --set cannot change")
        found = energy_of_run(Path(what), base, table, figures, out)
        path = found.path
        if json_:
            _print(found.values)
            return
        console = _console()
        show_run(found.report, found.energy, console, index=found.index, base=found.base)
    console.print(f"\nreport: {shown(path)}", style="bright_black", highlight=False)
