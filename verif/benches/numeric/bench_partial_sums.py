"""Reductions against the golden model: groups of all lengths, bubbles inside them, every operator."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.isa import REDUCTIONS, AluOp
from rtl.numeric.partial_sums import PARTIALS, PartialSums
from verif.agents.bench import Bench
from verif.agents.values import random_codes
from verif.checks.coverage import Coverage
from verif.golden.alu import reduce

coverage = Coverage(
    "partial_sums",
    [op.name for op in REDUCTIONS] + ["one element", "fewer than the partial results", "more", "bubbles", "at once"],
)


async def group(bench: Bench, x: np.ndarray, op: AluOp, bubbles: float) -> int:
    """Send a group; its result."""
    dut = bench.dut
    edge = RisingEdge(bench.clk)
    for i, code in enumerate(x.tolist()):
        while bench.rng.random() < bubbles:
            dut.valid.value = 0
            dut.x.value = int(bench.rng.integers(1 << 32))
            coverage.hit("bubbles")
            await edge
        dut.valid.value = 1
        dut.x.value = code
        dut.op.value = int(op)
        dut.first.value = int(i == 0)
        dut.last.value = int(i == x.size - 1)
        await edge
    dut.valid.value = 0
    for _ in range(PartialSums.TREE - 1):
        await edge
    await edge
    return int(dut.out.value)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reduces(dut: Any) -> None:
    """Lengths around multiples of the partial results; numbers of like size, specials, random bits."""
    bench = Bench(dut)
    await bench.start()
    lengths = [1, 2, 7, 8, 9, 15, 16, 17, 33, *bench.rng.integers(1, 70, 6).tolist()]
    for length in lengths:
        for op in REDUCTIONS:
            flavour = str(bench.rng.choice(["bits", "special", "narrow"]))
            x = random_codes(bench.rng, (int(length),), "fp32", flavour).astype(np.uint32)
            if bench.rng.random() < 0.6:
                x = bench.rng.normal(size=length).astype(np.float32).view(np.uint32)
            bubbles = float(bench.rng.choice([0, 0.4]))
            got = await group(bench, x, op, bubbles)
            want = int(reduce(x[None], op)[0])
            assert got == want, f"{op.name} of {[hex(v) for v in x]}: {got:#x}, not {want:#x}"
            coverage.hit(op.name)
            coverage.when(length == 1, "one element")
            coverage.when(1 < length < PARTIALS, "fewer than the partial results")
            coverage.when(length > PARTIALS, "more")
            coverage.when(bubbles == 0, "at once")
    coverage.require_all()
