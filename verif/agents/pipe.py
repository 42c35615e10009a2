"""A fixed-latency pipeline without handshake: one element a cycle in, one a cycle out."""

from collections.abc import Mapping

import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from verif.agents.bench import Bench

__all__ = ["push"]


async def push(bench: Bench, inputs: Mapping[str, NDArray[np.uint32]], output: str, latency: int) -> NDArray[np.uint32]:
    """Drive element i of every input in cycle i; element i of the answer is `output` in cycle i + latency."""
    handles = [getattr(bench.dut, name) for name in inputs]
    columns = [[int(v) for v in values] for values in inputs.values()]
    out = getattr(bench.dut, output)
    edge = RisingEdge(bench.clk)
    count = len(columns[0])
    seen = np.zeros(count, dtype=np.uint32)
    for i in range(count + latency):
        if i < count:
            for handle, column in zip(handles, columns, strict=True):
                handle.value = column[i]
        await edge
        if i >= latency:
            seen[i - latency] = int(out.value)
    return seen
