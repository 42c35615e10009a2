"""What the golden hart leaves of records."""

import numpy as np
from numpy.typing import NDArray

from verif.checks.vector_records import MEMORY, Records, left_type
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Memory
from verif.golden.riscv.traps import Cause

__all__ = ["golden_left"]

CODE = 0x10000000
SIGILL, SIGSEGV = 4, 11


def golden_left(records: Records) -> tuple[NDArray[np.void], list[bytes]]:
    """Results of left_type, and what is in memory after each that may use it."""
    code, data = bytearray(4), bytearray(records.memory)
    memory = Memory()
    memory.add(CODE, code)
    memory.add(MEMORY, data, code=False)
    hart = Hart(memory, reset_pc=CODE, vlen=records.vlen)
    state = hart.vector
    assert state
    left = np.zeros(len(records.given), left_type(records.vlen))
    memories = []
    given = records.given
    heads = np.stack([given[name] for name in ("word", "vtype", "vl", "vxrm", "vxsat", "vstart", "memory")], 1).tolist()
    scalars, vectors = given["x"].tolist(), given["v"]
    results = []
    for number, (word, vtype, vl, vxrm, vxsat, vstart, uses_memory) in enumerate(heads):
        code[:] = word.to_bytes(4, "little")
        hart.x[:32] = scalars[number]
        hart.pc = CODE
        state.v[:] = vectors[number]
        state.vtype, state.vl, state.vxrm, state.vxsat, state.vstart, state.status = vtype, vl, vxrm, vxsat, vstart, 3
        if uses_memory:
            data[:] = records.memory
        retired = hart.step()
        signal = 0 if not retired.trap else SIGILL if retired.cause == Cause.ILLEGAL else SIGSEGV
        results.append([signal, state.vl, state.vtype, state.vxsat, state.vxrm, state.vstart, *hart.x[:32]])
        left["v"][number] = state.v
        if uses_memory:
            memories.append(bytes(data))
    table = np.array(results, np.uint32)
    for column, name in enumerate(("signal", "vl", "vtype", "vxsat", "vxrm", "vstart")):
        left[name] = table[:, column]
    left["x"] = table[:, 6:]
    return left, memories
