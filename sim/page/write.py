"""report.json and trace.npz of one run, or two, to one HTML file."""

import base64
import gzip
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.errors import PlexusError
from sim.page.data import differences, page_data
from sim.trace.recorded import Recorded, load_trace
from sim.whole_file import whole_file

__all__ = ["PAGE", "read_report", "write_page"]

PAGE = "report.html"
_HERE = Path(__file__).resolve().parent


def read_report(folder: Path) -> dict[str, Any]:
    """report.json of a run of a core. Errors: PlexusError if there is none, or it is torn."""
    path = folder / "report.json"
    if not path.exists():
        raise PlexusError(f"{folder} has no report.json: name the folder of a run, as in build/runs/gemm-small")
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlexusError(f"{path} is torn: {error}") from None
    if not isinstance(report, dict) or "engines" not in report:
        raise PlexusError(f"{path} is not the report of a run of a core, and only these have a page")
    return report


def _trace(folder: Path, report: Mapping[str, Any]) -> tuple[Recorded | None, str]:
    """The trace, or why there is none that belongs to the report."""
    try:
        recorded = load_trace(folder)
    except PlexusError as error:
        return None, str(error)
    if recorded.cycles != report["cycles"]:
        return None, f"trace.npz is of a run of {recorded.cycles:,} cycles, the report of one of {report['cycles']:,}"
    return recorded, ""


def _text(data: Mapping[str, Any]) -> str:
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0)
    page = (_HERE / "page.html").read_text(encoding="utf-8")
    for mark, text in (
        ("TITLE", html.escape(data["title"])),
        ("STYLE", (_HERE / "page.css").read_text(encoding="utf-8")),
        ("COMMON", (_HERE / "common.js").read_text(encoding="utf-8")),
        ("SCRIPT", (_HERE / "page.js").read_text(encoding="utf-8")),
        ("DATA", base64.b64encode(packed).decode()),
    ):
        page = page.replace(f"@{mark}@", text)
    return page


def write_page(folder: Path, beside: Path | None = None, target: Path | None = None) -> Path:
    """The page of the run in `folder`, compared with that in `beside`; by default `folder`/report.html, whole or not at
    all. Errors: PlexusError in a sentence."""
    report = read_report(folder)
    recorded, why = _trace(folder, report)
    data = page_data(report, recorded, why)
    if beside is not None:
        other = read_report(beside)
        compared, why_not = _trace(beside, other)
        if recorded is None or compared is None:
            raise PlexusError(f"two runs are compared by their traces: {why or why_not}")
        data["other"] = differences(report, recorded, other, compared)
    path = target or folder / PAGE
    with whole_file(path) as place:
        place.write_text(_text(data), encoding="utf-8")
    return path
