"""Options that several commands of `plexus` share, and what their values mean."""

from pathlib import Path
from typing import Annotated

import typer

from sim.errors import PlexusError
from sim.run.waves import Waves

__all__ = [
    "DIFFERENT",
    "ConfigOption",
    "FastOption",
    "FormOption",
    "InOption",
    "OutArraysOption",
    "SetOption",
    "given",
    "need_own_arrays",
    "path_of",
    "shown",
    "waves_of",
]

DIFFERENT = 1
"""Exit code of a command whose run did not come out as it must."""

ConfigOption = Annotated[
    str,
    typer.Option("--config", "-c", metavar="NAME|FILE.toml", help="A named configuration or a TOML file."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="key=value", help="Change a field, as in sbuf.banks=8.")
]


def path_of(text: str) -> Path:
    """A path that a user has written; an empty one would be the working folder."""
    if not text.strip():
        raise typer.BadParameter("the path is empty")
    if "\0" in text:
        raise typer.BadParameter("a path has no NUL character")
    return Path(text)


FormOption = Annotated[
    str | None,
    typer.Option(
        "--array", help="structural (RTL all the way down) or native (C++ models in it), where a top has both."
    ),
]


InOption = Annotated[
    Path | None,
    typer.Option("--in", metavar="IN.npz", parser=path_of, help="Your arrays, by name: `plexus list WORKLOAD`."),
]
OutArraysOption = Annotated[
    Path | None,
    typer.Option("--out-arrays", metavar="OUT.npz", parser=path_of, help="Where results of --in go, as arrays."),
]
FastOption = Annotated[
    bool, typer.Option("--fast", help="Train the model on two short runs first: a longer build, a faster core.")
]


def waves_of(path: Path | None, first: int | None, end: int | None, scope: str | None) -> Waves | None:
    """The waves that options ask for."""
    if path is not None:
        return Waves(path=path, first=first or 0, end=end, scope=scope or "")
    if first is not None or end is not None or scope is not None:
        raise PlexusError("--waves-from, --waves-until and --waves-scope choose what goes into the file of --waves")
    return None


def need_own_arrays(workload: str, arrays: Path | None, out: Path | None) -> None:
    """Errors: PlexusError unless the workload takes them, KernelError that lists those that do."""
    if arrays is not None:
        from firmware.own_makers import find_own

        find_own(workload)
    elif out is not None:
        raise PlexusError("--out-arrays is for the results of your own arrays, which --in names")


def given(context: typer.Context, option: str) -> bool:
    """Whether the user has written this option of the command."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def shown(path: Path) -> str:
    """A path relative to where the user is, if it lies below."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
