"""What each GPSIMD core did from when to when, in tensor cycles, and how many cycles of its own that was."""

import numpy as np

from rtl.contract.gpsimd import CORES_MAX, Counter
from sim.trace.intervals import INTERVAL
from sim.trace.recorded import Recorded

__all__ = ["CORE_STATES", "core_intervals", "core_state_cycles", "cores_that_ran"]

CORE_STATES = tuple(counter.name.lower() for counter in Counter if counter < Counter.INSTRUCTIONS)
"""Names of the states of a core, by number; busy is 0 and idle 1, as of an engine."""

_STATE_BITS = 4
_ALL_STATES = 1 << _STATE_BITS


def _states(recorded: Recorded, core: int) -> np.ndarray:
    return (recorded.cores_states >> (_STATE_BITS * core) & (_ALL_STATES - 1)).astype(np.int64)


def cores_that_ran(recorded: Recorded) -> list[int]:
    """Cores that had a program for at least a cycle that records hold."""
    return [core for core in range(CORES_MAX) if (_states(recorded, core) != Counter.IDLE).any()]


def core_intervals(recorded: Recorded, core: int) -> np.ndarray:
    """INTERVALs of a core, neighbours joined, without a gap from 0 to `cores_from`; `value` is the state."""
    states = _states(recorded, core)
    changes = np.flatnonzero(np.diff(states, prepend=-1))
    found = np.zeros(len(changes), INTERVAL)
    begins = np.cumsum(recorded.cores_step)[changes]
    found["begin"] = begins
    found["end"] = np.append(begins[1:], recorded.cores_from)[: len(changes)]
    found["value"] = states[changes]
    return found


def core_state_cycles(recorded: Recorded, core: int) -> dict[str, int]:
    """GPSIMD cycles of a core in each state, by name, over the whole run: what its hardware counters say."""
    lengths = np.append(recorded.cores_passed[1:], recorded.cores_recorded - recorded.cores_passed.sum())
    sums = recorded.cores_sums[core].astype(np.int64)
    np.add.at(sums, _states(recorded, core), lengths[: len(recorded.cores_states)])
    return {name: int(sums[n]) for n, name in enumerate(CORE_STATES)}
