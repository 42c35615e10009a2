"""The `plexus` command. What goes wrong at a user's hands ends in one sentence and exit code 2."""

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from firmware.gpsimd.errors import FirmwareError
from rtl.contract.config import Config, ConfigError, load
from sim.cli_area import area
from sim.cli_bench import bench
from sim.cli_energy import energy
from sim.cli_explore import explore
from sim.cli_firmware import firmware
from sim.cli_nki import nki
from sim.cli_options import (
    DIFFERENT,
    ConfigOption,
    FastOption,
    FormOption,
    InOption,
    OutArraysOption,
    SetOption,
    given,
    need_own_arrays,
    path_of,
    shown,
    waves_of,
)
from sim.cli_report import report
from sim.errors import PlexusError

__all__ = ["app", "main"]

USAGE = 2
INTERRUPTED = 130

app = typer.Typer(
    name="plexus",
    help="Plexus: run, check and measure the accelerator core.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command()(area)
app.command()(bench)
app.command()(energy)
app.command()(explore)
app.command()(nki)
app.command()(report)
app.add_typer(firmware)


@app.callback(invoke_without_command=True)
def _without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _config(source: str, changes: list[str] | None) -> Config:
    return load(source, changes or ())


@app.command()
def run(
    context: typer.Context,
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="One of `plexus list workloads`.")],
    param: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--param", metavar="name=value", help="A parameter: `plexus list WORKLOAD`. May be repeated."
        ),
    ] = None,
    config: ConfigOption = "small",
    set_: SetOption = None,
    array: Annotated[str, typer.Option(help="native or structural.")] = "native",
    seed: Annotated[int, typer.Option(min=0, help="For everything random.")] = 0,
    waves: Annotated[
        Path | None,
        typer.Option(metavar="FILE.fst", parser=path_of, help="Write waves, .fst or .vcd; needs its own build."),
    ] = None,
    waves_from: Annotated[int | None, typer.Option(metavar="CYCLE", min=0, help="Waves of this cycle on.")] = None,
    waves_until: Annotated[int | None, typer.Option(metavar="CYCLE", min=1, help="Waves before this cycle.")] = None,
    waves_scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Waves of this part, as in tensor or issue.fetch.")
    ] = None,
    fast: FastOption = False,
    report_: Annotated[
        bool, typer.Option("--report", help="Write its page at once, as `plexus report` does later.")
    ] = False,
    trace: Annotated[bool, typer.Option("--trace/--no-trace", help="Keep what happened when, in trace.npz.")] = True,
    check: Annotated[
        str,
        typer.Option(
            help="golden: every bit against the golden machine; sample=N: of N result tiles; none: no bit is compared; "
            "of a core."
        ),
    ] = "golden",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=path_of,
            help="For report.json; default build/runs/WORKLOAD-CONFIG, and a hash if anything was changed.",
        ),
    ] = None,
    in_: InOption = None,
    out_arrays: OutArraysOption = None,
) -> None:
    """Run a workload on the RTL, check every bit against the golden machine, report where cycles went.

    As in: plexus run softmax --config full -p columns=2048 -p dtype=fp32
    """
    from sim.systems.registry import system_of_workload
    from sim.systems.system import Asked

    window = waves_of(waves, waves_from, waves_until, waves_scope)
    system = system_of_workload(workload)
    need_own_arrays(workload, in_, out_arrays)
    asked = Asked(
        workload=workload,
        params=param or (),
        config=config if given(context, "config") else None,
        settings=set_ or (),
        array=array if given(context, "array") else None,
        seed=seed,
        waves=window,
        fast=fast,
        trace=trace,
        check=check,
        out=out,
        arrays=in_,
        out_arrays=out_arrays,
    )
    resolved = system.resolve(asked)
    report = system.run(resolved, Console(stderr=True))
    console = Console()
    system.show(report, console)
    console.print(f"\nreport: {shown(resolved.folder / 'report.json')}", style="bright_black", highlight=False)
    if out_arrays is not None and report["end"] == "done":
        console.print(f"arrays: {shown(out_arrays)}", style="bright_black", highlight=False)
    if report_:
        from sim.page.write import write_page

        with Console(stderr=True).status("write the page"):
            page = write_page(resolved.folder)
        console.print(f"page: {shown(page)}", style="bright_black", highlight=False)
    if not system.passed(report):
        raise typer.Exit(DIFFERENT)


