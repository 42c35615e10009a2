"""A trace beside what the hardware counted: each is the check of the other."""

import numpy as np

from rtl.contract.timing import Engine
from sim.errors import PlexusError
from sim.run.result import EngineCycles, GpsimdCore, RunResult
from sim.trace.cores import core_state_cycles
from sim.trace.intervals import refused_cycles, state_cycles
from sim.trace.recorded import NEVER, Recorded

__all__ = ["TraceError", "need_agreement"]


class TraceError(PlexusError):
    """A trace that says something else than the counters; the text says what."""


def _need(what: str, traced: int, counted: int) -> None:
    if traced != counted:
        raise TraceError(f"{what}: the trace has {traced}, the hardware counted {counted}; one of them is broken")


def _flat(engine: EngineCycles | GpsimdCore) -> dict[str, int]:
    return {"busy": engine.busy, "idle": engine.idle, **engine.stall}


def need_agreement(recorded: Recorded, result: RunResult, beats: tuple[int, int]) -> None:
    """Sums of intervals are the counters, records are the instructions retired, buckets are `beats`, which the HBM
    model counted: read and written. Errors: TraceError with both numbers."""
    _need("cycles of the run", recorded.cycles, result.cycles)
    for engine in Engine:
        name = engine.name.lower()
        traced = state_cycles(recorded, engine)
        for state, counted in _flat(result.engines[name]).items():
            _need(f"cycles of {name} in {state}", traced[state], counted)
    for n, core in enumerate(result.gpsimd_cores):
        traced = core_state_cycles(recorded, n)
        for state, counted in _flat(core).items():
            _need(f"GPSIMD cycles of gp{n} in {state}", traced[state], counted)
    for port, traced in refused_cycles(recorded).items():
        _need(f"refused cycles of {port}", traced, result.conflicts[port])
    for n, way in enumerate(("read from", "written to")):
        _need(f"beats {way} HBM", int(recorded.beats[:, n].sum(dtype=np.int64)), beats[n])
    # one that breaks off goes on behind its last counted cycle, while the host reads its counters
    if result.end == "done" and not recorded.lost and result.retired_total == len(result.retired):
        _need("instructions that retired", int((recorded.item_retire != NEVER).sum()), result.retired_total)
        _need("instructions issued", int((recorded.item_issue != NEVER).sum()), result.retired_total)
        _need("descriptors that ended", int((recorded.copy_end != NEVER).sum()), len(recorded.copy_end))
