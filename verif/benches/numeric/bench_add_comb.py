"""FP32 addition without a register against the golden model."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, Timer

from rtl.contract.formats import FORMATS
from verif.agents.bench import Bench
from verif.agents.values import companions, random_codes, single_bit_codes, special_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.numeric import fp32_add

_PLANTED = (
    "bits shifted out by alignment are forgotten",
    "a difference of zero has a sign",
    "a sum rounds ties up, not to even",
    "a subnormal sum becomes zero",
    "a NaN of a sum keeps its sign",
)

RUNS = (Run("fp32_sum", faults=_PLANTED),)

coverage = Coverage("fp32_sum", [*OUTCOMES, "subtracts", "full cancellation"])


async def check(bench: Bench, a: Any, b: Any) -> None:
    """Set inputs, wait, compare: there is no clock."""
    dut = bench.dut
    for subtract in (0, 1):
        dut.subtract.value = subtract
        seen = np.zeros(a.size, np.uint32)
        for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            dut.a.value = x
            dut.b.value = y
            await ReadOnly()
            seen[i] = int(dut.out.value)
            await Timer(1, "ps")
        wanted = fp32_add(a, b ^ np.uint32(subtract << 31))
        nan = (b & np.uint32(0x7FFFFFFF)) > 0x7F800000
        wanted[nan] = 0x7FC00000
        note_outcomes(coverage, wanted)
        coverage.when(subtract == 1, "subtracts")
        coverage.when(((a == b) & (wanted == 0)).any(), "full cancellation")
        expect_equal(seen, wanted, {"a": a, "b": b})


@cocotb.test()
async def adds_and_subtracts(dut: Any) -> None:
    """Pairs of corners, and random numbers biased to cancellation, near exponents and subnormals."""
    bench = Bench(dut)
    await bench.start()
    corners = special_codes(FORMATS["fp32"])
    a, b = (x.ravel().astype(np.uint32) for x in np.meshgrid(corners, corners))
    await check(bench, a, b)
    single = np.tile(single_bit_codes(FORMATS["fp32"]), 2)
    await check(bench, single, companions(bench.rng, single))
    await check(bench, companions(bench.rng, single), single)
    for flavour in ("bits", "special", "narrow"):
        a = random_codes(bench.rng, (1500,), "fp32", flavour).astype(np.uint32)
        await check(bench, a, companions(bench.rng, a).astype(np.uint32))
    small = random_codes(bench.rng, (1000,), "fp32", "bits").astype(np.uint32) & np.uint32(0x81FFFFFF)
    await check(bench, small, companions(bench.rng, small).astype(np.uint32) & np.uint32(0x81FFFFFF))
    coverage.require_all()
