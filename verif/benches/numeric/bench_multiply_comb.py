"""FP32 multiplication without a register against the golden model."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, Timer

from rtl.contract.formats import FORMATS
from verif.agents.bench import Bench
from verif.agents.values import random_codes, single_bit_codes, special_codes
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.numeric import fp32_multiply

RUNS = (Run("fp32_product", faults=EVERY),)

coverage = Coverage("fp32_product", [*OUTCOMES, "subnormal factor", "both subnormal", "tie"])


async def check(bench: Bench, a: Any, b: Any) -> None:
    """Set inputs, wait, compare: there is no clock."""
    dut = bench.dut
    seen = np.zeros(a.size, np.uint32)
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        dut.a.value = x
        dut.b.value = y
        await ReadOnly()
        seen[i] = int(dut.out.value)
        await Timer(1, "ps")
    wanted = fp32_multiply(a, b)
    note_outcomes(coverage, wanted)
    small = [(x & 0x7FFFFFFF > 0) & (x & 0x7FFFFFFF < 1 << 23) for x in (a, b)]
    coverage.when(((small[0] ^ small[1]) & (wanted << np.uint32(1) > 0)).any(), "subnormal factor")
    coverage.when((small[0] & small[1]).any(), "both subnormal")
    exact = [(x.astype(np.uint64) & np.uint64(0x7FFFFF)) | np.uint64(1 << 23) for x in (a, b)]
    product = exact[0] * exact[1]
    below = np.where(product >> np.uint64(47), 24, 23).astype(np.uint64)
    rest = product & ((np.uint64(1) << below) - np.uint64(1))
    normal = (wanted & np.uint32(0x7F800000) > 0) & (wanted & np.uint32(0x7FFFFFFF) < 0x7F800000)
    coverage.when((normal & ~small[0] & ~small[1] & (rest == np.uint64(1) << (below - np.uint64(1)))).any(), "tie")
    expect_equal(seen, wanted, {"a": a, "b": b})


@cocotb.test()
async def multiplies(dut: Any) -> None:
    """Pairs of corners; random numbers; products around the smallest numbers; ties."""
    bench = Bench(dut)
    await bench.start()
    corners = special_codes(FORMATS["fp32"])
    a, b = (x.ravel().astype(np.uint32) for x in np.meshgrid(corners, corners))
    await check(bench, a, b)
    single = np.tile(single_bit_codes(FORMATS["fp32"]), 3)
    for other in (random_codes(bench.rng, single.shape, "fp32", "normal"), np.full_like(single, 0x7F800000)):
        await check(bench, single, other)
        await check(bench, other, single)
    for flavour in ("bits", "special", "narrow"):
        a, b = (random_codes(bench.rng, (1500,), "fp32", flavour).astype(np.uint32) for _ in range(2))
        await check(bench, a, b)
    rng = bench.rng
    exponents = rng.integers(0, 130, 2000)
    a = (exponents.astype(np.uint32) << np.uint32(23)) | rng.integers(0, 1 << 23, 2000).astype(np.uint32)
    other = np.clip(127 - exponents + rng.integers(-27, 6, 2000), 0, 254).astype(np.uint32)
    b = (other << np.uint32(23)) | rng.integers(0, 1 << 23, 2000).astype(np.uint32)
    await check(bench, a, b)
    # (2^12 + odd) * 1.5 and like it end exactly between two numbers
    odd = rng.integers(0, 1 << 22, 1000).astype(np.uint32) * np.uint32(2) + np.uint32(1)
    await check(bench, np.uint32(0x3F800000) | odd, np.full(1000, 0x3FC00000, np.uint32))
    coverage.require_all()
