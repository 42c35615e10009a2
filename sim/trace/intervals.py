"""From changes to intervals: what each engine, port and mover did from when to when."""

import numpy as np

from rtl.contract.timing import CONFLICT_PORTS, STALLS, Engine
from sim.trace.recorded import Recorded

__all__ = [
    "INTERVAL",
    "STATES",
    "engine_intervals",
    "mask_cycles",
    "mask_intervals",
    "refused_cycles",
    "state_cycles",
]

INTERVAL = np.dtype([("begin", "<i8"), ("end", "<i8"), ("value", "<i4")])
"""Cycles from `begin` on and before `end`."""

STATES: dict[Engine, tuple[str, ...]] = {engine: ("busy", "idle", *STALLS[engine]) for engine in Engine}
"""Names of the states of an engine, by number."""

_ALL_STATES = 16
_MASK_BITS = 16


def _intervals(cycles: np.ndarray, values: np.ndarray, end: int) -> np.ndarray:
    found = np.zeros(len(cycles), INTERVAL)
    found["begin"] = cycles
    found["end"] = np.append(cycles[1:], end)
    found["value"] = values
    return found[found["end"] > found["begin"]]


def engine_intervals(recorded: Recorded, engine: int) -> np.ndarray:
    """INTERVALs of an engine, without a gap from 0 to `coarse_from`; `value` is the state."""
    mine = recorded.state_engine == engine
    return _intervals(recorded.state_cycle[mine], recorded.state_value[mine], recorded.coarse_from)


def mask_intervals(cycles: np.ndarray, masks: np.ndarray, bit: int, end: int) -> np.ndarray:
    """INTERVALs in which a bit of a mask is set, neighbours joined; `value` is 1."""
    set_ = (masks.astype(np.int64) >> bit & 1).astype(bool)
    changes = np.flatnonzero(np.diff(set_.astype(np.int8), prepend=0))
    all_ = _intervals(cycles[changes], set_[changes].astype(np.int32), end)
    return all_[all_["value"] == 1]


def mask_cycles(cycles: np.ndarray, masks: np.ndarray, end: int) -> np.ndarray:
    """Cycles in which each of 16 bits is set."""
    lengths = np.diff(np.append(cycles, end))
    bits = masks.astype(np.int64)[:, None] >> np.arange(_MASK_BITS) & 1
    return (bits * lengths[:, None]).sum(axis=0)


def state_cycles(recorded: Recorded, engine: Engine) -> dict[str, int]:
    """Cycles of an engine in each state, by name, over the whole run: what its hardware counters say."""
    found = engine_intervals(recorded, engine)
    sums = np.bincount(found["value"], found["end"] - found["begin"], _ALL_STATES).astype(np.int64)
    sums += recorded.coarse[:, _ALL_STATES * engine : _ALL_STATES * (engine + 1)].sum(axis=0, dtype=np.int64)
    return {name: int(sums[n]) for n, name in enumerate(STATES[engine])}


def refused_cycles(recorded: Recorded) -> dict[str, int]:
    """Refused cycles of each of CONFLICT_PORTS over the whole run."""
    sums = mask_cycles(recorded.refused_cycle, recorded.refused_ports, recorded.coarse_from)
    at = _ALL_STATES * len(Engine)
    sums += recorded.coarse[:, at : at + _MASK_BITS].sum(axis=0, dtype=np.int64)
    return {name: int(sums[n]) for n, name in enumerate(CONFLICT_PORTS)}
