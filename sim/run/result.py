"""What a device says about a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rtl.contract.isa import Cause
from sim.native.library import HbmCounters
from sim.native.tracing import RawTrace

__all__ = ["ENDS", "EngineCycles", "Fault", "GpsimdCore", "RunResult"]

ENDS = {
    "done": "all instructions and descriptors have completed",
    "fault": "a queue or ring has halted",
    "stuck": "nothing has moved for a long time and the program is not done",
    "limit": "the limit of cycles was reached",
    "protocol": "the core broke the AXI protocol",
    "fatal": "the model stopped itself",
}
"""How a run may end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a queue (by name) or a ring ("ring 0") halted, and at which of its items."""

    queue: str
    sequence: int
    cause: Cause
    address: int

    def __str__(self) -> str:
        return f"{self.queue} item {self.sequence}: {self.cause.name.lower()} at address {self.address:#x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCycles:
    """Where the cycles of an engine went; all of it together is the length of the run.

    `parts`: of states of timing.PARTS the cycles by opcode, in lower case; they sum to the state's.
    """

    busy: int
    idle: int
    stall: Mapping[str, int]
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Busy, idle and every stall."""
        return self.busy + self.idle + sum(self.stall.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class GpsimdCore:
    """Where the GPSIMD cycles of a core went, by names of gpsimd.Counter; and instructions that have retired."""

    busy: int
    idle: int
    stall: Mapping[str, int]
    instructions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run on a device that knows time. Cycles are tensor cycles.

    `wall_seconds` and `cpu_seconds` count the simulation loop alone. `windows`: by engine the cycles of its
    first beat and of its last result (timing.WINDOWS), 0 and 0 if there was none. `outputs` holds bits by
    name. `retired` has the dtype sim.native.library.RETIRED; `retired_total` counts what its limit cut off
    too.
    """

    device: str
    end: str  # a key of ENDS
    message: str  # more about a `protocol` or `fatal` end
    cycles: int
    engines: Mapping[str, EngineCycles]
    windows: Mapping[str, tuple[int, int]]
    hbm_bytes_read: int
    hbm_bytes_written: int
    conflicts: Mapping[str, int]
    faults: tuple[Fault, ...]
    outputs: Mapping[str, np.ndarray]
    wall_seconds: float
    cpu_seconds: float
    retired: np.ndarray
    retired_total: int
    hbm: HbmCounters | None = None  # what the model of HBM counted
    trace: RawTrace | None = None
    printed: Mapping[int, bytes] = field(default_factory=dict)  # by GPSIMD core, those that printed anything
    gpsimd_cores: tuple[GpsimdCore, ...] = ()  # all of them, if one has executed an instruction
    registers: Mapping[int, int] = field(default_factory=dict)  # what Image.registers held at the end
    progress: Mapping[str, str] = field(default_factory=dict)  # queue or ring: "12 of 40", unless all done

    def window_cycles(self, engine: str) -> int:
        """From the first beat of an engine to its last result, both included; 0 if it had nothing to do."""
        first, last = self.windows.get(engine, (0, 0))
        return last - first + 1 if last > first else 0
