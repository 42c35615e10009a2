"""A report on the terminal: the verdict first, then where every engine's cycles went."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sim.report.programs import lines_of
from sim.run.variant import described

__all__ = ["PRINTED_LINES", "render", "show"]

BAR_CELLS = 20
TEXT_CELLS = 64  # of a parameter; report.json has all of it
PRINTED_LINES = 40  # of programs; report.json has all
ADVICE = 3  # the first ones; report.json has all
_HARD_SPACE = "\u00a0"  # a cause and its share stay on one line
_STALL_STYLES = ("yellow", "dark_orange", "red", "magenta", "blue", "cyan", "bright_black")


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _bar(engine: Mapping[str, Any], cycles: int) -> Text:
    """Busy, stalls in the order of their causes, then idle, in proportion; nothing that is there vanishes."""
    causes = list(engine["stall"].items())
    parts = [("█", "green", engine["busy"])]
    parts += [("▒", _STALL_STYLES[i % len(_STALL_STYLES)], n) for i, (_, n) in enumerate(causes)]
    bar = Text()
    used = 0
    for glyph, style, count in parts:
        cells = max(1, round(BAR_CELLS * count / cycles)) if count and cycles else 0
        cells = min(cells, BAR_CELLS - used)
        bar.append(glyph * cells, style)
        used += cells
    return bar.append("·" * (BAR_CELLS - used), "bright_black")


def _stalls(engine: Mapping[str, Any], cycles: int) -> Text:
    """The causes that took a hundredth of the cycles or more, longest first; what is left as "other"."""
    styles = dict(zip(engine["stall"], _STALL_STYLES, strict=False))
    text = Text()
    other = 0
    for name, count in sorted(engine["stall"].items(), key=lambda cause: -cause[1]):
        if 100 * count < cycles:
            other += count
            continue
        share = _percent(count, cycles).replace(" ", _HARD_SPACE)
        text.append(f"{name}{_HARD_SPACE}", styles.get(name, "")).append(f"{share}  ")
    if other:
        text.append(f"other{_HARD_SPACE}{_percent(other, cycles).replace(' ', _HARD_SPACE)}", "bright_black")
    return text


def _verdict(report: Mapping[str, Any]) -> Text:
    config = described(*(report[f"config{key}"] for key in ("", "_base", "_changes", "_file")))
    what = f"{report['workload']} on {config}, {report['array']} array{', --fast' if report['fast'] else ''}"
    if report["faults"]:
        text = Text(f"FAULT  {what}", "bold red")
        for f in report["faults"]:
            cause = f["cause"].replace("_", " ")
            where = f.get("told") or f"address {f['address']:#x}"
            text.append(f"\n  {f['queue']}, item {f['sequence']}: {cause}, {where}", "red")
            if f.get("source"):
                text.append(f"  ({f['source']})", "red")
        return text
    if report["end"] != "done":
        text = Text(f"{report['end'].upper()}  {what}: {report['end_message']}", "bold red")
        for name, progress in report["unfinished"].items():
            text.append(f"\n  {name}: {progress} completed", "red")
        if report["not_compared"]:
            text.append(f"\n  {report['not_compared']}", "red")
        return text
    if report["match"] == "unchecked":
        return Text("UNCHECKED", "bold yellow").append(f"  {what}: it ended, and no bit was compared", "default")
    if report["match"] == "sampled":
        part = report["sampled"]
        return Text("SAMPLED", "bold green").append(
            f"  {what}: every bit of {part['tiles']} result tile{'s' * (part['tiles'] != 1)} equals the golden "
            f"machine's, {part['elements']:,} of {part['of_elements']:,} elements",
            "default",
        )
    if report["match"]:
        operator = report["metrics"].get("operator")
        too = f", and is what NumPy says of {operator}" if operator else ""
        return Text("MATCH", "bold green").append(f"  {what}: every bit equals the golden machine's{too}", "default")
    first = report["mismatch"]
    if first is None:
        return Text(f"MISMATCH  {what}", "bold red").append(f"\n  {report['not_compared']}", "red")
    index = ", ".join(map(str, first["index"]))
    return Text(f"MISMATCH  {what}", "bold red").append(
        f"\n  first: {first['tensor']}[{index}] is {first['got']}, expected {first['expected']}; "
        f"{first['count']:,} elements of {first['tensor']} differ",
        "red",
    )


def _engines(report: Mapping[str, Any]) -> Table:
    cycles = report["cycles"]
    table = Table(
        title=f"{cycles:,} cycles = {report['nanoseconds']:,.0f} ns",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )
    table.add_column("engine")
    table.add_column("busy", justify="right")
    table.add_column("idle", justify="right")
    table.add_column("where the cycles went", min_width=BAR_CELLS, no_wrap=True)
    table.add_column("stalled for", overflow="fold")
    for name, engine in report["engines"].items():
        table.add_row(
            name,
            _percent(engine["busy"], cycles),
            _percent(engine["idle"], cycles),
            _bar(engine, cycles),
            _stalls(engine, cycles),
        )
    return table


def _gpsimd(report: Mapping[str, Any]) -> list[RenderableType]:
    """What programs of the GPSIMD cores printed, and where their cycles went; nothing of a run without any."""
    parts: list[RenderableType] = []
    if lines := lines_of(report["printed"]):
        hidden = len(lines) - PRINTED_LINES
        shown = lines if hidden <= 0 else [*lines[:PRINTED_LINES], f"and {hidden:,} lines more in report.json"]
        parts += [Text(), Text("\n".join(shown))]
    if cores := report["gpsimd_cores"]:
        table = Table(title="GPSIMD cores, of their own cycles", title_justify="left", box=None, pad_edge=False)
        table.add_column("core")
        for column in ("instructions", "busy", "idle"):
            table.add_column(column, justify="right")
        table.add_column("stalled for", overflow="fold")
        for number, core in enumerate(cores):
            cycles = core["busy"] + core["idle"] + sum(core["stall"].values())
            table.add_row(
                f"gp{number}",
                f"{core['instructions']:,}",
                _percent(core["busy"], cycles),
                _percent(core["idle"], cycles),
                _stalls(core, cycles),
            )
        parts += [Text(), table]
    return parts


def _classes(report: Mapping[str, Any]) -> list[RenderableType]:
    """Traffic classes of the DMA, if a run had several."""
    rows = report["dma_classes"]
    if len(rows) < 2:
        return []
    title = f"classes of the DMA, {rows[0]['contested_cycles']:,} cycles beside each other"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("class")
    for column in ("bytes", "a cycle", "share", "entitled", "latency from", "median", "to"):
        table.add_column(column, justify="right")
    for row in rows:
        latency = row["latency_cycles"]
        table.add_row(
            str(row["class"]),
            f"{row['bytes']:,}",
            f"{row['bytes_per_cycle']:.2f}",
            _percent(row["share"], 1),
            _percent(row["entitled"], 1),
            *(f"{latency[name]:,}" for name in ("least", "median", "most")),
        )
    return [Text(), table]


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= TEXT_CELLS else f"{text[: TEXT_CELLS - 3]}..."


def _bounding(report: Mapping[str, Any]) -> str:
    """Which engine bounds the run, how much, and what it waits for most."""
    engine, share = report["bounding_engine"], _percent(report["bounding_share"], 1)
    if engine == "latency":
        text = f"nothing is busy half of the time; the busiest is {report['busiest_engine']}, {share}"
    else:
        text = f"{engine} bounds this run, {share} busy"
    if report["bounding_stall"]:
        stall = report["bounding_stall"].replace("_", " ")
        text += f", stalled most for {stall}, {_percent(report['bounding_stall_share'], 1)}"
    return f"{text}."


def _advice(advice: Mapping[str, Any]) -> str:
    """A sentence, with what to type for it if it is a change of the configuration."""
    settings = " ".join(f"--set {setting}" for setting in advice["set"])
    return f"{advice['text']} As with {settings}." if settings else advice["text"]


def _parts(engine: Mapping[str, Any], cycles: int) -> str:
    """Opcodes that took a twentieth of the cycles or more, of busy and of waiting for a unit."""
    told: list[str] = []
    for state, parts in engine["parts"].items():
        words = [f"{n.replace('_', ' ')} {_percent(c, cycles)}" for n, c in parts.items() if 20 * c > cycles]
        if words:
            told.append(f"{'busy with' if state == 'busy' else 'waits for a unit in'} {', '.join(words)}")
    return "; ".join(told)


def _facts(report: Mapping[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    cycles, bound = report["cycles"], report["bound_cycles"]
    if bound:
        table.add_row(
            "bound",
            f"{bound:,} cycles by {report['bound_by'].replace('_', ' ')}; this run took {cycles / bound:.2f} x",
        )
    if report["macs"]:
        table.add_row(
            "tensor",
            f"{report['macs']:,} multiply-adds, utilization {_percent(report['tensor_utilization'], 1)}; "
            f"in its window of {report['tensor_window_cycles']:,} cycles "
            f"{_percent(report['tensor_window_utilization'], 1)}",
        )
    for name in ("vector", "scalar"):
        if report[f"{name}_window_cycles"]:
            table.add_row(
                name,
                f"busy {_percent(report[f'{name}_window_utilization'], 1)} of its window of "
                f"{report[f'{name}_window_cycles']:,} cycles",
            )
    table.add_row(
        "hbm",
        f"{report['hbm_bytes_read']:,} bytes read, {report['hbm_bytes_written']:,} written, "
        f"utilization {_percent(report['hbm_utilization'], 1)}",
    )
    table.add_row("speed", f"{report['cycles_per_second']:,} cycles/s ({report['wall_seconds']:.2f} s)")
    conflicts = [
        f"{name} {port.replace('_', ' ')} {count:,}"
        for name, engine in report["engines"].items()
        for port, count in engine["conflicts"].items()
        if count
    ]
    if conflicts:
        table.add_row("conflicts", f"refused cycles: {', '.join(conflicts)}")
    for name, engine in report["engines"].items():
        if parts := _parts(engine, cycles):
            table.add_row(name, parts)
    table.add_row("bounded by", _bounding(report))
    for n, advice in enumerate(report["advice"][:ADVICE]):
        table.add_row("relief" if n == 0 else "", _advice(advice))
    if not report["advice"]:
        table.add_row("relief", report["relief"])
    for name, value in report["metrics"].items():
        table.add_row(name.replace("_", " "), _value(value))
    for note in report["notes"]:
        table.add_row("note", note)
    return table


def render(report: Mapping[str, Any]) -> RenderableType:
    """The report as one rich renderable. Parameters that nobody set are left out, long texts cut."""
    params = "  ".join(f"{k}={_cut(v)}" for k, v in report["params"].items() if v is not None)
    parts: list[RenderableType] = [_verdict(report)]
    if params:
        parts.append(Text(f"  {params}", "bright_black"))
    parts += [Text(), _engines(report), *_gpsimd(report), *_classes(report), Text(), _facts(report)]
    return Group(*parts)


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print the report."""
    console.print(render(report))
