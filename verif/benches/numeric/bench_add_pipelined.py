"""FP32 adder against the golden model: corners, cancellation, every distance of exponents."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.formats import FORMATS
from rtl.numeric.fp32.add_pipelined import Fp32AddPipelined
from verif.agents.bench import Bench
from verif.agents.pipe import push
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
    "a subnormal `a` is read with a hidden 1",
    "a NaN of a sum keeps its sign",
)

RUNS = (Run("fp32_add", faults=_PLANTED),)

coverage = Coverage("fp32_add", [*OUTCOMES, "both subnormal", "full cancellation", "far apart"])


async def check(bench: Bench, a: Any, b: Any) -> None:
    """Push and compare."""
    inputs = {"a": a.astype(np.uint32), "b": b.astype(np.uint32)}
    wanted = fp32_add(inputs["a"], inputs["b"])
    seen = await push(bench, inputs, "out", Fp32AddPipelined.LATENCY)
    note_outcomes(coverage, wanted)
    fields = [(inputs[n] >> np.uint32(23)).astype(np.int64) & 255 for n in ("a", "b")]
    coverage.when(((fields[0] == 0) & (fields[1] == 0)).any(), "both subnormal")
    coverage.when((inputs["a"] == (inputs["b"] ^ np.uint32(1 << 31))).any(), "full cancellation")
    coverage.when((abs(fields[0] - fields[1]) > 28).any(), "far apart")
    expect_equal(seen, wanted, inputs)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def adds_all_pairs_of_corners(dut: Any) -> None:
    """Zeros, infinities, NaNs, largest, smallest, one and its neighbours; then one bit alone with anything."""
    bench = Bench(dut)
    await bench.start()
    corners = special_codes(FORMATS["fp32"])
    a, b = np.meshgrid(corners, corners)
    await check(bench, a.ravel(), b.ravel())
    single = np.tile(single_bit_codes(FORMATS["fp32"]), 4)
    await check(bench, single, companions(bench.rng, single))
    await check(bench, companions(bench.rng, single), single)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def adds_random_numbers(dut: Any) -> None:
    """Biased to cancellation, near exponents, subnormals and specials."""
    bench = Bench(dut)
    await bench.start()
    for flavour in ("bits", "special", "narrow"):
        a = random_codes(bench.rng, (3000,), "fp32", flavour)
        await check(bench, a, companions(bench.rng, a))
    small = random_codes(bench.rng, (2000,), "fp32", "bits") & np.uint32(0x81FFFFFF)
    await check(bench, small, companions(bench.rng, small) & np.uint32(0x81FFFFFF))
    coverage.require_all()
