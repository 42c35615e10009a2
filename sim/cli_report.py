"""`plexus report`: the page of a run that is over, or its trace for another viewer."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sim.cli_options import path_of, shown
from sim.errors import PlexusError

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", parser=path_of, help="Of a run: it has report.json.")],
    beside: Annotated[
        Path | None, typer.Argument(metavar="DIR2", parser=path_of, help="Of another run, to compare it with.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", parser=path_of, help="The page; default DIR/report.html.")
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json.gz", parser=path_of, help="Write the trace for ui.perfetto.dev instead."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write the page of a run: timeline, where cycles went, critical path, lines of the kernel.

    As in: plexus report build/runs/gemm-small --open
    """
    from sim.page.perfetto import write_perfetto
    from sim.page.write import read_report, write_page
    from sim.trace.recorded import load_trace

    if perfetto is not None:
        if beside is not None or out is not None or open_:
            raise PlexusError("--perfetto writes the trace of one run and no page: leave DIR2, --out and --open")
        found = read_report(folder)
        if "engines" not in found:
            raise PlexusError(f"--perfetto is for the trace of a core; {folder} is a run of a {found['workload']}")
        with Console(stderr=True).status("write the trace"):
            write_perfetto(found, load_trace(folder), perfetto)
        Console().print(f"trace: {shown(perfetto)}", highlight=False)
        return
    with Console(stderr=True).status("write the page"):
        page = write_page(folder, beside, out)
    Console().print(f"page: {shown(page)}", highlight=False)
    if open_:
        typer.launch(page.resolve().as_uri())
