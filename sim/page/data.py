"""What a page shows of a run, as plain values for its script."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rtl.contract.isa import Cause, Opcode, Queue
from rtl.contract.memmap import Space
from rtl.contract.timing import Engine
from sim.native.tracing import TRACE_BEATS_CYCLES
from sim.page.summary import by_line_and_opcode, line_rows, path_rows, tile_rows
from sim.page.title import title_of
from sim.report.programs import lines_of
from sim.report.terminal import PRINTED_LINES
from sim.toolchain import ROOT
from sim.trace.cores import CORE_STATES, core_intervals, cores_that_ran
from sim.trace.critical import CAUSES, critical_path
from sim.trace.instructions import attributed, first_beats
from sim.trace.intervals import STATES, engine_intervals
from sim.trace.occupancy import bytes_held
from sim.trace.recorded import NEVER, Recorded
from sim.trace.rings import OWN_RINGS, ring_name

__all__ = ["differences", "page_data"]

_PLACE = re.compile(r"(.+?):(\d+)(?: .*)?$")
"""A line of a kernel, and what stands there: "model.py:12 aten.addmm.default"."""


def _verdict(report: Mapping[str, Any]) -> tuple[str, bool]:
    good = bool(report["match"]) and report["end"] == "done"
    if good:
        bits = {"unchecked": "no bit was compared", "sampled": "bits of a sample equal to the golden machine's"}
        bits = bits.get(report["match"], "bits equal to the golden machine's")
        words = f"{bits}; {report['cycles']:,} cycles, {report['nanoseconds']:,.0f} ns"
    elif report["faults"]:
        f = report["faults"][0]
        told = f.get("told") or f"address {f['address']:#x}"
        where = f"{f['queue']} item {f['sequence']}: {f['cause']}, {told}, {f['source']}"
        words = f"fault: {where}"
    elif report["end"] != "done":
        left = ", ".join(f"{name} {progress}" for name, progress in report["unfinished"].items())
        words = f"{report['end']}: {report['end_message']}; {left}"
    else:
        words = f"bits differ: {report['mismatch']}"
    return words, good


def _grown(values: np.ndarray) -> list[int]:
    """As differences to the value before."""
    return np.diff(values.astype(np.int64), prepend=0).tolist()


def _waits(recorded: Recorded) -> list[list[int]]:
    """(item, semaphore, value) of every condition."""
    items, which = np.nonzero((recorded.item_waits[:, :, 0] != NEVER) & (recorded.item_waits[:, :, 1] > 0))
    return np.column_stack([items, recorded.item_waits[items, which]]).tolist()


def _sources(recorded: Recorded) -> dict[str, dict[int, str]]:
    """The lines of kernels that the trace names, "file:line" or "file:line what", if their files are there."""
    wanted: dict[str, set[int]] = {}
    for text in np.unique(np.concatenate([recorded.item_line_text, recorded.copy_line_text])).tolist():
        if said := _PLACE.match(recorded.text(text)):
            wanted.setdefault(said[1], set()).add(int(said[2]))
    found: dict[str, dict[int, str]] = {}
    for file, numbers in wanted.items():
        path = Path(file) if Path(file).is_absolute() else ROOT / file
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            continue
        found[file] = {n: lines[n - 1] for n in sorted(numbers) if n <= len(lines)}
    return found


def _cores(recorded: Recorded) -> dict[str, Any]:
    """GPSIMD cores that ran, as engines are told."""
    found = {f"gp{core}": core_intervals(recorded, core) for core in cores_that_ran(recorded)}
    return {name: {"begin": _grown(of["begin"]), "state": of["value"].tolist()} for name, of in found.items()}


def _traced(report: Mapping[str, Any], recorded: Recorded) -> dict[str, Any]:
    """What only a trace can tell."""
    cfg = report["config_resolved"]
    spent = attributed(recorded)
    path = critical_path(recorded)
    busy = np.argwhere(spent)
    engines = {engine.name.lower(): engine_intervals(recorded, engine) for engine in Engine}
    psum_bytes = cfg["psum"]["banks"] * cfg["psum"]["bank_bytes"]
    sizes = {Space.SBUF: cfg["sbuf"]["partition_bytes"], Space.PSUM: psum_bytes}
    levels = {space: bytes_held(recorded, space) for space in sizes}
    return {
        "recorded": recorded.coarse_from,
        "texts": [str(text) for text in recorded.texts],
        "sources": _sources(recorded),
        "engines": {
            name: {"begin": _grown(found["begin"]), "state": found["value"].tolist()}
            for name, found in engines.items()
            if (found["value"] != 1).any()
        },
        "cores": _cores(recorded),
        "coreStates": CORE_STATES,
        "coresRecorded": recorded.cores_from,
        "items": {
            "grown": ["issue", "end", "first", "sequence", "queue"],
            "queue": _grown(recorded.item_queue),
            "sequence": _grown(recorded.item_sequence),
            "opcode": recorded.item_opcode.tolist(),
            "update": recorded.item_update.tolist(),
            "adds": recorded.item_adds.tolist(),
            "waits": _waits(recorded),
            "line": recorded.item_line_text.tolist(),
            "turn": recorded.item_turn_text.tolist(),
            "shape": recorded.item_shape_text.tolist(),
            "program": recorded.item_program_text.tolist(),
            "issue": _grown(recorded.item_issue),
            "first": _grown(first_beats(recorded)),
            "end": _grown(recorded.item_retire),
            "cause": recorded.item_cause.tolist(),
        },
        "spentItem": _grown(busy[:, 0]),
        "spentState": busy[:, 1].tolist(),
        "spentCycles": spent[busy[:, 0], busy[:, 1]].tolist(),
        "copies": {
            "grown": ["begin", "end", "ring", "index"],
            "ring": _grown(recorded.copy_ring),
            "index": _grown(recorded.copy_index),
            "bytes": recorded.copy_bytes.tolist(),
            "signal": recorded.copy_signal.tolist(),
            "line": recorded.copy_line_text.tolist(),
            "shape": recorded.copy_shape_text.tolist(),
            "begin": _grown(recorded.copy_begin),
            "end": _grown(recorded.copy_end),
        },
        "path": {
            "grown": ["begin", "end"],
            "begin": _grown(np.array([step.begin for step in path])),
            "end": _grown(np.array([step.end for step in path])),
            "cause": [CAUSES.index(step.cause) for step in path],
            "item": [step.item for step in path],
            "copy": [step.copy for step in path],
        },
        "pathLines": path_rows(recorded, path),
        "lines": line_rows(recorded, spent),
        "tiles": tile_rows(recorded),
        "beats": {
            "cycles": TRACE_BEATS_CYCLES,
            "bytes": cfg["hbm"]["port_bytes"],
            "read": recorded.beats[:, 0].tolist(),
            "written": recorded.beats[:, 1].tolist(),
        },
        "held": {
            space.name.lower(): {
                "cycle": _grown(cycles),
                "bytes": _grown(level),
                "size": sizes[space] * cfg["partitions"],
            }
            for space, (cycles, level) in levels.items()
        },
    }


def page_data(report: Mapping[str, Any], recorded: Recorded | None, why: str) -> dict[str, Any]:
    """All that page.js wants. `why` there is no trace, if there is none."""
    verdict, good = _verdict(report)
    note = f"bound by {report['bounding_engine']}; seed {report['seed']}, {report['array']} array"
    if recorded is not None and recorded.coarse_from < recorded.cycles:
        note += (
            f"; the trace was full at cycle {recorded.coarse_from:,}: behind it only sums of 4,096 cycles, and "
            f"{recorded.lost:,} issues and ends of instructions and descriptors are not shown"
        )
    if recorded is not None and recorded.cores_from < recorded.cycles:
        note += f"; states of GPSIMD cores are shown up to cycle {recorded.cores_from:,}, behind it there are only sums"
    data: dict[str, Any] = {
        "title": title_of(report),
        "verdict": verdict,
        "good": good,
        "note": note,
        "cycles": report["cycles"],
        "report": {
            key: report[key] for key in ("engines", "bounds", "cycles", "macs", "hbm_bytes_read", "hbm_bytes_written")
        }
        | {
            "dma_classes": report.get("dma_classes", []),
            "gpsimd_cores": report.get("gpsimd_cores", []),
            "printed": "\n".join(lines_of(report.get("printed", {}))[:PRINTED_LINES]),
        },
        "peak": report["peak_macs_a_cycle"],
        "hbmRate": report["config_resolved"]["hbm"]["bytes_per_cycle"],
        "advice": report.get("advice", []),
        "relief": report.get("relief", ""),
        "states": {engine.name.lower(): STATES[engine] for engine in Engine},
        "rings": {n: ring_name(n) for n in (OWN_RINGS, OWN_RINGS + 1)},
        "queues": [queue.name.lower() for queue in Queue],
        "opcodes": {int(opcode): opcode.name.lower() for opcode in Opcode},
        "causes": {int(cause): cause.name.lower() for cause in Cause},
        "causesOfSteps": CAUSES,
        "traced": recorded is not None,
        "why": why,
    }
    if recorded is not None:
        data |= _traced(report, recorded)
        data["opcodes"] = [data["opcodes"].get(n, "") for n in range(max(data["opcodes"]) + 1)]
    return data


def differences(
    report: Mapping[str, Any], recorded: Recorded, other: Mapping[str, Any], beside: Recorded
) -> dict[str, Any]:
    """Two runs by line and opcode, the largest difference first: (line, opcode, cycles here, there, instructions)."""
    here = by_line_and_opcode(recorded, attributed(recorded))
    there = by_line_and_opcode(beside, attributed(beside))
    keys = sorted(here.keys() | there.keys(), key=lambda k: -abs(here.get(k, (0, 0))[0] - there.get(k, (0, 0))[0]))
    unlike = ""
    if report["workload"] != other["workload"]:
        unlike = f"The workloads are unlike, {report['workload']} and {other['workload']}: only common lines compare."
    return {
        "title": title_of(other),
        "cycles": other["cycles"],
        "unlike": unlike,
        "rows": [
            [*key, a[0], b[0], a[1], b[1]]
            for key in keys
            for a, b in [(here.get(key, (0, 0)), there.get(key, (0, 0)))]
            if a[0] or b[0]
        ],
    }
