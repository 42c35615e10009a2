"""Counters of a GPSIMD engine's cores after a program."""

from cocotb.triggers import RisingEdge

from rtl.contract.gpsimd import CORES_MAX, Counter
from verif.benches.gpsimd.engine_driver import EngineDriver
from verif.checks.gpsimd_random import EngineProgram

__all__ = ["check_counters", "told"]


async def told(driver: EngineDriver, core: int, index: int) -> int:
    """A counter, as the host reads it."""
    dut = driver.dut
    dut.told_core.value, dut.told_index.value = core, index
    await RisingEdge(driver.bench.clk)
    await RisingEdge(driver.bench.clk)
    return int(dut.told.value)


async def check_counters(driver: EngineDriver, program: EngineProgram) -> None:
    """Each core's states are the engine's cycles since the program began, whatever it did."""
    dut, rng = driver.dut, driver.rng
    dut.running.value = 0
    await RisingEdge(driver.bench.clk)
    cycles = (driver.ports.cycle - driver.began) // driver.root_cycles
    for core in range(driver.cores):
        seen = [await told(driver, core, counter) for counter in Counter]
        states = sum(seen[: Counter.INSTRUCTIONS])
        assert abs(states - cycles) <= 1, f"core {core} counts {states} cycles of {cycles}: {seen}"
        for state in set(range(Counter.INSTRUCTIONS)) - {Counter.IDLE}:  # idle ones are counted without an edge, too
            shown = driver.shown[core][state]
            assert shown == seen[state], f"core {core} shows {shown} cycles of state {state}, counts {seen[state]}"
        traps, handled = seen[Counter.BUSY] - seen[Counter.INSTRUCTIONS], program.traps.get(core, 0)
        assert traps == handled or (program.cause and 0 <= traps <= handled + 2), (seen, handled)
        assert driver.cfg.gpsimd.vectors or not seen[Counter.MICRO_OPS], seen
        moved = driver.moved_bytes.get(core, 0 if driver.moved_bytes else seen[Counter.BYTES])
        assert seen[Counter.BYTES] == moved, f"core {core} counts {seen[Counter.BYTES]} bytes of SBUF, golden {moved}"
        assert await told(driver, core, Counter.IDLE) == seen[Counter.IDLE], "a counter goes up while none does"
        assert await told(driver, core, int(rng.integers(len(Counter), 32))) == 0, "there is no such counter"
    if driver.cores < CORES_MAX:
        nobody = await told(driver, int(rng.integers(driver.cores, CORES_MAX)), Counter.IDLE)
        assert nobody == 0, "a core that is not there counts"
    assert all(states[Counter.IDLE] == sum(states) for states in driver.shown[driver.cores :])
    dut.running.value = 1
