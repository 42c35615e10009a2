"""A run as plain values: the keys of report.json, each explained in docs/report.md."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.config_changes import difference
from rtl.contract.isa import Opcode, Queue
from rtl.contract.roles import OF_CLASSES
from rtl.contract.timing import PORTS_OF, Engine
from sim.advice.advise import advise, no_advice
from sim.advice.facts import facts_of
from sim.energy.core.counts import events_of
from sim.errors import PlexusError
from sim.report.classes import classes_of_report
from sim.report.programs import cores_of_report, ended, printed_of
from sim.report.registers import told, wrong_register
from sim.run.checking import match_of
from sim.run.compare import Comparison
from sim.run.result import ENDS, Fault, RunResult
from sim.run.variant import changes
from sim.toolchain import tool_versions
from sim.trace.recorded import Recorded
from sim.whole_file import whole_file

__all__ = ["PAGE", "ReportError", "Subject", "make_report", "write_report"]


PAGE = "report.html"
"""The page of a run, beside report.json."""


class ReportError(PlexusError):
    """The device's numbers contradict each other; the text says which."""


def _check_sums(result: RunResult) -> None:
    for name, engine in result.engines.items():
        if engine.total != result.cycles:
            raise ReportError(
                f"the counters of {name} sum to {engine.total}, but the run took {result.cycles} cycles: "
                "the core's accounting is broken"
            )


def _parts(name: str, result: RunResult, program: Program) -> dict[str, dict[str, int]]:
    """Busy and `unit` of an engine by opcode, longest first. Errors: ReportError if they do not sum to the whole."""
    engine = result.engines[name]
    if name == "tensor":
        return {"busy": _beats(engine.busy, result, program)}
    found: dict[str, dict[str, int]] = {}
    for state, parts in engine.parts.items():
        whole = engine.busy if state == "busy" else engine.stall[state]
        if sum(parts.values()) != whole:
            raise ReportError(f"the parts of {state} of {name} sum to {sum(parts.values())}, not to {whole} cycles")
        found[state] = dict(sorted(parts.items(), key=lambda part: -part[1]))
    return found


def _beats(busy: int, result: RunResult, program: Program) -> dict[str, int]:
    """The tensor engine is busy with MULTIPLY_MOVING alone. A beat of one is a cycle, so that what its kernel calls it
    (Instruction.part) divides them, unless row tiles at work beside each other or an early end say otherwise."""
    found: dict[str, int] = {}
    for i in program.queues.get(Queue.TENSOR, []):
        if i.opcode == Opcode.MULTIPLY_MOVING and i.dst is not None:
            found[i.part or "multiply_moving"] = found.get(i.part or "multiply_moving", 0) + i.dst.elements
    if result.end != "done" or sum(found.values()) != busy:
        found = {"multiply_moving": busy} if busy else {}
    return dict(sorted(found.items(), key=lambda part: -part[1]))


def _ratio(part: float, whole: float | Fraction) -> float:
    return round(float(part / whole), 6) if whole else 0.0


def _fault(fault: Fault, program: Program, registers: Mapping[int, int]) -> dict[str, Any]:
    """A fault record with the kernel's line of the item that halted."""
    if fault.queue.startswith("ring "):
        ring = program.rings[int(fault.queue.split()[1])]
        source = ring[fault.sequence].origin if fault.sequence < len(ring) else ""
    else:  # a queue, or what it has copied directly
        source = program.source(Queue[fault.queue.split()[0].upper()], fault.sequence)
    wrong = wrong_register(fault.cause, program, registers)
    source = wrong.place if wrong is not None else source
    return {
        "queue": fault.queue,
        "sequence": fault.sequence,
        "cause": fault.cause.name.lower(),
        "address": fault.address,
        "source": source,
        "told": told(wrong, registers) if wrong is not None else ended(fault, program),
    }


def _sampled(comparison: Comparison) -> dict[str, int]:
    return {"tiles": comparison.tiles or 0, "elements": comparison.elements, "of_elements": comparison.of}


def _engine(name: str, result: RunResult) -> dict[str, Any]:
    """Cycles of an engine, and the cycles in which its ports were refused."""
    engine = result.engines[name]
    ports = PORTS_OF[Engine[name.upper()]]
    refused = {short: result.conflicts[port] for short, port in ports.items()}
    return {"busy": engine.busy, "idle": engine.idle, "stall": dict(engine.stall), "conflicts": refused}


