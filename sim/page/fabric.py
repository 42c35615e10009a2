"""What the page of a link or a switch shows, as plain values for its script."""

from collections.abc import Mapping, Sequence
from typing import Any

from sim.page.title import title_of
from sim.systems.quantiles import LATENCY_BINS, quantiles, told_cycles
from sim.systems.series import Series

__all__ = ["FABRICS", "FIGURES", "fabric_data", "fabric_differences", "of_this_run"]

FABRICS = ("link", "switch")
FIGURES = {
    "link": "goodput goodput_predicted packet_goodput limited_by payload_flits refused_flits malformed_flits replays "
    "replayed_flits round_trip_flits recovery_flits corrections bursts retrains downs unresolved width class_shares "
    "flit_times cycles".split(),
    "switch": "throughput offered blocked jain class_share jain_entitled dropped dropped_flits unsettled unresolved "
    "refused_flits replays spurious_replays retrains downs parity_errors protocol_errors others_kept slots "
    "cycles".split(),
}
_BAD = "lost duplicated reordered corrupted misdelivered protocol_errors unresolved unsettled dropped".split()
_QUANTILES = ("p50", "p99", "max")


def _verdict(report: Mapping[str, Any]) -> tuple[str, bool]:
    what = "packets" if report["workload"] == "link" else "units"
    told = f"{report[f'{what}_delivered']:,} of {report[f'{what}_sent']:,} {what} delivered"
    if report["match"] and report["end"] == "done":
        refused = f", {report['dropped']:,} refused" if report.get("dropped") else ""
        return f"{told}{refused}; none lost, doubled, out of order or changed", True
    bad = ", ".join(f"{report[key]:,} {key.replace('_', ' ')}" for key in _BAD if report.get(key))
    return f"{report['end']}: {told}; {bad}", False


def _figure(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "  ".join(f"{part:.4f}" for part in value)
    if value is None:
        return "-"
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _figures(report: Mapping[str, Any]) -> dict[str, str]:
    """All figures, latencies too, by their names in words."""
    found = {key.replace("_", " "): _figure(report[key]) for key in FIGURES[report["workload"]]}
    cycles = report.get("latency_cycles", {})
    return found | {f"latency {name}, link cycles": told_cycles(cycles[name]) for name in _QUANTILES if name in cycles}


def _latency(bins: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Bins that hold something, by class."""
    found: list[dict[str, Any]] = []
    for cls, counts in enumerate(bins):
        cycles = [n for n, count in enumerate(counts) if count]
        found.append({"cls": cls, "cycles": cycles, "units": [counts[n] for n in cycles]})
    return [one for one in found if one["cycles"]]


def _quantiles(report: Mapping[str, Any], series: Series) -> list[list[Any]]:
    whole = report["latency_cycles"]
    classes = [
        [f"class {cls}", *(told_cycles(quantiles(counts)[name]) for name in _QUANTILES), sum(counts)]
        for cls, counts in enumerate(series.latency)
        if any(counts)
    ]
    total = whole.get("units", whole.get("packets"))
    return [["all", *(told_cycles(whole[name]) for name in _QUANTILES), total], *(classes if len(classes) > 1 else [])]


def of_this_run(report: Mapping[str, Any], series: Series) -> bool:
    """Whether a series is that of the report: as long, and with as many latencies."""
    times = report["params"]["flits"] if report["workload"] == "link" else report["slots"]
    latency = report.get("latency_cycles", {})
    count = latency.get("units", latency.get("packets"))
    return (
        bool(series.cycle)
        and series.cycle[-1] // series.flit_cycles == times
        and sum(map(sum, series.latency)) == count
    )


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
            [key.replace("_", " "), _figure(report[key])] for key in FIGURES[system] if report[key] is not None
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
            "beyond": LATENCY_BINS - 1,
            "quantiles": _quantiles(report, series),
        }
    return data


def fabric_differences(report: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of two runs of one system that differ."""
    here, there = _figures(report), _figures(other)
    names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    return {"title": title_of(other), "rows": [[name, here.get(name, "-"), there.get(name, "-")] for name in names]}
