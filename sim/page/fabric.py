"""What the page of a link or a switch shows, as plain values for its script."""

from collections.abc import Mapping, Sequence
from typing import Any

from sim.page.title import title_of
from sim.systems.quantiles import quantiles
from sim.systems.series import Series

__all__ = ["FABRICS", "fabric_data", "fabric_differences"]

FABRICS = ("link", "switch")
_FIGURES = {
    "link": "goodput goodput_predicted packet_goodput limited_by payload_flits refused_flits malformed_flits replays "
    "replayed_flits round_trip_flits recovery_flits corrections bursts retrains downs unresolved width class_shares "
    "flit_times cycles".split(),
    "switch": "throughput offered blocked jain class_share jain_entitled dropped dropped_flits unsettled unresolved "
    "refused_flits replays spurious_replays retrains downs parity_errors others_kept slots cycles".split(),
}


def _verdict(report: Mapping[str, Any]) -> tuple[str, bool]:
    good = bool(report["match"]) and report["end"] == "done"
    what = "packets" if report["workload"] == "link" else "units"
    told = f"{report[f'{what}_delivered']:,} of {report[f'{what}_sent']:,} {what} delivered"
    if good:
        return f"{told}; none lost, doubled, out of order or changed", True
    bad = ", ".join(
        f"{report[key]:,} {key}"
        for key in (
            "lost",
            "duplicated",
            "reordered",
            "corrupted",
            "misdelivered",
            "unresolved",
            "unsettled",
            "dropped",
        )
        if report.get(key)
    )
    return f"{report['end']}: {told}; {bad}", False


def _figure(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "  ".join(f"{part:.4f}" for part in value)
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _latency(bins: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Bins that hold something, by class."""
    found: list[dict[str, Any]] = []
    for cls, counts in enumerate(bins):
        cycles = [n for n, count in enumerate(counts) if count]
        found.append({"cls": cls, "cycles": cycles, "units": [counts[n] for n in cycles]})
    return [one for one in found if one["cycles"]]


def _quantiles(report: Mapping[str, Any], series: Series) -> list[list[Any]]:
    whole = report["latency_cycles"]
    rows: list[list[Any]] = []
    for cls, counts in enumerate(series.latency):
        if any(counts):
            found = quantiles(counts, whole["max"])
            rows.append([f"class {cls}", *(found[name] for name in ("p50", "p99", "max")), sum(counts)])
    total = whole.get("units", whole.get("packets"))
    return [["all", *(whole[name] for name in ("p50", "p99", "max")), total], *(rows if len(rows) > 1 else [])]


def fabric_data(report: Mapping[str, Any], series: Series | None, why: str) -> dict[str, Any]:
    """All that fabric.js wants; `why` there is no series, if there is none."""
    system = report["workload"]
    verdict, good = _verdict(report)
    data: dict[str, Any] = {
        "title": title_of(report),
        "verdict": verdict,
        "good": good,
        "note": f"seed {report['seed']}, {report['codec']} codec" + (f"; {why}" if why else ""),
        "system": system,
        "units": "packets" if system == "link" else "units",
        "ports": 2 if system == "link" else report["switch"]["ports"],
        "figures": [
            [key.replace("_", " "), _figure(report[key])] for key in _FIGURES[system] if report[key] is not None
        ],
        "byPort": [[n, *row] for n, row in enumerate(zip(report["by_source"], report["by_output"], strict=True))]
        if system == "switch"
        else None,
        "series": None,
    }
    if series is not None:
        used = [n for n, count in enumerate(series.by_class[-1]) if count]
        data |= {
            "series": {key: value for key, value in vars(series).items() if key != "latency"},
            "classes": used,
            "latency": _latency(series.latency),
            "quantiles": _quantiles(report, series),
        }
    return data


def fabric_differences(report: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of two runs of one system that differ."""
    keys = [key for key in _FIGURES[report["workload"]] if report[key] != other[key]]
    return {
        "title": title_of(other),
        "rows": [[key.replace("_", " "), _figure(report[key]), _figure(other[key])] for key in keys],
    }
