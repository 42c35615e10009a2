"""Goodput of saturated links of every width, by packet size: python -m verif.checks.link_goodput."""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from rtl.contract.link import CLASSES, FLIT_BYTES, FLIT_PAYLOAD_BYTES
from rtl.contract.link_config import LINKS
from sim.systems.link.run import LinkRun, parse_link, run_link
from sim.toolchain import build_root

__all__ = ["LEAST", "SIZES", "WIDTHS", "goodput", "main"]

WIDTHS = tuple(link.lanes for link in LINKS.values())
SIZES = (0, 8, 16, 32, 48, 64, 100, 128, 176, 200, 212, 256, 384, 448, 512)
LEAST = 0.99
"""Of the flits that a line can carry."""


def goodput(lanes: int, packet_bytes: int, *, classes: int = 1, responses: bool = False, flits: int = 2000) -> float:
    """Payload flits delivered per flit time, both ways together, of two ports that are offered packets without gaps.

    Errors: AssertionError if a packet was lost, doubled, reordered or damaged.
    """
    settings = [f"lanes={lanes}", f"packet_bytes={packet_bytes}", f"flits={flits}", f"responses={responses}".lower()]
    settings.append("weights=" + ":".join(["1"] * classes))
    out = build_root() / "runs" / "-".join(["goodput", *settings]).replace(":", "")
    r = run_link(LinkRun(params=parse_link(settings), seed=1, out=out), Console(quiet=True))
    assert r["match"] and r["end"] == "done", settings
    return r["goodput"] * FLIT_BYTES / FLIT_PAYLOAD_BYTES


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table of docs/framing.md; exit code 1 if a point is below LEAST."""
    parser = argparse.ArgumentParser(prog="verif.checks.link_goodput", description="Goodput by width and packet size.")
    parser.add_argument("--flits", type=int, default=2000, help="flit times a point")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="bytes of payload")
    parser.add_argument("--lanes", type=int, nargs="+", default=list(WIDTHS))
    options = parser.parse_args(arguments)
    low: list[str] = []
    head = [f"x{w}" for w in options.lanes]
    print("| payload | " + " | ".join([*head, *(f"{h}, {CLASSES} classes" for h in head)]) + " |")
    print("|---|" + "---|" * (2 * len(head)))
    for size in options.sizes:
        row: list[str] = []
        for classes in (1, CLASSES):
            for lanes in options.lanes:
                share = goodput(lanes, size, classes=classes, flits=options.flits)
                row.append(f"{share:.3f}")
                if share < LEAST:
                    low.append(f"x{lanes}, {size} bytes, {classes} classes: {share:.4f}")
        print(f"| {size} | " + " | ".join(row) + " |", flush=True)
    print("\n".join(low), file=sys.stderr)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
