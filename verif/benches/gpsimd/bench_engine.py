"""GpsimdEngine: random programs on its cores leave what the golden engine leaves, and end as it does."""

import itertools
import random

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.gpsimd import SHARED_BYTES, Counter, Mailbox, Region, lane_address, row_address
from rtl.contract.isa import Cause
from verif.agents.bench import manifest
from verif.bench import Run, noticed_by
from verif.benches.gpsimd.copy_ring import SLOTS
from verif.benches.gpsimd.engine_counters import check_counters, told
from verif.benches.gpsimd.engine_driver import FIRST_GP_CYCLES, LAST_GP_CYCLES, EngineDriver
from verif.checks import riscv_words as w
from verif.checks.coverage import Coverage
from verif.checks.gpsimd_copies import descriptors
from verif.checks.gpsimd_program import by_lane, gp_load, gp_run, gp_store, pattern
from verif.checks.gpsimd_random import ENDS, EngineProgram, engine_program
from verif.checks.gpsimd_statements import WFI

CYCLES = {"SBUF": (48, 32), "shared memory": (48, 32), "a register": (17, 17)}
"""Of a core's sixteen loads and sixteen stores, seen by the next instruction."""
LOCAL_CYCLES = {4: (25, 17), 8: (21, 17)}
"""The same in local memory, by lanes: lines of code wait for a cycle without a load."""

ROW_CYCLES = 11
"""Of a load or a store of eight registers, seen by the next instruction."""

PUSH_CYCLES = {4: 12, 8: 8, 16: 6}
"""Of a store to DMA_PUSH while nothing is under way, by lanes; the same again if the DMA takes one at once."""

_BASE, _DATA = 11, 0x400

_FAULTS = (
    "a store of a byte writes the whole word",
    "a load reads the bank beside",
    "a core reaches partitions behind its own",
    "the timer of a core is never due",
    "time stands still for cores",
    "a core's set of a semaphore adds",
    "a core writes the partition beside",
    "a stored row has a bit turned",
    "the last row of an image is not loaded",
    "the watchdog of a run sleeps",
    "other cores go on behind a failure",
    "a run is done before its stores have committed",
    "a copy of a core that has completed is not counted",
    "a line of a descriptor is read in another's place",
    "a descriptor is read from anywhere",
    "a run is done before its copies",
    "a copy that fails behind the last core is not told",
    "a barrier opens for the first who comes",
    "the clock of a core that sleeps goes on",
    "a core sleeps although a load is under way",
    "a counter of a core goes on from the one beside",
    "what the last program counted of a core stays",
    "a trace has another state",
    *noticed_by(
        "refuses_what_golden_refuses",
        "an image leaves local memory",
        "a core without an image runs",
        "images of the last program can be run",
    ),
)

_LANE_FAULTS = (
    "a row of lanes that is stored in part is taken for whole",
    "the half of a word that is kept is the other one",
    "bytes that one core writes are written of all",
    *noticed_by(
        "rows_of_shared_memory_are_those_of_their_core",
        "a load or store does not wait for those of vectors",
        "a row of shared memory goes to the core beside",
    ),
)

_SLOW = ("gpsimd.clock_mhz=600", "gpsimd.vectors=false")

RUNS = (
    Run("gpsimd_engine", config=load("tiny", ["gpsimd.vectors=false"]), faults=_FAULTS),
    Run("gpsimd_engine", config=load("tiny"), seeds=(1,), faults=_LANE_FAULTS),
    Run("gpsimd_engine", config=load("tiny", _SLOW), seeds=(1,), regress=True),  # an edge in four root cycles
    Run("gpsimd_engine", config=load("tiny"), seeds=tuple(range(100, 110)), regress=True),
    Run("gpsimd_engine", config=load("small"), regress=True),
)

_SEEN = ("sbuf refuses", "sleeps", "waits for others", "a push waits", "four copies under way")
COVER = Coverage("gpsimd.engine", [*(f"end: {end}" for end in ENDS), *_SEEN])


def _all_of_shared_memory() -> EngineProgram:
    """Its words to two partitions: a store that went there by mistake is seen."""
    code = w.load_constant(10, Region.SHARED)
    for lane in range(2):
        end = Region.SHARED + (lane + 1) * SHARED_BYTES // 2
        code += w.load_constant(11, row_address(lane, 0)) + w.load_constant(12, end)
        code += w.immediate(0x03, 2, 13, 10, 0) + w.store(2, 13, 11, 0) + w.immediate(0x13, 0, 10, 10, 4)
        code += w.immediate(0x13, 0, 11, 11, 4) + w.branch(6, 10, 12, -16)
    code += w.load_constant(_BASE, Region.MAILBOX) + w.store(2, 0, _BASE, Mailbox.DONE) + w.jump(0, 0)
    return EngineProgram({0: code}, "done", Cause.NONE)


