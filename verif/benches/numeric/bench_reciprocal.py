"""1 / x against the golden model: corners, every exponent, results that are subnormal or overflow."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.formats import FORMATS
from rtl.numeric.reciprocal import Reciprocal
from verif.agents.bench import Bench
from verif.agents.values import special_codes
from verif.checks.coverage import Coverage
from verif.checks.outcomes import expect_equal
from verif.golden.numeric import fp32_reciprocal

coverage = Coverage(
    "reciprocal", ["power of two", "subnormal x", "subnormal result", "infinity", "zero", "nan", "pause"]
)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def divides(dut: Any) -> None:
    """One after the other, some with a pause between."""
    bench = Bench(dut)
    await bench.start()
    rng = bench.rng
    binades = (np.arange(512, dtype=np.uint32) << np.uint32(23)) | rng.integers(0, 1 << 23, 512).astype(np.uint32)
    powers = np.arange(512, dtype=np.uint32) << np.uint32(23)
    small = rng.integers(0, 1 << 23, 100).astype(np.uint32) >> rng.integers(0, 20, 100).astype(np.uint32)
    large = (np.uint32(252) << np.uint32(23)) + rng.integers(0, 3 << 23, 100).astype(np.uint32)
    wild = rng.integers(0, 1 << 32, 400, dtype=np.uint32)
    x = np.concatenate([special_codes(FORMATS["fp32"]).astype(np.uint32), binades, powers, small, large, wild])
    seen = np.zeros(x.size, np.uint32)
    edge = RisingEdge(bench.clk)
    for i, code in enumerate(x.tolist()):
        dut.x.value = code
        dut.start.value = 1
        await edge
        dut.start.value = 0
        dut.x.value = int(rng.integers(1 << 32))
        pause = int(rng.integers(3)) if rng.random() < 0.2 else 0
        coverage.when(pause > 0, "pause")
        for _ in range(Reciprocal.LATENCY + pause):
            await edge
        seen[i] = int(dut.out.value)
    wanted = fp32_reciprocal(x)
    size, result = x & np.uint32(0x7FFFFFFF), wanted & np.uint32(0x7FFFFFFF)
    coverage.when(((size & 0x7FFFFF == 0) & (size > 0) & (size < 0x7F800000)).any(), "power of two")
    coverage.when(((size > 0) & (size < 1 << 23)).any(), "subnormal x")
    coverage.when(((result > 0) & (result < 1 << 23)).any(), "subnormal result")
    coverage.when((result == 0x7F800000).any(), "infinity")
    coverage.when((result == 0).any(), "zero")
    coverage.when((result > 0x7F800000).any(), "nan")
    expect_equal(seen, wanted, {"x": x})
    coverage.require_all()
