"""Reciprocal against the golden model: corners, every exponent, results around the smallest and largest numbers.

Starts come back to back, after pauses, and (to be ignored) while the unit is busy.
"""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.formats import FORMATS
from rtl.numeric.fp32.reciprocal import Reciprocal
from verif.agents.bench import Bench
from verif.agents.values import random_codes, special_codes
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.reciprocal import reciprocal

RUNS = (Run("reciprocal", faults=EVERY),)

coverage = Coverage(
    "reciprocal",
    [*OUTCOMES, "negative infinity", "power of two", "subnormal in", "subnormal power of two out", "overflow"]
    + ["back to back", "pause", "start while busy"],
)


async def check(bench: Bench, x: Any) -> None:
    """One after the other; compare results and the cycles of `busy` and `done`."""
    dut = bench.dut
    edge = RisingEdge(bench.clk)
    rng = bench.rng
    wanted = reciprocal(x)
    note_outcomes(coverage, wanted)
    size, result = (v & np.uint32(0x7FFFFFFF) for v in (x, wanted))
    finite = (size > 0) & (size < 0x7F800000)
    coverage.when((wanted == 0xFF800000).any(), "negative infinity")
    coverage.when((finite & (x & np.uint32(0x7FFFFF) == 0)).any(), "power of two")
    coverage.when((finite & (size < 1 << 23) & (result < 0x7F800000)).any(), "subnormal in")
    coverage.when((result == 1 << 22).any(), "subnormal power of two out")
    coverage.when((finite & (result == 0x7F800000)).any(), "overflow")
    seen = np.zeros(x.size, np.uint32)
    codes = x.tolist()
    taken, age, pause = 0, Reciprocal.LATENCY + 1, 0  # starts so far; cycles since the last one
    while taken < x.size or age <= Reciprocal.LATENCY + 1:
        free = age >= Reciprocal.LATENCY
        if free and pause == 0 and taken < x.size:
            start, dut.x.value = True, codes[taken]
            coverage.when(taken and age == Reciprocal.LATENCY, "back to back")
        else:
            start = not free and bool(rng.random() < 0.1)
            dut.x.value = int(rng.integers(1 << 32))
            coverage.when(start, "start while busy")
            coverage.when(free, "pause")
            pause = max(pause - free, 0)
        dut.start.value = int(start)
        await edge  # behind it, handles show what was there before
        assert int(dut.busy.value) == (not free), f"busy {age} cycles after start"
        assert int(dut.done.value) == (age == Reciprocal.LATENCY), f"done {age} cycles after start"
        if free and taken:
            assert age == Reciprocal.LATENCY or seen[taken - 1] == int(dut.out.value), "the result did not stay"
            seen[taken - 1] = int(dut.out.value)
        age += 1
        if start and free:
            taken, age = taken + 1, 1
            pause = int(rng.integers(1, 4)) if rng.random() < 0.1 else 0
    expect_equal(seen, wanted, {"x": x})


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def inverts(dut: Any) -> None:
    """Corners; each exponent; powers of two; random bits."""
    bench = Bench(dut)
    dut.start.value = 0
    await bench.start()
    rng = bench.rng
    sign = np.uint32(1 << 31)
    fields = np.arange(255, dtype=np.uint32) << np.uint32(23)
    subnormal = (np.uint32(1) << np.arange(23, dtype=np.uint32)) | rng.integers(0, 1 << 8, 23).astype(np.uint32)
    near_one = np.uint32(0x3F800000) + rng.integers(-40, 40, 60).astype(np.uint32)
    largest = np.uint32(0x00200000) + rng.integers(-4, 5, 40).astype(np.uint32)
    x = np.concatenate(
        [
            special_codes(FORMATS["fp32"]),
            fields,
            fields | rng.integers(0, 1 << 23, 255).astype(np.uint32),
            np.uint32(1) << np.arange(23, dtype=np.uint32),
            subnormal,
            near_one,
            largest,
            random_codes(rng, (500,), "fp32", "bits"),
        ]
    ).astype(np.uint32)
    x ^= np.where(rng.random(x.size) < 0.3, sign, np.uint32(0))
    zeros = np.array([0x7F800000, 0xFF800000, 0, 1 << 31], np.uint32)
    await check(bench, np.concatenate([rng.permutation(x), zeros]))
    coverage.require_all()
