"""`plexus firmware`: C, C++ and assembly to an image for the GPSIMD engine; what is in one, what cores executed."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sim.cli_options import SetOption, path_of, shown
from sim.errors import PlexusError

__all__ = ["firmware"]

firmware = typer.Typer(
    name="firmware",
    help="Programs for the GPSIMD engine: compile C and C++, look into an image (docs/firmware.md).",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@firmware.callback()
def _without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@firmware.command()
def build(
    sources: Annotated[
        list[Path], typer.Argument(metavar="SOURCE...", parser=path_of, help="Files that end in .c, .cpp, .S.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE.elf", parser=path_of, help="Where the image goes.")
    ],
    local_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Local memory of a core, a power of two; default 65536.")
    ] = None,
    stack_bytes: Annotated[int | None, typer.Option(metavar="N", help="Of that for the stack; default 4096.")] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="With vector instructions, for cores with gpsimd.vectors.")
    ] = False,
    flag: Annotated[
        list[str] | None,
        typer.Option(metavar="FLAG", help="One for the compiler, as in --flag=-O2 or --flag=-DN=4. May be repeated."),
    ] = None,
) -> None:
    """Compile sources with the start code and the runtime of firmware/gpsimd, and link them into one image.

    As in: plexus firmware build topk.cpp tables.c -o topk.elf. It runs on cores of every vector length.
    """
    from firmware.gpsimd.build import build as build_image
    from firmware.gpsimd.elf import read_image
    from firmware.gpsimd.errors import FirmwareError
    from firmware.gpsimd.options import Options
    from firmware.gpsimd.report import long_functions, sizes
    from rtl.contract.gpsimd import LOCAL_BYTES, STACK_BYTES
    from sim.progress import progress

    options = Options(
        vector=vectors,
        local_bytes=LOCAL_BYTES if local_bytes is None else local_bytes,
        stack_bytes=STACK_BYTES if stack_bytes is None else stack_bytes,
        flags=tuple(flag or ()),
    )
    try:
        with progress(f"firmware {output.name}") as step:
            built = build_image(sources, output, options, step.stage, step.tick)
    except FirmwareError as error:
        if error.said:
            print(error.said, file=sys.stderr)
        raise
    if built.warnings:
        print(built.warnings, file=sys.stderr)
    image = read_image(output)
    for line in long_functions(image):
        print(f"plexus: {line}", file=sys.stderr)
    print(f"{'already built' if built.cached else 'built'}: {shown(output)}: {sizes(image)}")


@firmware.command()
def info(
    image: Annotated[Path, typer.Argument(metavar="FILE.elf", parser=path_of, help="An image.")],
    config: Annotated[
        str | None,
        typer.Option("--config", "-c", metavar="NAME|FILE.toml", help="Only for its cores; exit 2 if they refuse it."),
    ] = None,
    set_: SetOption = None,
) -> None:
    """What is in an image: sections, entries, functions, extensions; what a core of each configuration says to it."""
    from firmware.gpsimd.core import core_of, need_fit
    from firmware.gpsimd.elf import read_image
    from firmware.gpsimd.report import describe, verdict
    from rtl.contract.config import NAMED, load

    read = read_image(image)
    if set_ and config is None:
        raise PlexusError(f"--set {set_[0]} changes a configuration: name one with --config")
    if config is not None:
        core = core_of(load(config, set_ or ()))
        need_fit(read, core)
        print("\n".join(describe(read)))
        print(verdict(read, core))
        return
    print("\n".join(describe(read)))
    print("configurations")
    width = max(map(len, NAMED))
    for name, cfg in NAMED.items():
        print(f"  {name:{width}}  {verdict(read, core_of(cfg))}")


@firmware.command()
def instructions(
    waves: Annotated[
        Path, typer.Argument(metavar="WAVES.vcd", parser=path_of, help="Of plexus run gpsimd --waves WAVES.vcd.")
    ],
    elf: Annotated[
        Path | None,
        typer.Option("--elf", metavar="FILE.elf", parser=path_of, help="The program, for functions and lines."),
    ] = None,
    core: Annotated[
        int | None, typer.Option("--core", metavar="N", help="Of this core only; all if not given.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", parser=path_of, help="There, not on the terminal.")
    ] = None,
) -> None:
    """What GPSIMD cores executed: a line an instruction with its cycle, pc, what it wrote, loaded and stored."""
    from firmware.gpsimd.elf import read_image
    from sim.report.instructions import instruction_lines
    from sim.run.retired import retired_in
    from sim.whole_file import whole_file

    lines = instruction_lines(retired_in(waves, core), None if elf is None else read_image(elf))
    if output is None:
        for line in lines:
            print(line)
        return
    with whole_file(output) as place, place.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
