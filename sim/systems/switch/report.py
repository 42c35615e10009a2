"""The report of a switch on the terminal: the verdict first, then rates."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.systems.quantiles import told_cycles

__all__ = ["show_switch"]


def _verdict(report: Mapping[str, Any]) -> Text:
    r = report
    ports = r["switch"]["ports"]
    what = f"switch {r['config']}, {ports} ports x{r['switch']['link']['lanes']}, {r['codec']} codec, seed {r['seed']}"
    sent = f"{r['units_delivered']:,} of {r['units_sent']:,} units"
    if r["match"] and r["end"] == "done":
        refused = f", {r['dropped']:,} refused" if r["dropped"] else " delivered once, in order, unchanged"
        return Text("MATCH", "bold green").append(f"  {what}: {sent}{refused}", "default")
    if r["match"] and r["end"] == "unresolved":
        return Text("UNRESOLVED", "bold yellow").append(f"  {what}: {sent} delivered, the others reported", "default")
    word = "MISMATCH" if r["end"] != "stuck" else "STUCK"
    bad = ", ".join(f"{r[k]:,} {k}" for k in ("lost", "duplicated", "reordered", "corrupted", "misdelivered"))
    return Text(word, "bold red").append(f"  {what}: {sent} delivered; {bad}", "default")


def _of_entitled(r: Mapping[str, Any]) -> str:
    return "" if r["jain_entitled"] is None else f"; of what sources are entitled to {r['jain_entitled']:.4f}"


def show_switch(report: Mapping[str, Any], console: Console) -> None:
    """Print it."""
    r = report
    console.print(_verdict(r))
    given = "  ".join(f"{k}={v}" for k, v in r["params"].items() if v is not None)
    console.print(Text(f"  {given}", "bright_black"))
    latency = [f"{name} {told_cycles(r['latency_cycles'][name])}" for name in ("p50", "p99", "max")]
    outputs = r["by_output"]
    rows = [
        ("time", f"{r['cycles']:,} link cycles = {r['nanoseconds']:,.0f} ns; {r['slots']:,} flit times measured"),
        ("throughput", f"{r['throughput']:.4f} flits a port a flit time, {r['offered']:.4f} offered"),
        ("outputs", f"{min(outputs):.4f} to {max(outputs):.4f}"),
        ("latency", f"{', '.join(latency)} link cycles"),
        (
            "fairness",
            f"Jain {r['jain']:.4f}; classes " + "  ".join(f"{s:.4f}" for s in r["class_share"]) + _of_entitled(r),
        ),
        (
            "dropped",
            f"{r['dropped']:,} units refused, {r['dropped_flits']:,} flits; {r['unsettled']:,} units unsettled",
        ),
        ("links", f"{r['refused_flits']:,} flits refused, {r['replays']:,} replays, {r['downs']} downs"),
    ]
    if r["others_kept"] is not None:
        rows.append(("dead port", f"the other outputs keep {r['others_kept']:.4f} of their rate"))
    rows.append(("speed", f"{r['cycles_per_second']:,} cycles/s ({r['wall_seconds']:.2f} s)"))
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in rows:
        table.add_row(Text(name, "bold"), text)
    console.print()
    console.print(table)
