"""What the page of a layer shows, as plain values for its script."""

from collections.abc import Mapping
from typing import Any

from sim.page.title import title_of

__all__ = ["layers_data", "layers_differences"]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _row(row: Mapping[str, Any], whole: int) -> list[Any]:
    how = row["status"] if row["status"] != "ok" else ""
    if row["scaled"]:
        how = f"scaled along {row['scaled']['axis']}, {100 * row['scaled']['deviation']:.2f} % off"
    return [
        row["name"],
        row["repeats"],
        row["layer_cycles"],
        _percent(row["layer_cycles"] / whole),
        f"{row['cycles'] / row['bound_cycles']:.2f}" if row["bound_cycles"] else "-",
        row["bound_by"].replace("_", " "),
        f"{row['bounding_engine']} {_percent(row['bounding_share'])}",
        _percent(row["mfu"]) if row["macs"] else "-",
        _percent(row["hbm_utilization"]),
        how,
    ]


def _engine(name: str, engine: Mapping[str, Any]) -> dict[str, Any]:
    stalls = [[cause.replace("_", " "), count] for cause, count in engine["stall"].items()]
    rest = [*stalls, ["idle", engine["idle"]]]
    return {"name": name, "parts": [["busy", engine["busy"]], *rest], "most": max(rest, key=lambda part: part[1])[0]}


def layers_data(report: Mapping[str, Any]) -> dict[str, Any]:
    """Of a report with operations."""
    cycles, ran = report["cycles"], [row for row in report["operations"] if "cycles" in row]
    bits = {True: "every bit that was run equals the golden machine's", "unchecked": "no bit was compared"}
    bits["sampled"] = "every bit of the result tiles that were compared equals the golden machine's"
    whole = [
        "all", "", cycles, "100.0 %", f"{cycles / report['bound_cycles']:.2f}" if report["bound_cycles"] else "-",
        report["bound_by"].replace("_", " "), "", _percent(report["tensor_utilization"]),
        _percent(report["hbm_utilization"]), "",
    ]  # fmt: skip
    return {
        "title": title_of(report),
        "verdict": f"{cycles:,} cycles, {report['nanoseconds']:,.0f} ns; "
        + bits.get(report["match"], "bits differ, or it did not end"),
        "good": bool(report["match"]) and report["end"] == "done",
        "note": "; ".join(
            [
                f"{report['scaled_rows']} rows are scaled",
                f"{report['simulated_cycles']:,} cycles were simulated",
                *(
                    f"{value:,.1f} {name.replace('_a_', ' a ')} if every layer of the model is like this one"
                    for name, value in report["metrics"].items()
                ),
            ]
        ),
        "cycles": cycles,
        "rows": [*(_row(row, cycles) for row in ran), whole],
        "left": [
            [row["name"], row["status"].replace("_", " "), row["sentence"]]
            for row in report["operations"]
            if "cycles" not in row
        ],
        "engines": [_engine(name, engine) for name, engine in report["engines"].items()],
        "commands": [[row["name"], row["command"]] for row in report["operations"]],
        "notes": list(report["notes"]),
    }


def layers_differences(report: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Operations of both by name, those that ran in both."""
    there = {row["name"]: row["layer_cycles"] for row in other["operations"] if "cycles" in row}
    here = {
        row["name"]: row["layer_cycles"] for row in report["operations"] if row["name"] in there and "cycles" in row
    }
    pairs = [(name, cycles, there[name]) for name, cycles in here.items()]
    pairs.append(("all", report["cycles"], other["cycles"]))
    rows = [[name, a, b, f"{a / b:.2f}" if b else "-"] for name, a, b in pairs]
    return {"title": title_of(other), "rows": rows}
