"""The report of several cores on the terminal: the verdict first, then a line for each core."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.run.variant import described

__all__ = ["show_cores"]


def _verdict(r: Mapping[str, Any]) -> Text:
    config = described(*(r[f"config{key}"] for key in ("", "_base", "_changes", "_file")))
    what = f"{r['workload']} of {len(r['cores'])} cores on {config}, {r['array']} array"
    if r["faults"]:
        text = Text(f"FAULT  {what}", "bold red")
        for fault in r["faults"]:
            text.append(f"\n  core {_place(fault['core'])}, {fault['told']}", "red")
        return text
    if r["end"] != "done":
        text = Text(f"{r['end'].upper()}  {what}: {r['end_message']}", "bold red")
        for core in r["cores"]:
            for name, progress in core["unfinished"].items():
                text.append(f"\n  core {_place(core['core'])}, {name}: {progress} completed", "red")
        return text
    if not r["match"]:
        first = r["mismatch"]
        told = r["not_compared"]
        if first:
            at = ", ".join(map(str, first["index"]))
            told = f"first: {first['tensor']}[{at}] is {first['got']}, {first['against']} is {first['expected']}"
        return Text(f"MISMATCH  {what}", "bold red").append(f"\n  {told}", "red")
    numpy = "outputs are NumPy's, " * r["outputs_of_numpy"]
    if r["match"] == "unchecked":
        return Text("UNCHECKED", "bold yellow").append(f"  {what}: {numpy}HBM was not compared", "default")
    numpy += "and " * bool(numpy)
    return Text("MATCH", "bold green").append(f"  {what}: {numpy}every byte of HBM is the golden machines'", "default")


def _place(core: list[int]) -> str:
    return ".".join(map(str, core))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _cores(r: Mapping[str, Any]) -> Table:
    engines = [name for name in r["cores"][0]["engines"] if any(core["engines"][name]["busy"] for core in r["cores"])]
    table = Table(
        title=f"{r['cycles']:,} cycles = {r['nanoseconds']:,.0f} ns",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )
    table.add_column("core")
    for column in ("cycles", "beats sent", "HBM read", "written", *(f"{name} busy" for name in engines)):
        table.add_column(column, justify="right")
    for core in r["cores"]:
        numbers = (core[key] for key in ("cycles", "sent_beats", "hbm_bytes_read", "hbm_bytes_written"))
        busy = (_share(core["engines"][name]["busy"], core["cycles"]) for name in engines)
        table.add_row(_place(core["core"]), *(f"{n:,}" for n in numbers), *busy)
    return table


def _facts(r: Mapping[str, Any]) -> Table:
    m = r["metrics"]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    if r["workload"] == "split_attention":
        errors = f"; errors up to {m['max_abs_error']:.1e}" if m.get("max_abs_error") is not None else ""
        share = f"{100 * m['tensor_utilization']:.1f} % of what all could do"
        table.add_row("arrays", f"{m['macs']:,} multiply-adds, {share}{errors}")
    rate = ""
    if "forwarded_bytes" in m:
        rate = (
            f"{m['forwarded_bytes']:,} forwarded in all; {m['bytes_per_cycle']:.2f} bytes a cycle, at most "
            f"{m['bound_bytes_per_cycle']:g} by {m['bound_by']}"
        )
    if r["workload"] == "forward":
        table.add_row("tiles", f"{m['tile_bytes']:,} bytes every {m['cycles_per_tile']:,.1f} cycles, {rate}")
    elif m.get("tiles_forwarded"):
        every = f", one every {m['cycles_per_tile']:,.1f} cycles" if m["cycles_per_tile"] else ""
        table.add_row(
            "tiles",
            f"{m['tiles_forwarded']:,}{every}, {rate}; the last one "
            f"{m['last_arrival_cycles']:,} cycles behind core 0's own, the end of the run {m['tail_cycles']:,}",
        )
    if r["workload"] == "remote":
        table.add_row(
            "copies",
            f"tiles of {m['tile_bytes']:,} bytes, {m['moved_bytes']:,} in all; "
            f"{m['bytes_per_cycle']:.2f} bytes a cycle one way, "
            f"at most {m['bound_bytes_per_cycle']:g} by {m['bound_by']}",
        )
    if r["workload"] == "ping_pong":
        table.add_row(
            "signal",
            f"{m['signal_cycles']:,.1f} cycles = {m['signal_nanoseconds']:,.1f} ns from semaphore to semaphore with "
            f"{r['params']['bytes']:,} bytes, {m['wire_cycles']:,} cycles of it on the wire",
        )
    table.add_row(
        "speed",
        f"{r['cycles_per_second']:,} cycles/s of all cores on {r['threads']} thread{'s' * (r['threads'] > 1)}, "
        f"{r['core_cycles_per_cpu_second']:,} core cycles a CPU second ({r['wall_seconds']:.2f} s)",
    )
    return table


def show_cores(report: Mapping[str, Any], console: Console) -> None:
    """Print it."""
    console.print(_verdict(report))
    given = "  ".join(f"{k}={v}" for k, v in report["params"].items() if v is not None)
    console.print(Text(f"  {given}", "bright_black"))
    for table in (_cores(report), _facts(report)):
        console.print()
        console.print(table)
