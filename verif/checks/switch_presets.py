"""The large switches, whole: python -m verif.checks.switch_presets [--run] [SWITCH...], all three if none is named.

Converts each of them with its ports, checks the Verilog with Verilator, says how long that took. With --run: builds
each and sends uniform traffic through it; exit code 1 if a unit is lost, comes twice, out of order or elsewhere.
"""

import argparse
import sys

from rich.console import Console

from rtl.contract.switch_config import SWITCHES
from sim.build.lint import lint
from sim.systems.switch.params import SwitchRun, parse_switch
from sim.systems.switch.run import run_switch
from sim.toolchain import build_root

__all__ = ["PRESETS", "clean"]

PRESETS = ("sw20", "sw40", "sw72")
_SLOTS = 1_000
_BAD = ("lost", "duplicated", "reordered", "corrupted", "misdelivered", "protocol_errors", "parity_errors")


def clean(name: str) -> bool:
    """Run the switch under uniform traffic of units of 1 to 4 flits, with refused flits; prints a line."""
    settings = ["traffic=uniform", "packet_flits=1..4", "load=0.8", "flit_error_rate=0.001", "warmup_slots=200"]
    folder = build_root() / "runs" / f"preset-{name}"
    asked = SwitchRun(params=parse_switch([*settings, f"slots={_SLOTS}"]), config=name, seed=1, out=folder)
    r = run_switch(asked, Console(stderr=True))
    bad = {key: r[key] for key in _BAD if r[key]}
    good = r["match"] and r["end"] == "done" and not bad and r["units_delivered"] == r["units_sent"] > 0
    verdict = "MATCH" if good else f"{r['end']} {bad}"
    print(
        f"{name}: {verdict}, {r['units_delivered']:,} of {r['units_sent']:,} units, "
        f"throughput {r['throughput']:.3f}, {r['cycles_per_second']:,} cycles/s, {r['total_seconds']:.0f} s in all",
        flush=True,
    )
    return good


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="SWITCH")
    parser.add_argument("--run", action="store_true")
    given = parser.parse_args()
    names = given.names or PRESETS
    for name in names:
        if name not in SWITCHES:
            parser.error(f"there is no switch {name!r}; there are {', '.join(SWITCHES)}")
    if given.run:
        return 0 if all([clean(name) for name in names]) else 1
    for name in names:
        done = lint("switch", SWITCHES[name])
        seconds = f"converted in {done.convert_seconds:.0f} s, linted in {done.lint_seconds:.0f} s"
        print(f"{name}: {done.megabytes} MB, {seconds}{', before' if done.cached else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
