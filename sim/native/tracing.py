"""What trace.h keeps of a run, as NumPy arrays."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from rtl.contract.gpsimd import CORES_MAX
from rtl.contract.timing import Engine

__all__ = [
    "TRACED",
    "TRACED_CORES",
    "TRACE_BEATS_CYCLES",
    "TRACE_COARSE_CYCLES",
    "TRACE_CORE_SUMS",
    "TRACE_RECORDS",
    "TRACE_SUMS",
    "RawTrace",
    "Traced",
]

TRACED = np.dtype([("cycle", "<u8"), ("value", "<u4"), ("kind", "<u2"), ("place", "<u2")])
"""A record of a trace, as trace.h stores it."""

TRACED_CORES = np.dtype([("cycle", "<u8"), ("states", "<u4"), ("passed", "<u4")])
"""A record of GPSIMD cores, as core_trace.h stores it: from `cycle` on they are in these states, 4 bits each; `passed`:
GPSIMD cycles since the record before."""

TRACE_RECORDS = 1 << 22
TRACE_BEATS_CYCLES = 256
TRACE_COARSE_CYCLES = 4096
TRACE_SUMS = 16 * len(Engine) + 2 * 16
"""Of a bucket of TRACE_COARSE_CYCLES: 16 states of each engine, then 16 ports that refuse and 16 movers."""
TRACE_CORE_SUMS = (CORES_MAX, 16)
"""GPSIMD cycles of each core in each state."""


class Traced(IntEnum):
    """Kinds of records."""

    ISSUE = 0
    BEGIN = 1
    END = 2
    STATE = 3
    REFUSED = 4
    MOVERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTrace:
    """What trace.h kept of a run. Cycle 0 is the driver's `first`; of `cycles` those from `coarse_from` on are in
    buckets of TRACE_COARSE_CYCLES, and `lost` issues, begins and ends of them are nowhere.

    `records`: TRACED. `beats`: uint32 [buckets of TRACE_BEATS_CYCLES, read and written]. `coarse`: uint32 [buckets,
    TRACE_SUMS].
    `cores`: TRACED_CORES up to cycle `cores_from`, before which there were `cores_recorded` GPSIMD cycles; `core_sums`,
    uint64 TRACE_CORE_SUMS, has what follows.
    """

    first: int
    cycles: int
    coarse_from: int
    lost: int
    records: np.ndarray
    beats: np.ndarray
    coarse: np.ndarray
    cores: np.ndarray
    cores_from: int
    cores_recorded: int
    core_sums: np.ndarray
