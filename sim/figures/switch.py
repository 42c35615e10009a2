"""Figures of the switch: throughput, fairness, latency, speed. `python -m sim.figures.switch` draws latency by load."""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from sim.figures.rows import Bench, Row
from sim.systems.switch.params import SwitchRun, parse_switch
from sim.systems.switch.run import run_switch
from sim.toolchain import ROOT, build_root

__all__ = ["main", "picture", "switch_figures"]

PICTURE = ROOT / "docs" / "switch-latency.svg"
_LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
_SEEDS = (1, 2, 3)
_TARGETS = {"uniform": ">= 0.97", "diagonal": ">= 0.95", "unbalanced": ">= 0.95", "permutation": ">= 1.0"}
_PEERS = {"uniform": "BookSim2 with iSLIP-1: 0.65"}
_IDLE = {8: "<= 13", 2: "", 16: ""}
_SPEED = {"native": ">= 20,000", "structural": ">= 5,000"}


def _run(console: Console, settings: Sequence[str], seed: int = 1, config: str = "sw16") -> dict[str, Any]:
    console.print(f"running switch {config} {' '.join(settings)} seed {seed}", style="bright_black", highlight=False)
    out = build_root() / "bench" / "-".join(["switch", config, *settings, str(seed)]).replace(" ", "").replace("/", "_")
    return run_switch(SwitchRun(params=parse_switch(settings), config=config, seed=seed, out=out), console)


def switch_figures(bench: Bench) -> None:
    """The rows of `python -m sim.bench --only switch`, and the picture of latency against load."""
    _throughput(bench)
    _fairness(bench)
    _latency(bench)
    _faults(bench)
    for codec, target in _SPEED.items():
        r = _run(bench.console, [f"codec={codec}", "load=0.9", "slots=5000", "warmup_slots=500"])
        what = f"simulation speed of 16 ports x8 with their endpoints, {codec} codec"
        bench.rows.append(_row(r, f"switch-speed-{codec}", what, r["cycles_per_second"], " cycles/s", target))
    PICTURE.write_text(_measured(bench.console))


def _row(r: dict[str, Any], name: str, what: str, value: float, unit: str, target: str, peer: str = "") -> Row:
    match = r["match"] and r["end"] != "stuck"
    return Row(name=name, what=what, value=value, unit=unit, target=target, peer=peer, match=match)


def _throughput(bench: Bench) -> None:
    for flits in (1, 2, 4):
        for traffic, target in _TARGETS.items():
            runs = [_run(bench.console, [f"traffic={traffic}", f"packet_flits={flits}"], seed) for seed in _SEEDS]
            worst = min(runs, key=lambda r: r["throughput"])
            bench.rows.append(
                _row(
                    next((r for r in runs if not r["match"]), worst),
                    f"switch-{traffic}-{flits}",
                    f"16 ports, load 1.0, {traffic}, units of {flits}: throughput, least of {len(runs)} seeds",
                    worst["throughput"],
                    "",
                    target if flits == 1 else "",
                    _PEERS.get(traffic, "") if flits == 1 else "",
                )
            )


def _fairness(bench: Bench) -> None:
    for senders in (2, 3, 16):
        runs = [_run(bench.console, ["traffic=hotspot", f"senders={senders}"], seed) for seed in _SEEDS]
        worst = min(runs, key=lambda r: r["jain"])
        what = f"{senders} senders to one output: Jain's index, least of {len(runs)} seeds"
        bench.rows.append(_row(worst, f"switch-jain-{senders}", what, worst["jain"], "", ">= 0.99"))
    for inputs in ("same", "different", "mixed"):
        r = _run(bench.console, ["traffic=hotspot", "weights=3:1", f"class_inputs={inputs}", "slots=10000"])
        off = abs(r["class_share"][0] - 0.75) / 0.75
        what = f"classes 3 to 1 from {inputs} inputs: how far a share is off"
        bench.rows.append(_row(r, f"switch-shares-{inputs}", what, off, "", "<= 0.02"))


def _latency(bench: Bench) -> None:
    for lanes, target in _IDLE.items():
        r = _run(bench.console, ["traffic=probe", f"lanes={lanes}", "warmup_slots=100"])
        idle = r["latency_cycles"]
        phases = ", ".join(str(phase["p50"]) for phase in r["latency_by_phase"])
        peer = f"{idle['units']} units; p50 by the cycle of a flit time: {phases}"
        what = f"idle latency x{lanes}, p50"
        bench.rows.append(_row(r, f"switch-idle-x{lanes}", what, idle["p50"], " cycles", target, peer))
        most = "<= 17" if lanes == 8 else ""
        what = f"idle latency x{lanes}, max over all phases"
        bench.rows.append(_row(r, f"switch-idle-max-x{lanes}", what, idle["max"], " cycles", most))


