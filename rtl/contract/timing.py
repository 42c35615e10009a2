"""What is promised of every unit: latencies, rates, engines and their stall causes.

Cycles are tensor cycles (root clock). A bench holds each unit to these numbers.
"""

from enum import IntEnum

from rtl.contract.config import TensorConfig

__all__ = [
    "CONFLICT_PORTS",
    "DMA_ROWS_IN_FLIGHT",
    "DMA_STRICT_WINDOW",
    "Engine",
    "MATMUL_MIN_CYCLES",
    "PARTED",
    "PARTS",
    "PE_ROW_CYCLES",
    "PSUM_ADD_CYCLES",
    "SBUF_ADD_CYCLES",
    "SBUF_READ_CYCLES",
    "PORTS_OF",
    "STALLS",
    "WINDOWS",
    "array_latency",
]

PE_ROW_CYCLES = 2
"""A partial sum spends this many cycles in a PE (multiply, add) before it enters the row below."""

SBUF_READ_CYCLES = 1
"""From the cycle a read is granted to the cycle its data are on the port."""

DMA_ROWS_IN_FLIGHT = 64
"""Rows, or bursts of longer ones, that a mover has asked HBM for and not had: one in 8 cycles at a latency of 480."""

DMA_STRICT_WINDOW = 64
"""Units of 16 bytes of which a strict class has `dma.strict_cap` while others wait."""

PSUM_ADD_CYCLES = 3
"""From reading the old sum to writing the new one."""

SBUF_ADD_CYCLES = 3
"""The same beside SBUF, where a mover adds."""

MATMUL_MIN_CYCLES = 8
"""Fewest cycles between the first beats of two MULTIPLY_MOVING: no address recurs inside the adder."""


def array_latency(tensor: TensorConfig, group: int | None = None) -> int:
    """Cycles from a moving beat at the array's port to its sums at those of row group `group`, or of the last one."""
    above = tensor.groups if group is None else group + 1
    return PE_ROW_CYCLES * above * (tensor.rows // tensor.groups) + tensor.cols


class Engine(IntEnum):
    """Who has a set of counters."""

    TENSOR = 0
    VECTOR = 1
    SCALAR = 2
    GPSIMD = 3
    DMA = 4


_ELEMENTWISE = (
    "semaphore",
    "fetch",
    "sbuf",  # SBUF refused a read, or does not take the results
    "psum",  # PSUM refused
    "fill",  # from issue to the first beat
    "drain",  # all is read, results are on their way
    "clock",
    "fault",
    "unit",  # a unit needs more than a cycle for an element or for the end of a reduction
)

STALLS: dict[Engine, tuple[str, ...]] = {
    Engine.TENSOR: (
        "semaphore",  # the next instruction waits for a semaphore
        "fetch",  # the next instruction has not arrived from HBM
        "load",  # a stream waits for its stationary operand: an exposed load
        "sbuf",  # SBUF refused the moving operand
        "fill",  # from issue to the first beat
        "drain",  # nothing left to send, sums still leave the array
        "fault",  # the queue has halted
    ),
    Engine.VECTOR: _ELEMENTWISE,
    Engine.SCALAR: _ELEMENTWISE,
    Engine.GPSIMD: (  # in the order of gpsimd.Counter from SLEEP on
        "sleep",  # wfi: timer or DMA
        "semaphore",  # the next instruction waits for one, or wfi does
        "fetch",  # of the next instruction, or of code
        "branch",
        "load",  # a loaded value is used at once
        "unit",  # multiply and divide
        "memory",
        "sbuf",
        "vector",
        "dma",
        "clock",
        "fault",
    ),
    Engine.DMA: (
        "descriptor",  # released, but the descriptor has not arrived or is being checked
        "hbm_latency",  # reads are outstanding and nothing else can move
        "hbm_bandwidth",  # HBM accepts no further data or request
        "sbuf",  # SBUF refused a mover
        "commit",  # only write responses are outstanding
        "fault",
    ),
}

PARTED = (Engine.VECTOR, Engine.SCALAR)
"""Engines whose counters have parts by opcode, at memmap.Control.PART. The tensor engine is busy with MULTIPLY_MOVING
only."""

PARTS = ("busy", "unit")
"""States that have them."""

CONFLICT_PORTS = (
    "sbuf_moving",
    "sbuf_stationary",
    "sbuf_vector_read",
    "sbuf_vector_write",
    "psum_vector_read",
    "sbuf_mover_reads",  # at least one mover refused
    "sbuf_mover_writes",
    "sbuf_scalar_read",
    "sbuf_scalar_write",
    "psum_vector_write",
    "psum_scalar_read",
    "psum_scalar_write",
    "sbuf_gpsimd_read",
    "sbuf_gpsimd_write",
    "sbuf_mover_adds",  # the old bytes of a sum
)
"""Memory ports whose refused cycles are counted, by position at memmap.Control.CONFLICT."""

_VECTOR_PORTS = ("sbuf_vector_read", "sbuf_vector_write", "psum_vector_read", "psum_vector_write")

PORTS_OF: dict[Engine, dict[str, str]] = {
    Engine.TENSOR: {"sbuf_moving": "sbuf_moving", "sbuf_stationary": "sbuf_stationary"},
    Engine.VECTOR: {port.replace("vector_", ""): port for port in _VECTOR_PORTS},
    Engine.SCALAR: {port.replace("vector_", ""): port.replace("vector", "scalar") for port in _VECTOR_PORTS},
    Engine.GPSIMD: {"sbuf_read": "sbuf_gpsimd_read", "sbuf_write": "sbuf_gpsimd_write"},
    Engine.DMA: {"sbuf_read": "sbuf_mover_reads", "sbuf_write": "sbuf_mover_writes", "sbuf_add": "sbuf_mover_adds"},
}
"""The same by engine: short name of a port and its name in CONFLICT_PORTS. PSUM refuses no sum of the tensor engine."""

WINDOWS = (Engine.TENSOR, Engine.VECTOR, Engine.SCALAR)
"""Engines whose window is kept: the cycle of the first element that moved and that of the last result, in
memmap.Control's (engine)_FIRST and _LAST. A result of the tensor engine is a row of sums that leaves the array,
one of the others the end of an instruction, when its last write has committed."""
