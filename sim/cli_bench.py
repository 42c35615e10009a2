"""`plexus bench`: one cocotb bench on one unit."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sim.cli_options import DIFFERENT, SetOption, path_of, shown

__all__ = ["bench"]


def bench(
    top: Annotated[str, typer.Argument(metavar="TOP", help="A top, as in `plexus list tops`.")],
    module: Annotated[
        str | None, typer.Argument(metavar="[BENCH]", help="As in link.scheduler; default: that of the top's name.")
    ] = None,
    config: Annotated[
        str, typer.Option("--config", "-c", metavar="NAME", help="Named, of a core, link or switch.")
    ] = "tiny",
    set_: SetOption = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="key=value", help="A keyword of the top. May be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For everything random.")] = 1,
    plant: Annotated[str, typer.Option(metavar="NAME", help='With this planted fault, as in "carry lost".')] = "",
    test: Annotated[str | None, typer.Option(metavar="NAME", help="This test of the bench only.")] = None,
    waves: Annotated[
        Path | None,
        typer.Option(metavar="FILE.fst", parser=path_of, help="Write waves, .fst or .vcd; needs its own build."),
    ] = None,
) -> None:
    """Run a cocotb bench on one unit, as `make test` does.

    As in: plexus bench fifo --option shape=16 --option depth=4 --seed 3 --waves fifo.fst
    """
    from sim.run.repeat import configured, find_bench, options_from
    from sim.run.runner import run_again

    cfg = configured(config, set_ or ())
    verdict = run_again(top, find_bench(top, module), cfg, options_from(option or ()), seed, plant, test, waves)
    ran = [case for case in verdict.cases if case.kind != "RegressionTerminated"]  # a planted fault ends with the first
    for case in ran:
        print(f"{'pass' if case.ok else 'FAIL'}  {case.name}  {case.seconds:.1f} s")
    if len(ran) < verdict.ran:
        print(f"{verdict.ran - len(ran)} tests behind it did not run")
    for name in verdict.skipped:
        print(f"skip  {name}")
    if plant:
        print(f"with a planted fault: {plant}")
    print(f"log: {shown(verdict.folder / 'run.log')}")
    if not verdict.ok:
        print(f"plexus: {verdict.first}", file=sys.stderr)
        raise typer.Exit(DIFFERENT)
