"""Semaphores of the issue unit over starts, clears and faults, and as GPSIMD cores see and change them."""

from typing import Any

import cocotb

from rtl.base.dma_port import SEMAPHORE_UPDATE
from rtl.contract.isa import Update, Wait
from rtl.contract.memmap import Control
from verif.bench import Run, noticed_by
from verif.benches.issue.issue_driver import RING_FAULT, IssueBench
from verif.benches.issue.programs import Node, Program
from verif.checks.coverage import Coverage

RUNS = (
    Run(
        "issue",
        faults=noticed_by(
            "semaphores_stay_or_are_cleared",
            "a start that keeps semaphores clears them",
            "semaphores are cleared while a program runs",
        ),
    ),
)

COVERAGE = Coverage(
    "issue semaphores",
    ["kept semaphores", "cleared semaphores", "clear while a program runs", "waits for what came before"],
)


async def _tell(bench: IssueBench, held: list[int]) -> None:
    """A random update of a semaphore, which `held` follows."""
    dut = bench.dut
    index, update = int(bench.rng.integers(len(held))) % 24, int(bench.rng.integers(1, 3))
    value = int(bench.rng.integers(1 << 32)) - (1 << 31)
    told = SEMAPHORE_UPDATE.const({"index": index, "update": update, "value": value}).as_bits()
    dut.gpsimd_update__payload.value, dut.gpsimd_update__valid.value = told, 1
    await bench.edge
    while dut.gpsimd_update__ready.value == 0:
        await bench.edge
    dut.gpsimd_update__valid.value = 0
    held[index] = (value + (held[index] if update == Update.ADD else 0) + (1 << 31)) % (1 << 32) - (1 << 31)


async def _hold(bench: IssueBench, held: list[int], when: str) -> None:
    """All semaphores are what `held` says."""
    shown = await bench.host.read_all([Control.SEMAPHORE + 8 * n for n in range(len(held))])
    assert [v - (v >> 63 << 64) for v in shown] == held, f"semaphores after {when}"


async def _cleared(bench: IssueBench, cycles: list[int]) -> None:
    """Counts cycles in which the DMA is told of a clear."""
    while True:
        await bench.edge
        cycles[0] += bench.dut.clear.value == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def semaphores_stay_or_are_cleared(dut: Any) -> None:
    """RUN = 1 and CLEAR = 1 make all 0, RUN = 3 does not, nor does anything while a program runs or has faulted."""
    bench = IssueBench(dut)
    await bench.start()
    assert bench.dma is not None
    bench.dma.task.cancel()
    held, told, want = [0] * bench.cfg.issue.semaphores, [0], 0
    cocotb.start_soon(_cleared(bench, told))
    ways = [(Control.RUN, 0), (Control.RUN, 1), (Control.RUN, 2), (Control.RUN, 3)]
    ways += [(Control.CLEAR, value) for value in (0, 1, 2, 3)]
    clears = [(Control.RUN, 1), (Control.CLEAR, 1), (Control.CLEAR, 3)]
    for n in bench.rng.permutation(3 * len(ways)).tolist():
        way = ways[n % len(ways)]
        for _ in range(4):
            await _tell(bench, held)
        await bench.host.write(*way)
        if way in clears:
            held, want = [0] * len(held), want + 1
        if way[0] == Control.RUN and way[1] & 1:
            await bench.until("done", 60)
        await bench.cycles(1)
        await _hold(bench, held, f"{way[1]} was written to {way[0].name}")
        assert told == [want], f"{way[1]} written to {way[0].name}: the DMA was told of {told} clears, not {want}"
    COVERAGE.hit("kept semaphores")
    COVERAGE.hit("cleared semaphores")
    assert await bench.host.read(Control.CLEAR) == 0

    # One that runs, whose counters stand still at some time, and one that faults.
    dut.ring_status__0__busy.value = 1
    for start in (3, 1, 3):
        for _ in range(4):
            await _tell(bench, held)
        await bench.host.write(Control.RUN, start)
        await bench.host.write(Control.CLEAR, 1)  # the program begins in this cycle
        if start == 1:
            held, want = [0] * len(held), want + 1
        await bench.cycles(2)
        await _hold(bench, held, f"a start with {start} and a clear behind it")
        for last in (False, True):
            if last and start == 3:
                dut.ring_status__0__cause.value = RING_FAULT
                await bench.until("fault", 10)
            for n in bench.rng.permutation(len(ways)).tolist():
                await _tell(bench, held)
                await bench.host.write(*ways[n])
                await bench.cycles(2)
                await _hold(bench, held, f"{ways[n]} was written while a program runs")
        assert told == [want] and dut.done.value == 0
        if start == 3:
            dut.ring_status__0__cause.value = 0
            held = [0] * len(held)
            await bench.reset()
        else:
            dut.ring_status__0__busy.value = 0
            await bench.until("done", 10)
            dut.ring_status__0__busy.value = 1
            await _hold(bench, held, "the end of a program")
    dut.ring_status__0__busy.value = 0
    COVERAGE.hit("clear while a program runs")

    # A queue waits for a signal that has come before the start: kept it is there, cleared the queue waits for the next.
    await bench.cycles(4)
    for keep in (True, False):
        signal = SEMAPHORE_UPDATE.const({"index": 5, "update": Update.SET, "value": 7})
        wait = {"opcode": 0, "wait0": Wait.EQ, "wait0_semaphore": 5, "wait0_value": 7}
        program = Program([], [[], [], [], [], [Node(4, 0, wait)]], [[] for _ in range(bench.cfg.dma.rings)], {})
        for late in range(1 + (not keep)):
            if late:
                await bench.cycles(200)
                assert dut.done.value == 0, "a signal from before the start was not cleared"
            dut.gpsimd_update__payload.value, dut.gpsimd_update__valid.value = signal.as_bits(), 1
            await bench.edge
            dut.gpsimd_update__valid.value = 0
            if not late:
                await bench.run(program, keep=keep)
        await bench.until("done", 200)
        assert bench.records[4] == [(0, 0)]
    COVERAGE.hit("waits for what came before")
    COVERAGE.require_all()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def gpsimd_cores_see_and_change_semaphores(dut: Any) -> None:
    """Each reads what was written last, in the cycle after; the host sees the same."""
    bench = IssueBench(dut)
    await bench.start()
    held = [0] * bench.cfg.issue.semaphores
    for _ in range(400):
        await _tell(bench, held)
        other = int(bench.rng.integers(len(held))) % 24
        dut.gpsimd_semaphore.value = other
        await bench.edge
        await bench.edge
        assert int(dut.gpsimd_semaphore_value.value.to_signed()) == held[other], f"semaphore {other}"
    await _hold(bench, held, "all updates")
