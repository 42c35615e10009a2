"""The report of a link on the terminal: the verdict first, then rates."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.systems.quantiles import told_cycles

__all__ = ["show_link"]

_LIMITS = {
    "line": "the line is the limit",
    "width": "at full width; lanes have left",
    "window": "the window is the limit ({window_flits} flits)",
    "credits": "credits are the limit ({shared_flits} shared places a kind)",
}


def _verdict(report: Mapping[str, Any]) -> Text:
    what = f"link {report['config']}, {report['codec']} codec, seed {report['seed']}"
    sent = f"{report['packets_delivered']:,} of {report['packets_sent']:,} packets"
    if report["match"] and report["end"] == "done":
        return Text("MATCH", "bold green").append(f"  {what}: {sent} delivered once, in order, unchanged", "default")
    if report["match"] and report["end"] == "unresolved":
        return Text("UNRESOLVED", "bold yellow").append(f"  {what}: {sent} delivered, the others reported", "default")
    word = "MISMATCH" if report["end"] != "stuck" else "STUCK"
    bad = ", ".join(f"{report[k]:,} {k}" for k in ("lost", "duplicated", "reordered", "corrupted"))
    return Text(word, "bold red").append(f"  {what}: {sent} delivered; {bad}", "default")


def _replays(r: Mapping[str, Any]) -> str:
    """Replays beside those that the error rate lets expect, which at low rates are few or none."""
    told = f"{r['replays']:,} replays of {r['replayed_flits']:,} flits in all"
    return told if r["replays_expected"] is None else f"{told}, {r['replays_expected']:,} replays expected"


def _latency(cycles: Mapping[str, int]) -> str:
    told = ", ".join(f"{name} {told_cycles(cycles[name])}" for name in ("p50", "p99", "max"))
    return f"{told} link cycles, from taken to delivered"


def _limit(r: Mapping[str, Any]) -> str:
    return _LIMITS[r["limited_by"]].format(**r["link"])


def show_link(report: Mapping[str, Any], console: Console) -> None:
    """Print it."""
    r = report
    console.print(_verdict(r))
    given = "  ".join(f"{k}={v}" for k, v in r["params"].items() if v is not None)
    console.print(Text(f"  {given}", "bright_black"))
    table = Table(box=None, show_header=False, pad_edge=False)
    rows = [
        ("time", f"{r['cycles']:,} link cycles = {r['nanoseconds']:,.0f} ns, {r['flit_times']:,} flit times"),
        ("goodput", f"{r['goodput']:.4f}, {r['goodput_predicted']:.4f} predicted; {_limit(r)}"),
        ("packet goodput", f"{r['packet_goodput']:.4f} payload of packets"),
        ("refused", f"{r['refused_flits']:,} flits, {r['malformed_flits']:,} malformed; {_replays(r)}"),
        ("round trip", f"{r['round_trip_flits']} flits; {r['recovery_flits']} at most without a delivery"),
        ("latency", _latency(r["latency_cycles"])),
        ("corrected", f"{r['corrections']:,} groups; {r['bursts']:,} bursts"),
        ("states", f"{r['retrains']} retrains, {r['downs']} downs, {r['unresolved']} flits unresolved"),
        ("classes", "  ".join(f"{s:.4f}" for s in r["class_shares"])),
        ("speed", f"{r['cycles_per_second']:,} cycles/s ({r['wall_seconds']:.2f} s)"),
    ]
    for name, text in rows:
        table.add_row(Text(name, "bold"), text)
    console.print()
    console.print(table)
