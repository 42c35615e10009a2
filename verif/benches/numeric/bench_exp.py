"""exp unit against the golden model: corners, every binade, results of all kinds, differences that round."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.exp_table import INDEX_BITS
from rtl.contract.formats import FORMATS
from rtl.numeric.functions.exp import Exp
from verif.agents.bench import Bench
from verif.agents.pipe import push
from verif.agents.values import companions, random_codes, special_codes
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import expect_equal
from verif.golden.exp import exp

RUNS = (Run("exp", faults=EVERY),)

coverage = Coverage(
    "exp",
    ["nan", "infinity", "overflow", "normal", "subnormal", "zero from underflow", "zero from -infinity", "one"]
    + ["whole number of log2(e) below zero", "m is not zero", "every entry of the table, both ends"],
)
ENTRIES = 1 << INDEX_BITS


async def check(bench: Bench, x: Any, m: Any) -> None:
    """Push and compare."""
    inputs = {"x": x.astype(np.uint32), "m": np.broadcast_to(m, x.shape).astype(np.uint32)}
    wanted = exp(inputs["x"], inputs["m"])
    seen = await push(bench, inputs, "out", Exp.LATENCY)
    with np.errstate(all="ignore"):
        d = inputs["x"].view(np.float32) - inputs["m"].view(np.float32)
    value = wanted.view(np.float32)
    coverage.when(np.isnan(value).any(), "nan")
    coverage.when((np.isposinf(d) & np.isposinf(value)).any(), "infinity")
    coverage.when((np.isfinite(d) & np.isposinf(value)).any(), "overflow")
    coverage.when((value >= 2.0**-126).any(), "normal")
    coverage.when(((value > 0) & (value < 2.0**-126)).any(), "subnormal")
    coverage.when((np.isfinite(d) & (wanted == 0)).any(), "zero from underflow")
    coverage.when((np.isneginf(d) & (wanted == 0)).any(), "zero from -infinity")
    coverage.when((wanted == 0x3F800000).any(), "one")
    coverage.when(((d < -1) & (value > 0)).any(), "whole number of log2(e) below zero")
    coverage.when((inputs["m"] << np.uint32(1)).any(), "m is not zero")
    expect_equal(seen, wanted, inputs)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def corners_and_binades(dut: Any) -> None:
    """Pairs of special numbers; every exponent with both signs."""
    bench = Bench(dut)
    await bench.start()
    corners = special_codes(FORMATS["fp32"])
    x, m = np.meshgrid(corners, corners)
    await check(bench, x.ravel(), m.ravel())
    codes = (np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23)) | bench.rng.integers(0, 1 << 23, (512, 3))
    await check(bench, codes.ravel(), np.zeros(1, np.uint32))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def entries_of_the_table(dut: Any) -> None:
    """A fraction just above the start and one just below the end of every entry, with a few whole numbers."""
    bench = Bench(dut)
    await bench.start()
    index = np.arange(ENTRIES)[:, None] + np.array([1e-3, 1 - 1e-3])
    whole = bench.rng.integers(-6, 6, (4, ENTRIES, 2))
    d = ((whole + index / ENTRIES) * np.log(2)).astype(np.float32).ravel()
    await check(bench, d.view(np.uint32), np.zeros(1, np.uint32))
    place = (d.astype(np.float64) / np.log(2)) % 1 * ENTRIES
    near = np.unique(np.stack([place.astype(np.int64), np.rint(place % 1).astype(np.int64)], axis=1), axis=0)
    coverage.when(len(near) == 2 * ENTRIES, "every entry of the table, both ends")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def random_differences(dut: Any) -> None:
    """The whole range of results, and differences that are rounded."""
    bench = Bench(dut)
    await bench.start()
    x = bench.rng.uniform(-110, 92, 16000).astype(np.float32)
    await check(bench, x.view(np.uint32), np.zeros(1, np.uint32))
    m = bench.rng.uniform(-20, 20, 4000).astype(np.float32)
    await check(bench, (x[: m.size] + m).view(np.uint32), m.view(np.uint32))
    small = bench.rng.uniform(-104, -87, 6000).astype(np.float32)  # near a tie once in some hundred
    await check(bench, small.view(np.uint32), np.zeros(1, np.uint32))
    wild = random_codes(bench.rng, (2000,), "fp32", "special")
    await check(bench, wild, companions(bench.rng, wild))
    coverage.require_all()
