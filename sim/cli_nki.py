"""`plexus nki`: a kernel in NKI on arrays of a file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sim.cli_options import DIFFERENT, ConfigOption, SetOption, path_of, shown
from sim.errors import PlexusError

__all__ = ["nki"]


def nki(
    kernel: Annotated[
        str | None, typer.Argument(metavar="[FILE.py:KERNEL]", help="A file, and the name of a function in it.")
    ] = None,
    in_: Annotated[
        Path | None,
        typer.Option(
            "--in",
            metavar="IN.npz",
            parser=path_of,
            help="Arrays by names of parameters, or in their order; without axes: numbers.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="OUT.npz", parser=path_of, help="Where what it returns goes.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("-p", "--param", metavar="name=value", help="An argument that is no array. May be repeated."),
    ] = None,
    config: ConfigOption = "small",
    set_: SetOption = None,
    device: Annotated[str, typer.Option(help="rtl, beside the golden machine, or golden alone.")] = "rtl",
    limit: Annotated[
        int | None, typer.Option(metavar="CALLS", min=1, help="Calls of nki that the kernel may make; 200,000.")
    ] = None,
    silence: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time that it may run between two of them; 60 s.")
    ] = None,
    count: Annotated[
        Path | None,
        typer.Option("--count", metavar="DIR", parser=path_of, help="Run nothing; count calls of nki in its files."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--report", metavar="DIR", parser=path_of, help="For report.json and trace.npz.")
    ] = None,
) -> None:
    """Run a kernel of AWS Neuron's NKI; docs/nki.md has the calls that there are.

    As in: plexus nki kernels.py:matmul --in x.npz --out y.npz --config full --device golden
    """
    from firmware.nki.front import LIMIT
    from firmware.nki.sites import counted
    from firmware.nki.watch import SILENCE_SECONDS
    from sim.api.errors import RunError
    from sim.api.nki import run_named
    from sim.api.options import Options
    from sim.nki_sites import lines
    from sim.run.evaluate import write_arrays
    from sim.run.host_arrays import plain_array
    from sim.run.kernel_arguments import arguments_of

    if count is not None:
        if kernel is not None or in_ is not None:
            raise PlexusError("--count DIR runs no kernel, so it takes neither FILE.py:KERNEL nor --in")
        print("\n".join(lines(counted(count))))
        return
    if kernel is None or in_ is None:
        raise PlexusError("plexus nki takes FILE.py:KERNEL and --in IN.npz, or --count DIR")
    options: Options = {"config": config, "settings": set_ or (), "device": device}  # type: ignore[typeddict-item]
    if folder is not None:
        options["folder"] = folder
    quiet = SILENCE_SECONDS if silence is None else silence
    try:
        result = run_named(kernel, arguments_of(in_, param or ()), limit or LIMIT, quiet, options)
    except RunError as error:
        print(f"plexus: {error}", file=sys.stderr)
        raise typer.Exit(DIFFERENT) from None
    result.show()
    if out is not None:
        write_arrays(out, {name: plain_array(tensor.bits) for name, tensor in result.tensors.items()})
        print(f"arrays: {shown(out)}")
