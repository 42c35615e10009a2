"""GpsimdEngine: random programs on its cores leave what the golden engine leaves, and end as it does."""

import itertools

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.gpsimd import Counter
from verif.bench import Run
from verif.benches.gpsimd.engine_driver import FIRST_GP_CYCLES, LAST_GP_CYCLES, EngineDriver
from verif.checks.coverage import Coverage
from verif.checks.gpsimd_random import ENDS, engine_program

_FAULTS = (
    "a store of a byte writes the whole word",
    "a load reads the bank beside",
    "a core reaches partitions behind its own",
    "a core's old condition wakes it from a new wait",
    "the timer of a core is never due",
    "a core's set of a semaphore adds",
    "a core writes the partition beside",
    "a stored row has a bit turned",
    "the last row of an image is not loaded",
    "the watchdog of a run sleeps",
    "other cores go on behind a failure",
    "a run is done before its stores have committed",
    "an image leaves local memory",
    "a core without an image runs",
    "a barrier opens for the first who comes",
    "the clock of a core that sleeps goes on",
    "a counter of a core goes on from the one beside",
    "what the last program counted of a core stays",
    "images of the last program can be run",
)

RUNS = (
    Run("gpsimd_engine", config=load("tiny"), faults=_FAULTS),
    Run("gpsimd_engine", config=load("small"), regress=True),
)

COVER = Coverage("gpsimd.engine", [*(f"end: {end}" for end in ENDS), "sbuf refuses", "sleeps", "waits for others"])


@cocotb.test(timeout_time=4000, timeout_unit="us")
@cocotb.parametrize(style=["never", "half"])
async def leaves_what_golden_leaves(dut, style):
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    driver = EngineDriver(dut, rng, style)
    await driver.start()
    ends = itertools.chain(ENDS, ("done",) * 10)
    for end in ends:
        await driver.run(engine_program(int(rng.integers(1 << 32)), driver.cfg, end))
        COVER.hit(f"end: {end}")
    COVER.when(driver.states[Counter.SBUF], "sbuf refuses")
    COVER.when(driver.states[Counter.SLEEP], "sleeps")
    COVER.when(driver.states[Counter.SEMAPHORE], "waits for others")
    first, last = (cycles // 2 for cycles in driver.longest)
    assert style != "never" or (first <= FIRST_GP_CYCLES and last <= LAST_GP_CYCLES), (first, last)
