"""A run as plain values: the keys of report.json, each explained in docs/report.md."""

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.isa import Queue
from sim.compare import Comparison
from sim.errors import PlexusError
from sim.result import ENDS, Fault, RunResult
from sim.toolchain import tool_versions

__all__ = ["ReportError", "Subject", "bounds", "make_report", "write_report"]

MOVER_BYTES = 16  # a mover moves so much a cycle


class ReportError(PlexusError):
    """The device's numbers contradict each other; the text says which."""


def bounds(cfg: Config, program: Program, hbm_bytes: int) -> dict[str, int]:
    """Fewest cycles that each part of the machine needs for this work, by name, rounded up.

    compute: every PE does a useful multiply-add each cycle. hbm: bytes at full bandwidth. vector_port,
    scalar_port: elements over the rate of their instruction. dma_port: 16 bytes a mover a cycle.
    """
    moved = sum(d.bytes for ring in program.rings for d in ring)
    exact = {
        "compute": Fraction(program.macs, cfg.tensor.rows * cfg.tensor.cols),
        "hbm": Fraction(hbm_bytes, cfg.hbm.bytes_per_cycle),
        "vector_port": program.vector_cycles * Fraction(cfg.tensor.clock_mhz, cfg.vector.clock_mhz),
        "scalar_port": program.scalar_cycles * Fraction(cfg.tensor.clock_mhz, cfg.scalar.clock_mhz),
        "dma_port": Fraction(moved, MOVER_BYTES * cfg.dma.engines),
    }
    return {name: -(-value.numerator // value.denominator) for name, value in exact.items()}


def _check_sums(result: RunResult) -> None:
    for name, engine in result.engines.items():
        if engine.total != result.cycles:
            raise ReportError(
                f"the counters of {name} sum to {engine.total}, but the run took {result.cycles} cycles: "
                "the core's accounting is broken"
            )


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole else 0.0


def _fault(fault: Fault, program: Program) -> dict[str, Any]:
    """A fault record with the kernel's line of the item that halted."""
    if fault.queue.startswith("ring "):
        ring = program.rings[int(fault.queue.split()[1])]
        source = ring[fault.sequence].origin if fault.sequence < len(ring) else ""
    else:
        source = program.source(Queue[fault.queue.upper()], fault.sequence)
    return {
        "queue": fault.queue,
        "sequence": fault.sequence,
        "cause": fault.cause.name.lower(),
        "address": fault.address,
        "source": source,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was run: everything a report says that is not a measurement."""

    workload: str
    params: Mapping[str, Any]
    cfg: Config
    array: str
    seed: int
    program: Program


def make_report(
    subject: Subject, result: RunResult, comparison: Comparison, metrics: Mapping[str, Any]
) -> dict[str, Any]:
    """All keys of report.json. Errors: ReportError if an engine's cycles do not sum to the run's."""
    _check_sums(result)
    cfg, program = subject.cfg, subject.program
    cycles = result.cycles
    peak = cfg.tensor.rows * cfg.tensor.cols
    window = result.tensor_window_cycles
    hbm_bytes = result.hbm_bytes_read + result.hbm_bytes_written
    limits = bounds(cfg, program, hbm_bytes)
    by = max(limits, key=lambda name: limits[name])
    return {
        "workload": subject.workload,
        "params": dict(subject.params),
        "config": cfg.name,
        "config_hash": cfg.hash,
        "array": subject.array,
        "seed": subject.seed,
        "tool_versions": tool_versions(),
        "match": comparison.match,
        "mismatch": comparison.first.as_dict() if comparison.first else None,
        "not_compared": comparison.why,
        "end": result.end,
        "end_message": result.message or ENDS[result.end],
        "unfinished": dict(result.progress),
        "faults": [_fault(f, program) for f in result.faults],
        "cycles": cycles,
        "nanoseconds": round(cycles * 1000 / cfg.tensor.clock_mhz, 3),
        "wall_seconds": round(result.wall_seconds, 6),
        "cpu_seconds": round(result.cpu_seconds, 6),
        "cycles_per_second": round(cycles / result.wall_seconds) if result.wall_seconds else 0,
        "macs": program.macs,
        "tensor_utilization": _ratio(program.macs, peak * cycles),
        "tensor_window_cycles": window,
        "tensor_window_utilization": _ratio(program.macs, peak * window),
        "engines": {
            name: {"busy": e.busy, "idle": e.idle, "stall": dict(e.stall)}
            for name, e in result.engines.items()
        },
        "bound_cycles": limits[by],
        "bound_by": by,
        "bounds": limits,
        "hbm_bytes_read": result.hbm_bytes_read,
        "hbm_bytes_written": result.hbm_bytes_written,
        "hbm_utilization": _ratio(hbm_bytes, cfg.hbm.bytes_per_cycle * cycles),
        "conflicts": dict(result.conflicts),
        "instructions_retired": result.retired_total,
        "notes": list(program.notes),
        "metrics": dict(metrics),
    }


def write_report(report: Mapping[str, Any], folder: Path) -> Path:
    """`folder`/report.json, whole or not at all. Errors: PlexusError if it cannot be written."""
    path = folder / "report.json"
    temporary = folder / f".report.json.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(report, indent=1) + "\n")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
        raise PlexusError(f"{path} cannot be written: {why}") from None
    return path
