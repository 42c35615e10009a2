"""One operation: run whole, or three times smaller and scaled; its row of the report, whatever became of it."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from firmware.image import ImageError
from firmware.models.operations import Operation
from firmware.views import KernelError, MemoryFullError
from firmware.workloads import find_workload
from sim.report.verdict import passed
from sim.systems.core import run as core_run
from sim.systems.core.run import Run
from sim.systems.layers.axes import Axis, axis_of
from sim.systems.layers.params import LayersRun
from sim.systems.layers.scaled import DEVIATION_MAX, line_error, scaled_figures

__all__ = ["RAN", "added", "run_operation"]

RAN = ("ok", "mismatch", "fault")
"""Statuses of rows that have cycles."""


WHOLE_TIMES = 8
"""What is no line is run whole if that is at most so many times the last of its runs."""


def added(parts: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    """Sums by key of a part of several reports, to hundredths; None if none has it."""
    found = [part for part in parts if part]
    return {key: round(sum(one[key] for one in found), 2) for key in found[0]} if found else None


def _core_run(run: LayersRun, operation: Operation, params: Mapping[str, Any], folder: Path) -> Run:
    workload = find_workload(operation.workload)
    return Run(
        workload=operation.workload,
        params=workload.complete(params),
        cfg=run.cfg,
        array=run.array,
        seed=run.seed,
        fast=run.fast,
        trace=False,
        check=run.check,
        model=run.model,
        out=folder,
        file=run.file,
    )


def _command(run: LayersRun, operation: Operation) -> str:
    """What runs it alone, with a trace."""
    words = ["plexus", "run", operation.workload, *run.config_words]
    for name, value in operation.params.items():
        words += ["-p", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    words += ["--seed", str(run.seed)] if run.seed else []
    return shlex.join(words)


def _status(report: Mapping[str, Any]) -> str:
    return "ok" if passed(report) else "mismatch" if report["end"] == "done" else "fault"


def run_operation(run: LayersRun, number: int, operation: Operation, console: Console) -> dict[str, Any]:
    """The row of an operation. What does not fit or is refused is a status with its sentence."""
    row: dict[str, Any] = {
        "name": operation.name,
        "workload": operation.workload,
        "params": dict(operation.params),
        "repeats": operation.repeats,
        "command": _command(run, operation),
        "scaled": None,
    }
    place = f"{number:02}-{re.sub('[^A-Za-z0-9_.-]', '_', operation.name)}"
    folder = run.folder / "operations" / place
    try:
        axis = axis_of(run.cfg, operation) if run.params["scaled"] else None
        if axis is not None:
            return row | _scaled(run, operation, axis, folder, console)
        report = core_run.run_workload(_core_run(run, operation, operation.params, folder), console)
    except MemoryFullError as error:
        return row | {"status": "does_not_fit", "sentence": str(error)}
    except (KernelError, ImageError) as error:
        return row | {"status": "refused", "sentence": str(error)}
    return row | _told(run, report, report) | {"folder": f"operations/{place}"}


def _told(run: LayersRun, report: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """A row's figures; `report` says all that is no number of the whole."""
    status = _status(report)
    cycles, limits = figures["cycles"], figures["bounds"]
    by = max(limits, key=lambda name: limits[name])
    bytes_moved = figures["hbm_bytes_read"] + figures["hbm_bytes_written"]
    peak = report["peak_macs_a_cycle"]
    return {
        "status": status,
        "sentence": "" if status == "ok" else report["not_compared"] or report["end_message"],
        "match": report["match"],
        "sampled": report["sampled"],
        "cycles": cycles,
        "macs": figures["macs"],
        "peak_macs_a_cycle": peak,
        "mfu": round(figures["macs"] / (peak * cycles), 6) if cycles else 0.0,
        "bound_cycles": limits[by],
        "bound_by": by,
        "bounds": dict(limits),
        "bounding_engine": report["bounding_engine"],
        "bounding_share": report["bounding_share"],
        "hbm_bytes_read": figures["hbm_bytes_read"],
        "hbm_bytes_written": figures["hbm_bytes_written"],
        "hbm_utilization": round(bytes_moved / (run.cfg.hbm.bytes_per_cycle * cycles), 6) if cycles else 0.0,
        "tensor_window_cycles": figures["tensor_window_cycles"],
        "engines": {
            name: {key: engine[key] for key in ("busy", "idle", "stall")} for name, engine in figures["engines"].items()
        },
        "events": figures["events"],
        "metrics": report["metrics"],
        "simulated_cycles": report["cycles"],
        "wall_seconds": report["wall_seconds"],
        "cpu_seconds": report["cpu_seconds"],
        "cpu_parts": report["cpu_parts"],
    }


def _scaled(run: LayersRun, operation: Operation, axis: Axis, folder: Path, console: Console) -> dict[str, Any]:
    """Three runs and the line through them; where that is none, three larger ones; then the whole, if it is short."""
    reports: list[dict[str, Any]] = []
    for size in axis.sizes:
        part = folder / f"{axis.name}-{size}"
        report = core_run.run_workload(_core_run(run, operation, axis.params(size), part), console)
        if not passed(report):
            return _told(run, report, report)
        reports.append(report)
    cycles = [report["cycles"] for report in reports]
    error = line_error(axis.sizes, cycles, axis.total)
    scaled = {"axis": axis.name, "sizes": list(axis.sizes), "cycles": cycles, "deviation": round(error, 6)}
    if error > DEVIATION_MAX:
        if (further := axis.further()) is not None:
            return _scaled(run, operation, further, folder, console)
        if axis.total <= WHOLE_TIMES * axis.sizes[2]:
            report = core_run.run_workload(_core_run(run, operation, operation.params, folder), console)
            return _told(run, report, report) | _spent([*reports, report]) | {"folder": f"operations/{folder.name}"}
        points = ", ".join(f"{n:,} at {size}" for n, size in zip(cycles, axis.sizes, strict=True))
        sentence = (
            f"{operation.workload} is no line along {axis.name}: {points} cycles are {100 * error:.1f} % off, more "
            f"than {100 * DEVIATION_MAX:.0f} %; run it without scaled"
        )
        return {"status": "refused", "sentence": sentence, "scaled": scaled}
    row = _told(run, reports[-1], scaled_figures(axis, reports))
    row["sampled"] = added([report["sampled"] for report in reports])
    return row | _spent(reports) | {"scaled": scaled, "folder": f"operations/{folder.name}"}


def _spent(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all runs of a row took."""
    seconds = {name: round(sum(report[name] for report in reports), 6) for name in ("wall_seconds", "cpu_seconds")}
    return seconds | {
        "cpu_parts": added([report["cpu_parts"] for report in reports]),
        "simulated_cycles": sum(report["cycles"] for report in reports),
    }
