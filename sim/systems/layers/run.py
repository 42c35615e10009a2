"""All operations in order, those of one size once, and the report of all."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from firmware.models.operations import Operation
from firmware.views import KernelError
from sim.report.report_json import write_report
from sim.run.checking import match_of
from sim.run.variant import changes
from sim.systems.core import run as core_run
from sim.systems.layers.params import LayersRun
from sim.systems.layers.rows import RAN, added, run_operation
from sim.systems.layers.work import expected_cycles
from sim.toolchain import tool_versions

__all__ = ["run_layers"]

WEIGHT_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "mxfp8": 33 / 32, "mxfp4": 17 / 32}
"""Of a number with its share of the scale; other formats have weights as MXFP4 has."""


def _key(operation: Operation) -> str:
    return json.dumps([operation.workload, operation.params], sort_keys=True)


def run_layers(run: LayersRun, console: Console) -> dict[str, Any]:
    """Run what there is; the report, which is on disk too. Errors: KernelError if nothing of it can be run."""
    core_run.check_folder(run.folder)
    begin, cpu = time.monotonic(), time.process_time()
    different = {_key(one): one for one in reversed(run.rows)}  # the first of a size gives its name
    left = sum(expected_cycles(run.cfg, one) for one in different.values())
    every, done = left, 0.0
    rows: dict[str, dict[str, Any]] = {}
    ordered = list(dict.fromkeys(map(_key, run.rows)))
    for number, key in enumerate(ordered, 1):
        operation = different[key]
        rows[key] = run_operation(run, number, operation, console)
        done += expected_cycles(run.cfg, operation)
        _say(console, rows[key], f"{number} of {len(ordered)}", (time.monotonic() - begin) * (every - done) / done)
    found = [_row(operation, rows[_key(operation)]) for operation in run.rows]
    if all(row["status"] not in RAN for row in found):
        raise KernelError(f"nothing of {run.workload} can be run on {run.cfg.name}: {found[0]['sentence']}")
    report = _report(run, found)
    report["total_seconds"] = round(time.monotonic() - begin, 3)
    report["total_cpu_seconds"] = round(time.process_time() - cpu, 3)
    write_report(report, run.folder)
    return report


def _say(console: Console, row: Mapping[str, Any], where: str, seconds_left: float) -> None:
    """A line for a finished operation, where somebody watches."""
    if console.is_terminal:
        what = f"{row['cycles']:,} cycles" if "cycles" in row else row["status"].replace("_", " ")
        left = f"; about {seconds_left:,.0f} s left" if seconds_left >= 1 else ""
        console.print(f"{where}  {row['name']}: {what}{left}", style="bright_black", highlight=False)


def _row(operation: Operation, of_its_size: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an operation from that of the one that was run for its size."""
    row = dict(of_its_size) | {"name": operation.name, "repeats": operation.repeats}
    if "cycles" in row:
        row["layer_cycles"] = row["cycles"] * operation.repeats
    return row


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(row[name] * row["repeats"] for row in rows)