@app.command(name="eval")
def evaluate_arrays(
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="One of `plexus list units`.")],
    in_: Annotated[
        Path, typer.Option("--in", metavar="IN.npz", parser=path_of, help="Arrays by name: `plexus list UNIT`.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="OUT.npz", parser=path_of, help="Where results go.")],
    config: ConfigOption = "small",
    set_: SetOption = None,
) -> None:
    """Push whole arrays of bit patterns through one Verilated unit: a MAC, exp, an activation function, a
    conversion, a reduction.

    As in: plexus eval exp --in in.npz --out out.npz, with arrays x and m of FP32 codes (uint32) in in.npz.
    """
    from sim.run.evaluate import evaluate, read_arrays, write_arrays
    from sim.run.units import find_unit

    find_unit(unit)
    cfg = _config(config, set_)
    results = evaluate(unit, read_arrays(in_), cfg)
    write_arrays(out, results)
    made = ", ".join(f"{name} {array.dtype} {list(array.shape)}" for name, array in results.items())
    print(f"{shown(out)}: {made}")


@app.command()
def build(
    top: Annotated[str, typer.Argument(metavar="TOP", help="A top; the whole core by default.")] = "core",
    config: ConfigOption = "small",
    set_: SetOption = None,
    array: FormOption = None,
    waves: Annotated[str, typer.Option(metavar="fst|vcd", help="With waves of that kind built in.")] = "",
    fast: FastOption = False,
) -> None:
    """Build the model of a top without running it."""
    from sim.build.emitting import form_options
    from sim.build.model import build as build_top
    from sim.run.waves import KINDS
    from sim.systems.registry import system_of_top
    from sim.systems.system import BuildAsked

    if waves and waves not in KINDS:
        raise PlexusError(f"--waves is {' or '.join(KINDS)}, not {waves!r}")
    if system := system_of_top(top):
        built = system.tops[top](BuildAsked(config=config, settings=set_ or (), array=array, waves=waves, fast=fast))
    else:
        if fast:
            raise PlexusError(f"{top} has no --fast: that trains the model of a core")
        cfg = _config(config, set_)
        built = build_top(top, cfg, waves=waves, options=form_options(top, array, "native") if array else {})
    print(f"{'already built' if built.cached else 'built'}: {shown(built.folder)}")


@app.command()
def emit(
    top: Annotated[str, typer.Argument(metavar="TOP", help="A top, as in `plexus list tops`.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.v", parser=path_of)],
    config: ConfigOption = "small",
    set_: SetOption = None,
    array: FormOption = None,
) -> None:
    """Write the Verilog of a top, structural by default, and beside it a control file for Verilator's lint."""
    from sim.build.emitting import emit_top
    from sim.build.waivers import waiver_text

    if output.is_dir():
        raise PlexusError(f"{output} is a folder, and Verilog goes into a file")
    control = output.with_suffix(".vlt")
    if control == output:
        raise PlexusError(f"{output} is the name of the control file beside the Verilog: another suffix, as in core.v")
    emitted = emit_top(top, _config(config, set_), form=array)
    for path, text in ((output, emitted.text), (control, waiver_text(output.name))):
        try:
            path.write_text(text)
        except OSError as error:
            raise PlexusError(f"{path} cannot be written: {error.strerror}") from None
    print(f"{shown(output)}: {len(emitted.text.splitlines()):,} lines; {shown(control)} for lint: why what is waived")
    for source in emitted.sources:
        print(f"  needs {shown(source)}")


@app.command()
def lint(
    top: Annotated[str, typer.Argument(metavar="TOP", help="A top, as in `plexus list tops`.")],
    config: ConfigOption = "small",
    set_: SetOption = None,
    array: FormOption = None,
) -> None:
    """Let Verilator look at the Verilog that `plexus emit` writes, with all its warnings but those waived by name."""
    from sim.build.emitting import emit_top
    from sim.build.lint import warnings_of

    found = warnings_of(emit_top(top, _config(config, set_), form=array))
    if found:
        print(f"plexus: Verilator has {len(found):,} warnings about {top}; the first:", file=sys.stderr)
        print("\n".join(found[:5]), file=sys.stderr)
        raise typer.Exit(DIFFERENT)
    print(f"{top}: Verilator has nothing to say")


@app.command(name="list")
def list_names(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[workloads|configs|units|tops|NAME]", help="NAME: of a workload, a unit or a configuration."
        ),
    ] = None,
) -> None:
    """What there is, one line each; of a workload its parameters, of a unit its arrays, of a configuration fields."""
    from sim.listing import details, names_by_kind

    if what is not None and (detailed := details(what)):
        title, lines = detailed
        print(title)
        width = max(len(name) for name, _ in lines)
        for name, doc in lines:
            print(f"  {name:{width}}  {doc}")
        return
    names = names_by_kind()
    if what is not None and what not in names:
        raise PlexusError(
            f"there is no list of {what!r}; there are {', '.join(names)}, "
            "and those of a workload, unit or configuration by its name"
        )
    for kind in [what] if what else names:
        indent = "" if what else "  "
        if not what:
            print(kind)
        width = max(len(name) for name, _, _ in names[kind])
        for name, doc, usage in names[kind]:
            print(f"{indent}{name:{width}}  {doc}{f'  [{usage}]' if usage else ''}")


def _sentence(error: BaseException) -> str:
    return f"plexus: {str(error).strip()}"


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 fine, 1 bits differ or a fault, 2 wrong use, 130 Ctrl-C."""
    try:
        code: Any = app(args=arguments, prog_name="plexus", standalone_mode=False)
        if code == INTERRUPTED:  # Typer has caught Ctrl-C and says nothing
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        print("plexus: interrupted; what was finished is kept", file=sys.stderr)
        return INTERRUPTED
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "plexus"
        print(f"plexus: {message.rstrip('.')} ({where} --help tells more)", file=sys.stderr)
        return USAGE
    except (PlexusError, ConfigError, FirmwareError) as error:
        print(_sentence(error), file=sys.stderr)
        return getattr(error, "code", USAGE)
    except MemoryError:
        print("plexus: this needs more memory than there is; smaller sizes need less", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USAGE
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            print(
                "plexus: the disk is full; PLEXUS_BUILD chooses another place for what is built",
                file=sys.stderr,
            )
        else:
            where = f"{error.filename}: " if error.filename else ""
            print(f"plexus: {where}{error.strerror or error}", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
