"""GpsimdEngine: random programs on its cores leave what the golden engine leaves, and end as it does."""

import itertools

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.gpsimd import Counter, Mailbox, Region, lane_address, row_address
from verif.agents.bench import manifest
from verif.bench import Run
from verif.benches.gpsimd.engine_driver import FIRST_GP_CYCLES, LAST_GP_CYCLES, EngineDriver
from verif.checks import riscv_words as w
from verif.checks.coverage import Coverage
from verif.checks.gpsimd_program import by_lane, gp_load, gp_run, gp_store, pattern
from verif.checks.gpsimd_random import ENDS, engine_program

CYCLES = {"SBUF": (48, 32), "shared memory": (48, 32), "a register": (17, 17)}
"""Of a core's sixteen loads and sixteen stores, seen by the next instruction."""
LOCAL_CYCLES = {4: (25, 17), 8: (21, 17)}
"""The same in local memory, by lanes: lines of code wait for a cycle without a load."""

ROW_CYCLES = 11
"""Of a load or a store of eight registers, seen by the next instruction."""

_BASE = 11

_FAULTS = (
    "a store of a byte writes the whole word",
    "a load reads the bank beside",
    "a core reaches partitions behind its own",
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
    "a trace has another state",
)

_LANE_FAULTS = (
    "a row of lanes that is stored in part is taken for whole",
    "the half of a word that is kept is the other one",
    "bytes that one core writes are written of all",
    "a load or store does not wait for those of vectors",
)

RUNS = (
    Run("gpsimd_engine", config=load("tiny"), faults=_FAULTS),
    Run("gpsimd_engine", config=load("tiny", ["gpsimd.vectors=true"]), seeds=(1,), faults=_LANE_FAULTS),
    Run("gpsimd_engine", config=load("small", ["gpsimd.vectors=true"]), regress=True),
)

COVER = Coverage("gpsimd.engine", [*(f"end: {end}" for end in ENDS), "sbuf refuses", "sleeps", "waits for others"])