def _windows(result: RunResult) -> dict[str, Any]:
    """From the first element of the vector and the scalar engine to their last result, and the busy part of it."""
    values: dict[str, Any] = {}
    for name in ("vector", "scalar"):
        cycles = result.window_cycles(name)
        values[f"{name}_window_cycles"] = cycles
        values[f"{name}_window_utilization"] = _ratio(result.engines[name].busy, cycles)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was run: everything a report says that is not a measurement."""

    workload: str
    params: Mapping[str, Any]
    cfg: Config
    array: str
    fast: bool
    seed: int
    program: Program
    check: str = "golden"  # as checking.need_check gives it
    file: str | None = None  # that the configuration was read from
    model: Config | None = None  # that ran it, if not one of its own


def _differs(model: Config, cfg: Config) -> dict[str, Any]:
    """What the model that ran `cfg` has otherwise; of GPSIMD cores and classes that it has not, nothing else."""
    found = difference(model, cfg)
    if not model.gpsimd.enabled:
        found = {key: value for key, value in found.items() if key == "gpsimd.enabled" or not key.startswith("gpsimd.")}
    if model.dma.classes == 1:
        found = {key: value for key, value in found.items() if key not in {f"dma.{name}" for name in OF_CLASSES}}
    return found


def make_report(
    subject: Subject,
    result: RunResult,
    comparison: Comparison,
    metrics: Mapping[str, Any],
    recorded: Recorded | None = None,
) -> dict[str, Any]:
    """All keys of report.json; advice looks at the trace, if there is one.

    Errors: ReportError if an engine's cycles do not sum to the run's.
    """
    _check_sums(result)
    cfg, program = subject.cfg, subject.program
    cycles = result.cycles
    peak = cfg.tensor.rows * cfg.tensor.cols * program.pe_macs
    window = result.window_cycles("tensor")
    hbm_bytes = result.hbm_bytes_read + result.hbm_bytes_written
    facts = facts_of(cfg, program, result, recorded)
    limits, bound = facts.limits, facts.bound
    by = max(limits, key=lambda name: limits[name])
    advice = advise(facts)
    base, changed = changes(cfg)
    return {
        "workload": subject.workload,
        "params": dict(subject.params),
        "config": cfg.name,
        "config_hash": cfg.hash,
        "config_file": subject.file,
        "config_base": base,
        "config_changes": changed,
        "config_resolved": cfg.as_dict(),
        "config_model": _differs(subject.model, cfg) if subject.model else {},
        "array": subject.array,
        "fast": subject.fast,
        "seed": subject.seed,
        "tool_versions": tool_versions(),
        "match": match_of(subject.check, comparison.match),
        "golden": "none" if comparison.unchecked else "kept" if comparison.kept else "run",
        "sampled": None if comparison.tiles is None else _sampled(comparison),
        "mismatch": comparison.first.as_dict() if comparison.first else None,
        "not_compared": comparison.why,
        "end": result.end,
        "end_message": result.message or ENDS[result.end],
        "unfinished": dict(result.progress),
        "faults": [_fault(f, program, result.registers) for f in result.faults],
        "cycles": cycles,
        "nanoseconds": round(cycles * 1000 / cfg.tensor.clock_mhz, 3),
        "wall_seconds": round(result.wall_seconds, 6),
        "cpu_seconds": round(result.cpu_seconds, 6),
        "cycles_per_second": round(cycles / result.wall_seconds) if result.wall_seconds else 0,
        "macs": program.macs,
        "peak_macs_a_cycle": float(peak),
        "tensor_utilization": _ratio(program.macs, peak * cycles),
        "tensor_window_cycles": window,
        "tensor_window_utilization": _ratio(program.macs, peak * window),
        **_windows(result),
        "engines": {name: _engine(name, result) | {"parts": _parts(name, result, program)} for name in result.engines},
        "gpsimd_cores": cores_of_report(result),
        "printed": printed_of(result),
        "dma_classes": classes_of_report(cfg.dma, program, recorded),
        "bounding_engine": bound.engine,
        "bounding_share": bound.share,
        "busiest_engine": bound.busiest,
        "bounding_stall": bound.stall,
        "bounding_stall_share": bound.stall_share,
        "relief": advice[0].text if advice else no_advice(facts),
        "relief_set": list(advice[0].settings) if advice else [],
        "advice": [one.as_dict() for one in advice],
        "bound_cycles": limits[by],
        "bound_by": by,
        "bounds": limits,
        "hbm_bytes_read": result.hbm_bytes_read,
        "hbm_bytes_written": result.hbm_bytes_written,
        "hbm_utilization": _ratio(hbm_bytes, cfg.hbm.bytes_per_cycle * cycles),
        "conflicts": dict(result.conflicts),
        "instructions_retired": result.retired_total,
        "events": events_of(program),
        "notes": list(program.notes),
        "metrics": dict(metrics),
    }


def write_report(report: Mapping[str, Any], folder: Path) -> Path:
    """`folder`/report.json, whole or not at all; the page of an earlier run goes. Errors: PlexusError if it cannot be
    written."""
    path = folder / "report.json"
    with whole_file(path) as place:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).unlink(missing_ok=True)
        place.write_text(json.dumps(report, indent=1) + "\n")
    return path