@cocotb.test(timeout_time=8000, timeout_unit="us")
@cocotb.parametrize(style=["never", "mostly"])
async def leaves_what_golden_leaves(dut, style):
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    driver = EngineDriver(dut, rng, style)
    await driver.start()
    ends = itertools.chain(ENDS, ("done", "tohost") * (2 if style == "never" else 0))
    for end in ends:
        program = engine_program(int(rng.integers(1 << 32)), driver.cfg, end)
        await driver.run(program)
        await check_counters(driver, program)
        COVER.hit(f"end: {end}")
    await driver.run(_all_of_shared_memory())
    COVER.when(driver.states[Counter.SBUF], "sbuf refuses")
    COVER.when(driver.states[Counter.SLEEP], "sleeps")
    COVER.when(driver.states[Counter.SEMAPHORE], "waits for others")
    COVER.when(driver.states[Counter.DMA], "a push waits")
    COVER.when(driver.copies.most == SLOTS, "four copies under way")
    first, last = (cycles // driver.root_cycles for cycles in driver.longest)
    assert style != "never" or (first <= FIRST_GP_CYCLES and last <= LAST_GP_CYCLES), (first, last)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def is_left_in_its_midst(dut):
    """A program, from which the reset of the next test takes the engine; it leaves shared memory as it is."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    driver = EngineDriver(dut, rng, "never")
    await driver.start()
    await driver.new_program()
    await driver.begin(engine_program(int(rng.integers(1 << 32)), driver.cfg, "watchdog"), int(rng.integers(200, 2000)))


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


async def _execute(driver: EngineDriver, image: bytes, mask: int) -> None:
    """Some cores, from the first byte of local memory on, which is `image`."""
    await driver.start()
    await driver.new_program()
    rows = by_lane(image, driver.lanes)
    driver.sbuf.bytes[: driver.lanes, 4096 : 4096 + rows.shape[1]] = rows
    source = pattern("src0", 0, driver.lanes, 4096, rows.shape[1] // 4)
    for word in (gp_load(source, mask), gp_run(Region.LOCAL, mask)):
        driver.commands.send([word])
        await driver.ended(len(driver.ends) + 1)
    assert driver.ends == [(0, 0)] * 2


async def _cycles(driver: EngineDriver, parts: list[tuple[bytes, bytes]], data: bytes = b"") -> list[int]:
    """Between two looks at mcycle, of the second code of each part, behind the first; by core 0, which is alone, with
    `data` from local byte _DATA on."""
    mark, code = 10, b""
    for n, (prepare, timed) in enumerate(parts):
        code += prepare + w.immediate(0x73, 2, mark, 0, 0xB00) + timed
        code += w.immediate(0x73, 2, 13 + n, 0, 0xB00) + w.register(0x20, 0, 13 + n, 13 + n, mark)
    code += w.load_constant(_BASE, row_address(0, 2048))
    code += b"".join(w.store(2, 13 + n, _BASE, 4 * n) for n in range(len(parts)))
    code += w.load_constant(_BASE, Region.MAILBOX) + w.store(2, 0, _BASE, Mailbox.DONE) + w.jump(0, 0)
    assert len(code) <= _DATA
    await _execute(driver, code.ljust(_DATA, b"\0") + data if data else code, 1)
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


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def takes_the_cycles_of_a_push(dut):
    """One, and one more behind it."""
    driver = EngineDriver(dut, np.random.default_rng(cocotb.RANDOM_SEED), "never")
    copies = descriptors(random.Random(cocotb.RANDOM_SEED), driver.cfg, 0)
    ready = w.load_constant(_BASE, Region.MAILBOX + Mailbox.DMA_PUSH) + w.load_constant(12, Region.LOCAL + _DATA)
    store = w.store(2, 12, _BASE, 0)
    took = await _cycles(driver, [(ready, store), (b"", store)], copies)
    dut._log.info("cycles of two pushes: %s", took)
    assert took == [PUSH_CYCLES[driver.lanes]] * 2, took


@cocotb.test(timeout_time=1000, timeout_unit="us", skip=not manifest().config.gpsimd.vectors)
async def takes_the_cycles_of_rows(dut):
    """A load and a store of eight registers: SBUF from the first or second column on, local and shared memory."""
    driver = EngineDriver(dut, np.random.default_rng(cocotb.RANDOM_SEED), "never")
    load_row, store_row = (w.word(0x0200_6007 | n << 5 | _BASE << 15 | 8 << 7) for n in (0, 1))
    on = w.load_constant(12, 0x600) + w.immediate(0x73, 2, 0, 12, 0x300)
    on += w.word(0x0130_7657)  # vsetvli x12, x0, e32, m8
    places = [Region.SBUF_LANES, lane_address(0, 4, driver.lanes), Region.LOCAL + 0x1000, Region.SHARED + 0x400]
    parts = [(w.load_constant(_BASE, place), access) for place in places for access in (load_row, store_row)]
    parts[0] = on + parts[0][0], parts[0][1]
    took = await _cycles(driver, parts)
    dut._log.info("cycles of a load and a store of eight registers: %s", took)
    assert took == [ROW_CYCLES] * len(parts), took


@cocotb.test(timeout_time=1000, timeout_unit="us", skip=not manifest().config.gpsimd.vectors)
async def rows_of_shared_memory_are_those_of_their_core(dut):
    """All cores load and store rows at the same time, with words between them: the sums are what golden leaves."""
    driver = EngineDriver(dut, np.random.default_rng(cocotb.RANDOM_SEED), "never")
    await driver.start()
    each = SHARED_BYTES // driver.cores
    load_row, store_row = (0x0200_6007 | n << 5 | _BASE << 15 | 8 << 7 for n in (0, 1))  # v8
    number_all, add_core, add = 0x5208_A057, 0x0200_4057 | 13 << 15, 0x0280_0457  # v0; v0 += x13; v8 += v0
    code: dict[int, bytes] = {}
    for core in range(driver.cores):
        base = Region.SHARED + core * each + 4 * int(driver.rng.integers(driver.lanes))
        some = w.load_constant(12, 0x600) + w.immediate(0x73, 2, 0, 12, 0x300) + w.word(0x0130_7657)  # e32, m8
        some += w.load_constant(13, 1000 * core) + w.word(number_all) + w.word(add_core)
        some += w.load_constant(_BASE, base) + w.word(store_row)
        for n in range(8):
            some += w.word(load_row) + w.word(add) + w.word(store_row)
            some += w.immediate(0x03, 2, 14, _BASE, 4 * n) + w.store(2, 14, _BASE, 4 * (n + 1))
        some += w.word(load_row) + w.load_constant(_BASE, Region.SBUF_LANES) + w.word(store_row)
        code[core] = some + w.load_constant(_BASE, Region.MAILBOX) + w.store(2, 0, _BASE, Mailbox.DONE) + w.jump(0, 0)
    await driver.run(EngineProgram(code, "done", Cause.NONE))


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def shows_a_core_what_the_host_reads(dut):
    """Counters by both ways; those that only go up before a core looks at them are the same."""
    driver = EngineDriver(dut, np.random.default_rng(cocotb.RANDOM_SEED), "never")
    kept, vectors = 0x1000, driver.cfg.gpsimd.vectors
    code = w.load_constant(_BASE, row_address(0, 1024))
    code += 5 * (w.immediate(0x03, 2, 12, _BASE, 0) + w.store(1, 12, _BASE, 8) + w.register(1, 4, 12, 12, 12))
    code += w.load_constant(12, 1 << 7) + w.immediate(0x73, 1, 0, 12, 0x304) + w.load_constant(_BASE, Region.MAILBOX)
    code += w.immediate(0x03, 2, 12, _BASE, Mailbox.MTIME) + w.immediate(0x13, 0, 12, 12, 200)
    code += w.immediate(0x03, 2, 13, _BASE, Mailbox.MTIMEH) + w.store(2, 12, _BASE, Mailbox.MTIMECMP)
    code += w.store(2, 13, _BASE, Mailbox.MTIMECMPH) + WFI
    if vectors:  # two loads of rows and a sum of eight registers
        load_row, add = 0x0200_6007 | 10 << 15 | 8 << 7, 0x0280_0457
        code += w.load_constant(12, 0x600) + w.immediate(0x73, 2, 0, 12, 0x300) + w.word(0x0130_7657)  # e32, m8
        code += w.load_constant(10, Region.LOCAL + kept) + 2 * w.word(load_row) + w.word(add)
    code += w.load_constant(15, Region.LOCAL + kept)
    for n in range(2 * len(Counter)):
        code += w.immediate(0x03, 2, 12, _BASE, Mailbox.COUNTERS + 4 * n) + w.store(2, 12, 15, 4 * n)
    await _execute(driver, code + w.store(2, 0, _BASE, Mailbox.DONE) + w.jump(0, 0), (1 << driver.cores) - 1)
    words = 2 * len(Counter)
    for core in range(driver.cores):
        target = pattern("dst", 0, driver.lanes, 6144, -(-words // driver.lanes))
        driver.commands.send([gp_store(target, 1 << core, kept)])
        await driver.ended(3 + core)
        rows = driver.sbuf.bytes[: driver.lanes, 6144:].view("<u4")
        seen = [int(rows[n % driver.lanes, n // driver.lanes]) for n in range(words)]
        host = [await told(driver, core, counter) for counter in Counter]
        late = {Counter.BUSY, Counter.IDLE, Counter.FETCH, Counter.BRANCH, Counter.LOAD, Counter.MEMORY}
        for counter in set(Counter) - late - {Counter.INSTRUCTIONS}:
            assert seen[2 * counter] == host[counter], (
                f"{counter.name} is {seen[2 * counter]}, for the host {host[counter]}"
            )
        for counter in late - {Counter.IDLE}:
            assert 0 <= host[counter] - seen[2 * counter] < 300, (counter.name, seen, host)
        assert not any(seen[1::2]), seen
        assert min(host[one] for one in (Counter.SLEEP, Counter.UNIT, Counter.SBUF)) > 0, host
        assert host[Counter.BYTES] == 5 * (4 + 2) and host[Counter.MICRO_OPS] == vectors * 3 * 8, host


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