@cocotb.test(timeout_time=8000, timeout_unit="us")
@cocotb.parametrize(style=["never", "mostly"])
async def leaves_what_golden_leaves(dut, style):
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    driver = EngineDriver(dut, rng, style)
    await driver.start()
    ends = itertools.chain(ENDS, ("done", "tohost") * 6)
    for end in ends:
        await driver.run(engine_program(int(rng.integers(1 << 32)), driver.cfg, end))
        await driver.check_counters()
        COVER.hit(f"end: {end}")
    COVER.when(driver.states[Counter.SBUF], "sbuf refuses")
    COVER.when(driver.states[Counter.SLEEP], "sleeps")
    COVER.when(driver.states[Counter.SEMAPHORE], "waits for others")
    first, last = (cycles // 2 for cycles in driver.longest)
    assert style != "never" or (first <= FIRST_GP_CYCLES and last <= LAST_GP_CYCLES), (first, last)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def refuses_what_golden_refuses(dut):
    """Each reason, and the next that does not break the rule."""
    driver = EngineDriver(dut, np.random.default_rng(cocotb.RANDOM_SEED), "never")
    await driver.start()
    lanes, count, end = driver.lanes, driver.cores, driver.cfg.gpsimd.local_bytes
    loads, stores = pattern("src0", 0, lanes, 0, 4), pattern("dst", 0, lanes, 0, 4)
    fewer, more = pattern("src0", 0, lanes // 2, 0, 4), pattern("src0", 0, 2 * lanes, 0, 4)
    row, entry = 4 * lanes, Region.LOCAL
    words = [
        gp_run(entry, 1),
        *(gp_load(loads, mask, row) for mask in (0, 1 << count, 1 << count | 1, (1 << count) - 1)),
        *(gp_run(entry, mask) for mask in (0, 1 << count, 255)),
        *(gp_store(stores, mask) for mask in (0, 3, 1 << count, (1 << count) - 1)),
        *(gp_load(source, 1) for source in (fewer, more)),
        *(gp_load(loads | {f"src0_count{k}": 2}, 1) for k in (1, 2, 3)),
        *(gp_store(stores | {f"dst_count{k}": 2}, 1) for k in (1, 2, 3)),
        *(gp_load(loads, 1, 1 << n) for n in range(2, 32)),
        *(gp_load(loads, 1, end - n * row) for n in (3, 4)),
        *(gp_store(stores, 1, end - n * row) for n in (3, 4)),
        gp_load(loads, 1, end),
        gp_load(pattern("src0", 0, lanes, 0, 65535, step=0), 1),
        gp_run(entry, 1),  # one has been filled, for a program before
    ]
    for word in words:
        await driver.new_program()
        await driver.refuse(word)


async def _cycles(driver: EngineDriver, parts: list[tuple[bytes, bytes]]) -> list[int]:
    """Between two looks at mcycle, of the second code of each part, behind the first; by core 0, which is alone."""
    await driver.start()
    await driver.new_program()
    mark, code = 10, b""
    for n, (prepare, timed) in enumerate(parts):
        code += prepare + w.immediate(0x73, 2, mark, 0, 0xB00) + timed
        code += w.immediate(0x73, 2, 13 + n, 0, 0xB00) + w.register(0x20, 0, 13 + n, 13 + n, mark)
    code += w.load_constant(_BASE, row_address(0, 2048))
    code += b"".join(w.store(2, 13 + n, _BASE, 4 * n) for n in range(len(parts)))
    code += w.load_constant(_BASE, Region.MAILBOX) + w.store(2, 0, _BASE, Mailbox.DONE) + w.jump(0, 0)
    rows = by_lane(code, driver.lanes)
    driver.sbuf.bytes[: driver.lanes, 4096 : 4096 + rows.shape[1]] = rows
    source = pattern("src0", 0, driver.lanes, 4096, rows.shape[1] // 4)
    for word in (gp_load(source, 1), gp_run(Region.LOCAL, 1)):
        driver.commands.send([word])
        await driver.ended(len(driver.ends) + 1)
    assert driver.ends == [(0, 0)] * 2
    return driver.sbuf.bytes[0, 2048 : 2048 + 4 * len(parts)].view("<u4").tolist()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def takes_the_cycles_it_says(dut):
    """Sixteen loads or stores of each kind by one core that is alone."""
    driver = EngineDriver(dut, np.random.default_rng(cocotb.RANDOM_SEED), "never")
    places = {
        "local memory": Region.LOCAL + 0x800,
        "SBUF": row_address(0, 1024),
        "shared memory": Region.SHARED,
        "a register": Region.MAILBOX + Mailbox.WAIT_VALUE,
    }
    accesses = (w.immediate(0x03, 2, 12, _BASE, 0), w.store(2, 12, _BASE, 0))
    cycles = await _cycles(
        driver, [(w.load_constant(_BASE, place), 16 * access) for place in places.values() for access in accesses]
    )
    took = {name: (cycles[2 * n], cycles[2 * n + 1]) for n, name in enumerate(places)}
    dut._log.info("cycles of 16 loads, of 16 stores: %s; begin and end %s", took, [c // 2 for c in driver.longest])
    assert took == {"local memory": LOCAL_CYCLES[driver.lanes], **CYCLES}, took


@cocotb.test(timeout_time=1000, timeout_unit="us", skip=not manifest().config.gpsimd.vectors)
async def takes_the_cycles_of_rows(dut):
    """A load and a store of eight registers: lanes of SBUF from the first or second column on, and local memory."""
    driver = EngineDriver(dut, np.random.default_rng(cocotb.RANDOM_SEED), "never")
    load_row, store_row = (w.word(0x0200_6007 | n << 5 | _BASE << 15 | 8 << 7) for n in (0, 1))
    on = w.load_constant(12, 0x600) + w.immediate(0x73, 2, 0, 12, 0x300)
    on += w.word(0x0130_7657)  # vsetvli x12, x0, e32, m8
    places = [Region.SBUF_LANES, lane_address(0, 4, driver.lanes), Region.LOCAL + 0x1000]
    parts = [(w.load_constant(_BASE, place), access) for place in places for access in (load_row, store_row)]
    parts[0] = on + parts[0][0], parts[0][1]
    took = await _cycles(driver, parts)
    dut._log.info("cycles of a load and a store of eight registers: %s", took)
    assert took == [ROW_CYCLES] * len(parts), took


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
