"""A table of events, or the energy of a run, on the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sim.energy.energy_of import Energy, Index
from sim.energy.values import KINDS
from sim.run.variant import described

__all__ = ["show_run", "show_table"]


_SHOWN = 0.0005  # of a part's share, at most: what is less has no line


def _table(*columns: str, texts: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    for n, name in enumerate(columns):
        table.add_column(name, justify="left" if n < texts else "right", overflow="fold", no_wrap=n >= texts)
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value else "-"


def _events(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("event", "unit", "per", *KINDS, "flip-flops", "written", texts=3)
    for row in rows:
        counts = (*(row[kind] for kind in KINDS), row["registers"], row["registers_written"])
        table.add_row(row["event"], row["unit"], row["per"], *map(_number, counts))
    return table


def _registers(report: Mapping[str, Any]) -> Table:
    table = _table("clock", "flip-flops", "GE an edge pair")
    for name, about in report["registers"].items():
        table.add_row(name, _number(about["flip_flops"]), _number(2 * report["clock_ge"] * about["flip_flops"]))
    return table


def _rams(report: Mapping[str, Any]) -> Table:
    table = _table("RAM row", "bits", "macro bytes")
    for name, macros in report["rams"].items():
        for macro in macros:
            table.add_row(name, _number(macro["bits"]), _number(macro["macro_bytes"]))
    return table


def show_table(report: Mapping[str, Any], console: Console) -> None:
    """Events, clocks and RAM rows of a configuration."""
    config = described(report["config"], report["config_base"], report["config_changes"], None)
    title = Text(f"{config}: gate equivalents that switch, of an event, by kind of data", "bold")
    parts: list[RenderableType] = [
        title,
        Text(),
        _events(report["events"]),
        Text(),
        _registers(report),
        Text(),
        _rams(report),
    ]
    console.print(Group(*parts), highlight=False)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _index(index: Index, base: str) -> Text:
    text = Text("energy index ", "bold")
    text.append(f"{index.typical:.3f} ({index.low:.3f} to {index.high:.3f})", "bold")
    text.append(f" against {base}: the same assumptions in both, of all that are made the least and the most")
    return text


def show_run(
    report: Mapping[str, Any], energy: Energy, console: Console, *, index: Index | None, base: str = ""
) -> None:
    """Shares by part, and the index if there is a base."""
    config = described(
        report["config"],
        report.get("config_base", report["config"]),
        report["config_changes"],
        report.get("config_file"),
    )
    table = _table("part", "share", "low", "high")
    shares = sorted(energy.shares().items(), key=lambda item: -item[1][1])
    for part, (low, typical, high) in shares:
        if high >= _SHOWN:
            table.add_row(part, _percent(typical), _percent(low), _percent(high))
    parts: list[RenderableType] = [
        Text(f"{report['workload']} on {config}: where its energy goes", "bold"),
        Text(),
        table,
    ]
    if index is not None:
        parts += [Text(), _index(index, base)]
    console.print(Group(*parts), highlight=False)