def _faults(bench: Bench) -> None:
    r = _run(bench.console, ["dead_port=5", "load=0.9", "slots=40000"])
    what = "an output dies under uniform load 0.9: rate that the others keep"
    bench.rows.append(_row(r, "switch-dead-output", what, r["others_kept"], "", ">= 0.99", f"{r['dropped']:,} refused"))
    r = _run(bench.console, ["flit_error_rate=0.001", "restarts=12", "load=0.8", "slots=80000", "packet_flits=1..4"])
    bad = sum(r[name] for name in ("lost", "duplicated", "reordered", "corrupted", "misdelivered"))
    what = (
        f"lost, doubled, reordered, damaged or misdelivered of {r['flits_delivered']:,} flits, with faults and restarts"
    )
    bench.rows.append(_row(r, "switch-faults", what, bad, "", "<= 0", f"{r['downs']} sessions ended"))


Point = tuple[float, float, int, int]  # load, throughput, p50 and p99 in link cycles


def _measured(console: Console) -> str:
    curves: dict[str, list[Point]] = {}
    for traffic in ("uniform", "diagonal", "unbalanced"):
        curves[traffic] = []
        for load in _LOADS:
            r = _run(console, [f"traffic={traffic}", f"load={load}", "slots=8000", "warmup_slots=2000"])
            wait = r["latency_cycles"]
            curves[traffic].append((load, r["throughput"], wait["p50"], wait["p99"]))
    return picture(curves)


_COLOURS = ("#2a7", "#27a", "#a42")


def picture(curves: dict[str, list[Point]]) -> str:
    """An SVG of latency in link cycles (logarithmic) against load: p50 with dots, p99 dashed."""
    left, top, wide, high = 60, 20, 520, 260
    most = math.ceil(max(math.log10(p99) for curve in curves.values() for _, _, _, p99 in curve if p99))

    def x(load: float) -> float:
        return left + wide * load

    def y(cycles: float) -> float:
        return top + high * (1 - math.log10(max(1, cycles)) / most)

    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 350" font-family="sans-serif" font-size="12">']
    lines.append('<rect width="620" height="350" fill="white"/>')
    for n in range(most + 1):
        at = y(10**n)
        lines.append(f'<line x1="{left}" x2="{left + wide}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10**n}</text>')
    for n in range(6):
        lines.append(f'<text x="{x(n / 5):.1f}" y="{top + high + 18}" text-anchor="middle">{n / 5:.1f}</text>')
    for n, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[n % len(_COLOURS)]
        for column, dash in ((2, ""), (3, ' stroke-dasharray="4 3"')):
            path = " ".join(f"{x(point[0]):.1f},{y(point[column]):.1f}" for point in curve)
            lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}"{dash}/>')
        lines += [f'<circle cx="{x(p[0]):.1f}" cy="{y(p[2]):.1f}" r="3" fill="{colour}"/>' for p in curve]
        lines.append(f'<text x="{left + 14}" y="{top + 18 + 16 * n}" fill="{colour}">{name}</text>')
    middle = left + wide / 2
    lines.append(f'<text x="{middle}" y="{top + high + 38}" text-anchor="middle">load, flits a port a flit time</text>')
    lines.append(
        f'<text x="{left}" y="{top + high + 58}">link cycles through 16 ports x8: p50 (dots), p99 (dashed)</text>'
    )
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the picture, or with --soak send 10^6 flits with faults and restarts. Exit code 1 if one went wrong."""
    parser = argparse.ArgumentParser(prog="sim.figures.switch", description="Measure a switch.")
    parser.add_argument("--soak", action="store_true", help="10^6 flits a run with errors on every wire, and restarts")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(_SEEDS))
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    if not options.soak:
        PICTURE.write_text(_measured(console))
        print(PICTURE)
        return 0
    good = True
    for seed in options.seeds:
        settings = ["flit_error_rate=0.001", "restarts=12", "load=0.8", "slots=80000", "packet_flits=1..4"]
        r = _run(console, [*settings, "weights=3:1", "responses=0.2"], seed)
        bad = {k: r[k] for k in ("lost", "duplicated", "reordered", "corrupted", "misdelivered", "protocol_errors")}
        fine = r["match"] and r["end"] != "stuck"
        good &= fine
        print(
            f"{'ok' if fine else 'WRONG'}  seed {seed}: {r['flits_delivered']:,} flits, {r['refused_flits']:,} refused "
            f"on wires, {r['downs']} sessions ended, {r['dropped']:,} units refused, {bad}",
            flush=True,
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
