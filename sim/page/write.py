"""report.json and trace.npz of one run, or two, to one HTML file."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.errors import PlexusError
from sim.page.data import differences, page_data
from sim.page.embed import page_text
from sim.page.fabric import FABRICS, fabric_data, fabric_differences, of_this_run
from sim.page.layers import layers_data, layers_differences
from sim.report.report_json import PAGE
from sim.systems.series import Series, load_series
from sim.trace.recorded import Recorded, load_trace
from sim.whole_file import whole_file

__all__ = ["PAGE", "read_report", "write_page"]

SHOWN = 8


def read_report(folder: Path) -> dict[str, Any]:
    """report.json of a run. Errors: PlexusError if there is none, or it is torn."""
    path = folder / "report.json"
    if not path.exists():
        raise PlexusError(f"{folder} has no report.json: name the folder of a run, {_runs_in(folder)}")
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlexusError(f"{path} is torn: {error}") from None
    if not isinstance(report, dict) or ("engines" not in report and report.get("workload") not in FABRICS):
        raise PlexusError(
            f"{path} is not the report of a run of a core, a link or a switch, and only these have a page"
        )
    return report


def _runs_in(folder: Path) -> str:
    """Which there are one below: those of a graph's programs, and those of build/runs."""
    names = [path.parent.name for path in folder.glob("*/report.json")]
    names.sort(key=lambda name: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)])
    if not names:
        return "as in build/runs/gemm-small"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"one in it: there are {', '.join(names[:SHOWN])}{more}"


def _trace(folder: Path, report: Mapping[str, Any]) -> tuple[Recorded | None, str]:
    """The trace, or why there is none that belongs to the report."""
    try:
        recorded = load_trace(folder)
    except PlexusError as error:
        return None, str(error)
    if recorded.cycles != report["cycles"]:
        return None, f"trace.npz is of a run of {recorded.cycles:,} cycles, the report of one of {report['cycles']:,}"
    return recorded, ""


def _series(folder: Path, report: Mapping[str, Any]) -> tuple[Series | None, str]:
    """Counts in time, or why there are none that belong to the report."""
    try:
        series = load_series(folder)
    except PlexusError as error:
        return None, str(error)
    return (series, "") if of_this_run(report, series) else (None, "series.npz is of another run than the report")


def _of_core(folder: Path, report: Mapping[str, Any], beside: Path | None) -> str:
    recorded, why = _trace(folder, report)
    data = page_data(report, recorded, why)
    if beside is not None:
        other = read_report(beside)
        if "engines" not in other or "operations" in other:
            raise PlexusError(f"a run of a core and one of a {other['workload']} have nothing to compare")
        compared, why_not = _trace(beside, other)
        if recorded is None or compared is None:
            raise PlexusError(f"two runs are compared by their traces: {why or why_not}")
        data["other"] = differences(report, recorded, other, compared)
    return page_text(data, "page")


def _of_fabric(folder: Path, report: Mapping[str, Any], beside: Path | None) -> str:
    data = fabric_data(report, *_series(folder, report))
    if beside is not None:
        other = read_report(beside)
        if other["workload"] != report["workload"]:
            raise PlexusError(f"a run of {report['workload']} and one of {other['workload']} have nothing to compare")
        data["other"] = fabric_differences(report, other)
    return page_text(data, "fabric")


def _of_layers(folder: Path, report: Mapping[str, Any], beside: Path | None) -> str:
    data = layers_data(report)
    if beside is not None:
        other = read_report(beside)
        if "operations" not in other:
            raise PlexusError(f"a run of a layer and one of {other['workload']} have nothing to compare")
        data["other"] = layers_differences(report, other)
    return page_text(data, "layers")


def write_page(folder: Path, beside: Path | None = None, target: Path | None = None) -> Path:
    """The page of the run in `folder`, compared with that in `beside`; by default `folder`/report.html, whole or not at
    all. Errors: PlexusError in a sentence."""
    report = read_report(folder)
    of = _of_layers if "operations" in report else _of_core if "engines" in report else _of_fabric
    text = of(folder, report, beside)
    path = target or folder / PAGE
    with whole_file(path) as place:
        place.write_text(text, encoding="utf-8")
    return path
