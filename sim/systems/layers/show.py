"""The report of a layer on the terminal: the verdict, a row an operation, the sum."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.run.variant import described

__all__ = ["show_layers"]


def show_layers(report: Mapping[str, Any], console: Console) -> None:
    """Print it."""
    console.print(_verdict(report))
    params = "  ".join(f"{k}={v}" for k, v in report["params"].items() if v is not None)
    console.print(Text(f"  {params}\n", "bright_black"))
    console.print(_table(report))
    for row in report["operations"]:
        if row["sentence"]:
            console.print(Text(f"{row['name']}: {row['sentence']}", "yellow"))
    simulated, seconds = report["simulated_cycles"], report["wall_seconds"]
    console.print(f"{simulated:,} cycles simulated in {seconds:,.1f} s", style="bright_black", highlight=False)
    for name, value in report["metrics"].items():
        what = name.replace("_a_", " a ")
        console.print(f"{value:,.1f} {what}, if every layer of the model is like this one", highlight=False)
    for note in report["notes"]:
        console.print(Text(f"note: {note}", "bright_black"))


def _verdict(report: Mapping[str, Any]) -> Text:
    config = described(*(report[f"config{key}"] for key in ("", "_base", "_changes", "_file")))
    what = f"{report['workload']} on {config}, {report['array']} array{', --fast' if report['fast'] else ''}"
    if report["faults"]:
        return Text("FAULT", "bold red").append(f"  {what}: {report['end_message']}", "default")
    if report["match"] == "unchecked":
        return Text("UNCHECKED", "bold yellow").append(f"  {what}: all ended, and no bit was compared", "default")
    if report["match"] == "sampled":
        return Text("SAMPLED", "bold green").append(
            f"  {what}: every bit of {report['sampled']['tiles']} result tiles equals the golden machine's", "default"
        )
    if not report["match"]:
        wrong = ", ".join(row["name"] for row in report["operations"] if row["status"] == "mismatch")
        return Text("MISMATCH", "bold red").append(f"  {what}: in {wrong}", "default")
    return Text("MATCH", "bold green").append(
        f"  {what}: every bit that was run equals the golden machine's", "default"
    )


def _table(report: Mapping[str, Any]) -> Table:
    table = Table(
        title=f"{report['cycles']:,} cycles = {report['nanoseconds']:,.0f} ns",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )
    table.add_column("operation", no_wrap=True)
    for name in ("cycles", "share", "x bound"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    for name in ("MFU", "HBM"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for row in report["operations"]:
        table.add_row(*_cells(row, report["cycles"]))
    bound = report["bound_cycles"]
    table.add_row(
        "all",
        f"{report['cycles']:,}",
        "100 %",
        f"{report['cycles'] / bound:.2f}" if bound else "-",
        report["bound_by"].replace("_", " "),
        _percent(report["tensor_utilization"]),
        _percent(report["hbm_utilization"]),
        style="bold",
    )
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _cells(row: Mapping[str, Any], whole: int) -> list[str]:
    name = row["name"] if row["repeats"] == 1 else f"{row['name']} x{row['repeats']}"
    if "cycles" not in row:
        return [name, *"------", row["status"].replace("_", " ")]
    how = "" if row["status"] == "ok" else row["status"]
    if row["scaled"]:
        how = f"scaled, {100 * row['scaled']['deviation']:.2f} % off"
    return [
        name,
        f"{row['layer_cycles']:,}",
        _percent(row["layer_cycles"] / whole),
        f"{row['cycles'] / row['bound_cycles']:.2f}" if row["bound_cycles"] else "-",
        row["bound_by"].replace("_", " "),
        _percent(row["mfu"]) if row["macs"] else "-",
        _percent(row["hbm_utilization"]),
        how,
    ]
