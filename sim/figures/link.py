"""Figures of the link: goodput by error rate, recovery, speed. `python -m sim.figures.link` soaks it."""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from rtl.contract.link import FLIT_BYTES, FLIT_PAYLOAD_BYTES
from sim.figures.rows import Bench, Row
from sim.systems.link.run import LinkRun, parse_link, run_link
from sim.toolchain import ROOT, build_root

__all__ = ["link_figures", "main"]

PICTURE = ROOT / "docs" / "link-goodput.svg"
_RATES = (0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
_FULL = FLIT_PAYLOAD_BYTES / FLIT_BYTES


def _run(console: Console, settings: Sequence[str], seed: int = 1) -> dict[str, Any]:
    out = build_root() / "bench" / "-".join(["link", *settings]).replace(" ", "")
    return run_link(LinkRun(params=parse_link(settings), seed=seed, out=out), console)


def link_figures(bench: Bench) -> None:
    """The rows of `python -m sim.bench --only link`, and the picture of goodput against the error rate."""
    points: list[tuple[float, float, float]] = []
    for rate in _RATES:
        settings = [f"flit_error_rate={rate}", "flits=100000", "packet_bytes=448"]
        bench.say(f"running link {' '.join(settings)}")
        r = _run(bench.console, settings)
        points.append((rate, r["goodput"], r["goodput_predicted"]))
        near = abs(r["goodput"] / r["goodput_predicted"] - 1)
        bench.rows.append(
            Row(
                name=f"link-goodput-{rate}",
                what=f"link x8, flit error rate {rate:g}: distance of goodput from n / (n + E R)",
                value=near,
                unit="",
                target="<= 0.01",
                peer=f"goodput {r['goodput']:.4f}, {r['replays']} replays of {r['round_trip_flits']} flits, "
                f"{r['lost']} lost",
                match=r["match"],
            )
        )
        if rate == 0:
            bench.rows.append(
                Row(
                    name="link-goodput",
                    what="the same without errors: share of 236/256",
                    value=r["goodput"] / _FULL,
                    unit="",
                    target=">= 0.99",
                    peer=f"packets of 448 bytes: {r['packet_goodput']:.4f} of the raw rate",
                    match=r["match"],
                )
            )
    PICTURE.write_text(picture(points))
    for codec in ("structural", "native"):
        r = _run(bench.console, ["flits=50000", "packet_bytes=448", f"codec={codec}"])
        bench.rows.append(
            Row(
                name=f"link-speed-{codec}",
                what=f"simulation speed of two ports x8 with their lanes, {codec} codec",
                value=r["cycles_per_second"],
                unit=" cycles/s",
                target=">= 100,000" if codec == "structural" else "",
                match=r["match"],
            )
        )
    for spare in (2, 0):
        r = _run(bench.console, ["flits=6000", "kill_lane=3", "kill_at=1500", f"spare_lanes={spare}"])
        bench.rows.append(
            Row(
                name=f"link-recovery-{spare}",
                what=f"a lane dies, {spare} spare: flit times without a delivery",
                value=r["recovery_flits"],
                unit=" flits",
                target="<= 400",
                peer=f"then x{r['width']}; {r['lost']} lost",
                match=r["match"],
            )
        )


def picture(points: Sequence[tuple[float, float, float]]) -> str:
    """An SVG of (rate, goodput, predicted goodput); rates on a logarithmic axis, 0 at its left end."""
    left, top, wide, high = 60, 20, 520, 240
    low = -6.0

    def x(rate: float) -> float:
        return left + wide * ((math.log10(rate) if rate else low) - low) / (-1 - low)

    def y(goodput: float) -> float:
        return top + high * (1 - goodput)

    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 320" font-family="sans-serif" font-size="12">']
    lines.append('<rect width="620" height="320" fill="white"/>')
    for n in range(6):
        lines.append(f'<line x1="{left}" x2="{left + wide}" y1="{y(n / 5):.1f}" y2="{y(n / 5):.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 8}" y="{y(n / 5) + 4:.1f}" text-anchor="end">{n / 5:.1f}</text>')
    for n in range(-6, 0):
        text = "0" if n == -6 else f"1e{n}"
        lines.append(f'<text x="{x(10.0**n):.1f}" y="{top + high + 18}" text-anchor="middle">{text}</text>')
    path = " ".join(f"{x(rate):.1f},{y(predicted):.1f}" for rate, _, predicted in points)
    lines.append(f'<polyline points="{path}" fill="none" stroke="#888" stroke-dasharray="4 3"/>')
    lines += [f'<circle cx="{x(rate):.1f}" cy="{y(good):.1f}" r="4" fill="#2a7"/>' for rate, good, _ in points]
    lines.append(f'<text x="{left + wide / 2}" y="{top + high + 38}" text-anchor="middle">flit error rate</text>')
    lines.append(f'<text x="{left + 12}" y="{top + high - 12}">goodput (dots), n / (n + E R) (line), x8</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """`make soak`: 10^6 flit times at each rate. Exit code 1 if anything was lost, doubled, reordered or damaged."""
    parser = argparse.ArgumentParser(prog="sim.figures.link", description="Soak a link.")
    parser.add_argument("--flits", type=int, default=1_000_000, help="flit times a rate")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0, 3e-5, 1e-3, 1e-2])
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    good = True
    for n, rate in enumerate(options.rates):
        r = _run(console, [f"flits={options.flits}", f"flit_error_rate={rate}", "packet_bytes=448"], seed=100 + n)
        bad = {k: r[k] for k in ("lost", "duplicated", "reordered", "corrupted", "unresolved", "spurious_replays")}
        fine = r["match"] and r["end"] == "done" and not any(bad.values())
        good &= fine
        print(
            f"{'ok' if fine else 'WRONG'}  rate {rate:g}: {r['packets_delivered']:,} of {r['packets_sent']:,} packets, "
            f"{r['refused_flits']:,} flits refused, {r['replays']:,} replays, goodput {r['goodput']:.4f}, {bad}",
            flush=True,
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