def _engines(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Cycles of every engine over all rows; they sum to those of the report."""
    found: dict[str, Any] = {}
    for row in rows:
        for name, engine in row["engines"].items():
            whole = found.setdefault(name, {"busy": 0, "idle": 0, "stall": dict.fromkeys(engine["stall"], 0)})
            for key in ("busy", "idle"):
                whole[key] += engine[key] * row["repeats"]
            for cause, count in engine["stall"].items():
                whole["stall"][cause] += count * row["repeats"]
    return found


def _events(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of all rows, each as often as the layer does it."""
    found: dict[str, Any] = {}
    for row in rows:
        for group, counts in row["events"].items():
            if isinstance(counts, Mapping):
                whole = found.setdefault(group, {})
                for name, count in counts.items():
                    whole[name] = whole.get(name, 0) + count * row["repeats"]
            else:
                found[group] = found.get(group, 0) + counts * row["repeats"]
    return found


def _report(run: LayersRun, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Keys as those of a core's report, of all rows that ran, each as often as the layer does it."""
    ran = [row for row in rows if row["status"] in RAN]
    cycles, wall = _sum(ran, "cycles"), sum(row["wall_seconds"] for row in _once(ran))
    simulated = sum(row["simulated_cycles"] for row in _once(ran))
    needed = sum(row["macs"] * row["repeats"] / row["peak_macs_a_cycle"] for row in ran)
    bounds: dict[str, int] = {}
    for row in ran:
        bounds[row["bound_by"]] = bounds.get(row["bound_by"], 0) + row["bound_cycles"] * row["repeats"]
    moved = _sum(ran, "hbm_bytes_read") + _sum(ran, "hbm_bytes_written")
    window = _sum(ran, "tensor_window_cycles")
    base, changed = changes(run.cfg)
    good = all(row["status"] == "ok" for row in ran)
    faults = [row["name"] for row in ran if row["status"] == "fault"]
    weights = sum(_weight_bytes(one) for one in run.rows)
    return {
        "workload": run.workload,
        "params": dict(run.params),
        "config": run.cfg.name,
        "config_hash": run.cfg.hash,
        "config_file": run.file,
        "config_base": base,
        "config_changes": changed,
        "config_resolved": run.cfg.as_dict(),
        "array": run.array,
        "fast": run.fast,
        "seed": run.seed,
        "tool_versions": tool_versions(),
        "match": match_of(run.check, good),
        "sampled": added([row["sampled"] for row in _once(ran)]),
        "end": "fault" if faults else "done",
        "end_message": f"faults in {', '.join(faults)}" if faults else "every operation ended",
        "faults": faults,
        "cycles": cycles,
        "nanoseconds": round(cycles * 1000 / run.cfg.tensor.clock_mhz, 3),
        "wall_seconds": round(wall, 6),
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in _once(ran)), 6),
        "cpu_parts": added([row["cpu_parts"] for row in _once(ran)]) or {},
        "simulated_cycles": simulated,
        "cycles_per_second": round(simulated / wall) if wall else 0,
        "macs": _sum(ran, "macs"),
        "tensor_utilization": round(needed / cycles, 6) if cycles else 0.0,
        "tensor_window_cycles": window,
        "tensor_window_utilization": round(needed / window, 6) if window else 0.0,
        "engines": _engines(ran),
        "events": _events(ran),
        "bound_cycles": sum(bounds.values()),
        "bound_by": max(bounds, key=lambda name: bounds[name]) if bounds else "",
        "bounds": bounds,
        "hbm_bytes_read": _sum(ran, "hbm_bytes_read"),
        "hbm_bytes_written": _sum(ran, "hbm_bytes_written"),
        "hbm_utilization": round(moved / (run.cfg.hbm.bytes_per_cycle * cycles), 6) if cycles else 0.0,
        "weight_bytes": weights,
        "left_out": [row["name"] for row in rows if row["status"] not in RAN],
        "scaled_rows": sum(row["scaled"] is not None for row in ran),
        "notes": _notes(run, rows, weights),
        "metrics": _rates(run, cycles) if len(ran) == len(rows) else {},
        "operations": rows,
    }


def _rates(run: LayersRun, cycles: int) -> dict[str, Any]:
    """What a core does in a second if every layer of the model is like this one: texts' tokens, or images."""
    if run.model_layers is None or not cycles:
        return {}
    seconds = cycles / (run.cfg.tensor.clock_mhz * 1e6) * run.model_layers
    batch, tokens = run.params["batch"], run.params["tokens"]
    if tokens is None:
        return {"images_a_second": round(batch / seconds, 3)}
    return {"tokens_a_second": round(batch * (tokens if run.params["phase"] == "prefill" else 1) / seconds, 3)}


def _once(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row of each size: what ran."""
    return list({row["command"]: row for row in reversed(rows)}.values())


def _weight_bytes(operation: Operation) -> int:
    return round(operation.weights * WEIGHT_BYTES.get(str(operation.params.get("dtype")), WEIGHT_BYTES["mxfp4"]))


def _notes(run: LayersRun, rows: list[dict[str, Any]], weights: int) -> list[str]:
    notes = ["each operation is a program of its own: operands come from HBM, and results go there"]
    if any(row["repeats"] > 1 for row in rows):
        notes.append("what a layer does several times was run once and counts as often")
    if run.params["dtype"] not in ("bf16", "fp16", "fp32", "tf32"):
        notes.append(f"the host quantises the operands of products to {run.params['dtype']}; no row has that in it")
    if weights > run.cfg.hbm.capacity_mib << 20:
        notes.append(
            f"the weights of all rows are {weights:,} bytes, more than the {run.cfg.hbm.capacity_mib << 20:,} of this "
            "core's HBM: each operation fits, the layer needs several cores"
        )
    return notes
