"""An area on the terminal: units, branches, RAM macros; every column sums to the total."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sim.run.variant import described

__all__ = ["render", "show"]

_ROWS = 24
"""Units that have a line; the others share one."""
_COLUMNS = ("number", "GE each", "GE", "share", "flip-flops", "RAM bits", "levels", "of", "ps")
_WIDE = 116
"""Characters of all columns; where there are fewer, _SPARED are left out."""
_SPARED = ("GE each", "share", "ps")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value else "-"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    for n, name in enumerate(columns):
        table.add_column(name, justify="right" if n else "left", overflow="fold", no_wrap=bool(n))
    return table


def _sum(rows: Sequence[Mapping[str, Any]], key: str) -> float:
    return sum(row[key] for row in rows)


def _units(report: Mapping[str, Any], every: bool, width: int) -> Table:
    shown = [name for name in _COLUMNS if width >= _WIDE or name not in _SPARED]
    table = _table("unit", *shown)
    rows: Sequence[Mapping[str, Any]] = report["units"]
    told = rows if every or len(rows) <= _ROWS + 1 else rows[:_ROWS]
    whole = report["total"]["area_ge"]

    def share(area: float) -> str:
        return f"{100 * area / whole:.1f} %" if whole else "-"

    def line(name: str, cells: Mapping[str, str | Text], style: str = "") -> None:
        table.add_row(name, *(cells.get(column, "") for column in shown), style=style)

    for row in told:
        sums = _sums([row], share)
        each = {"GE each": _number(row["area_ge"]), "of": str(row["levels_allowed"]), "ps": f"{row['period_ps']:,.0f}"}
        levels = Text(str(row["levels"]), "bold red" if row["too_deep"] else "")
        line(row["name"], {**sums, **each, "number": _number(row["count"]), "levels": levels})
    left = rows[len(told) :]
    if left:
        sums = _sums(left, share)
        line(f"{len(left):,} others", {**sums, "number": _number(_sum(left, "count"))}, "bright_black")
    line("total", _sums(rows, share), "bold")
    return table


def _sums(rows: Sequence[Mapping[str, Any]], share: Callable[[float], str]) -> dict[str, str]:
    area = _sum(rows, "total_area_ge")
    counts = {"flip-flops": _sum(rows, "total_flip_flops"), "RAM bits": _sum(rows, "total_ram_bits")}
    return {"GE": _number(area), "share": share(area), **{name: _number(value) for name, value in counts.items()}}


def _branches(report: Mapping[str, Any]) -> Table:
    table = _table("part", "GE", "flip-flops", "RAM bits")
    for row in report["branches"]:
        table.add_row(row["name"], *(_number(row[key]) for key in ("area_ge", "flip_flops", "ram_bits")))
    return table


def _macros(report: Mapping[str, Any]) -> Table:
    table = _table("RAM macro", "number", "bits")
    for row in sorted(report["macros"], key=lambda row: -row["bits"]):
        shape = f"{row['depth']:,} x {row['width_bits']:,}, {row['reads']}r{row['writes']}w"
        table.add_row(shape, _number(row["count"]), _number(row["bits"]))
    return table


def render(report: Mapping[str, Any], width: int, *, every: bool = False) -> RenderableType:
    """All tables, of so many characters. `every`: a line for each unit, however many."""
    total = report["total"]
    config = described(report["config"], report["config_base"], report["config_changes"], None)
    title = Text(f"{report['top']} at {config}: ", "bold")
    title.append(f"{total['area_ge']:,.0f} gate equivalents, {total['flip_flops']:,} flip-flops, ")
    title.append(f"{total['ram_bits']:,} bits of RAM")
    parts: list[RenderableType] = [title, Text(), _units(report, every, width)]
    deep = [row["name"] for row in report["units"] if row["too_deep"]]
    about = f"levels: of logic between registers; of: what the period holds at {report['level_ps']:g} ps a level"
    parts.append(Text(about, "bright_black"))
    if deep:
        parts.append(Text(f"{len(deep)} of {len(report['units'])} units are too deep for their clock", "red"))
    if len(report["branches"]) > 1:
        parts += [Text(), _branches(report)]
    if report["macros"]:
        parts += [Text(), _macros(report)]
    return Group(*parts)


def show(report: Mapping[str, Any], console: Console, *, every: bool = False) -> None:
    """Print it; as wide as it must be where nobody looks at a terminal."""
    console.print(render(report, console.width, every=every), highlight=False)
