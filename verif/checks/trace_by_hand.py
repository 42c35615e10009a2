"""A trace made by hand, whose answers are known, and a run that counted the same."""

import numpy as np

from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space
from rtl.contract.timing import Engine
from sim.run.result import EngineCycles, GpsimdCore, RunResult
from sim.trace.cores import core_state_cycles, cores_that_ran
from sim.trace.intervals import STATES, refused_cycles, state_cycles
from sim.trace.recorded import FORMAT, NEVER, Recorded

__all__ = ["by_hand", "counters_of"]

BUSY, IDLE = 0, 1
SEMAPHORE = STATES[Engine.VECTOR].index("semaphore")
DRAIN = STATES[Engine.VECTOR].index("drain")


def by_hand() -> Recorded:
    """A copy to a tile, a vector instruction that waits for it, one behind that, in 100 cycles.

    Sync triggers in cycle 5, the copy runs from 10 to 40. Vector item 0 waits for it, is issued in 42, retires in 70;
    item 1 is issued in 60, for the engine has sent its last beat then, and retires in 95.
    """
    ints = {
        "state_cycle": [0, 0, 0, 0, 0, 6, 43, 66, 85, 96],
        "state_engine": [0, 1, 2, 3, 4, 1, 1, 1, 1, 1],
        "state_value": [IDLE] * 5 + [SEMAPHORE, BUSY, BUSY, DRAIN, IDLE],
        "refused_cycle": [10, 13, 20],
        "refused_ports": [0b101, 0b001, 0],
        "movers_cycle": [10, 41],
        "movers_busy": [3, 0],
        "item_queue": [Queue.VECTOR, Queue.VECTOR, Queue.SYNC],
        "item_sequence": [0, 1, 0],
        "item_opcode": [Opcode.TENSOR_COPY, Opcode.TENSOR_COPY, Opcode.DMA_TRIGGER],
        "item_beats": [18, 25, 0],
        "item_line_text": [0, 1, 2],
        "item_turn_text": [6, 6, 6],
        "item_shape_text": [3, 3, 3],
        "item_program_text": [6, 6, 6],
        "item_adds": [1, 1, 1],
        "item_update": [1, 1, 4],
        "item_ring": [NEVER, NEVER, 0],
        "item_copies": [0, 0, 1],
        "item_issue": [42, 60, 5],
        "item_retire": [70, 95, 6],
        "item_cause": [0, 0, 0],
        "copy_ring": [0],
        "copy_index": [0],
        "copy_bytes": [512],
        "copy_line_text": [2],
        "copy_shape_text": [3],
        "copy_signal": [5],
        "copy_item": [2],
        "copy_begin": [10],
        "copy_end": [40],
        "tile_text": [4, 5],
        "tile_space": [Space.SBUF, Space.SBUF],
        "tile_bytes": [64, 32],
        "tile_partitions": [8, 8],
        "access_tile": [0, 0, 1, 1, 0],
        "access_writes": [1, 0, 1, 0, 1],
        "access_item": [NEVER, 0, 0, 1, 1],
        "access_copy": [0, NEVER, NEVER, NEVER, NEVER],
        "cores_step": [0],
        "cores_passed": [0],
        "cores_states": [0x1111_1111],
    }
    waits = np.full((3, 2, 2), NEVER)
    waits[0, 0] = 5, 1  # the copy's signal
    values = {name: np.array(value, np.int64) for name, value in ints.items()}
    return Recorded(
        format=FORMAT,
        cycles=100,
        coarse_from=100,
        lost=0,
        cores_from=100,
        cores_recorded=50,
        cores_sums=np.zeros((8, 16), np.int64),
        texts=np.array(["k.py:1", "k.py:2", "k.py:3", "sbuf", "a", "b", ""]),
        beats=np.array([[16, 0]], np.uint32),
        coarse=np.zeros((0, 112), np.uint32),
        item_waits=waits,
        **values,  # pyright: ignore[reportArgumentType]
    )


def _core(trace: Recorded, core: int) -> GpsimdCore:
    cycles = core_state_cycles(trace, core)
    stall = {name: count for name, count in cycles.items() if name not in ("busy", "idle")}
    return GpsimdCore(busy=cycles["busy"], idle=cycles["idle"], stall=stall, instructions=cycles["busy"])


def counters_of(trace: Recorded) -> RunResult:
    """A run whose counters say what the trace says."""
    engines = {}
    for engine in Engine:
        cycles = state_cycles(trace, engine)
        stall = {name: count for name, count in cycles.items() if name not in ("busy", "idle")}
        engines[engine.name.lower()] = EngineCycles(busy=cycles["busy"], idle=cycles["idle"], stall=stall)
    return RunResult(
        device="rtl", end="done", message="", cycles=100, engines=engines, windows={}, hbm_bytes_read=0,
        hbm_bytes_written=0, conflicts=refused_cycles(trace), faults=(), outputs={}, wall_seconds=1, cpu_seconds=1,
        retired=np.zeros(3), retired_total=3,
        gpsimd_cores=tuple(_core(trace, n) for n in range(len(cores_that_ran(trace)))),
    )  # fmt: skip
