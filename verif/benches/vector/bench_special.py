"""The special units against the golden model: instruction after instruction, with a memory and a writer that hesitate.

The memory gives what was asked for a fixed number of cycles later, as the engine's reader does; the writer has few
places and loses what comes without one.
"""

from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from rtl.contract.isa import SHUFFLE_KEEP, Opcode
from rtl.vector.special import SPECIAL
from verif.agents.bench import Bench
from verif.agents.stall import STYLES, styled
from verif.bench import SEEDS, Run
from verif.benches.vector.special_work import (
    MAKERS,
    RESULTS,
    U32,
    P,
    Q,
    Work,
    coverage,
    largest,
    packed,
    shuffled,
    statistics,
    transposed,
    unpacked,
)

_TWO_BLOCKS = {"results": 4, "size": 4}
"""Blocks of four partitions, so that the smallest configuration has two of them; a writer that is soon full."""

_PLANTED = (
    "the position of an element is that of its neighbour",
    "what the instruction before left is still in the registers",
    "results of the largest eight are given without a place for them",
    "untouched partitions are written",
    "the upper half of a block cannot be reached",
    "words are never written in the other order",
    "a run is given out before its last beat has come",
    "partitions are turned by one too many",
    "one element more is asked for than there is room for",
    "results of a vector transpose are given without a place for them",
    "the tree joins parts 0 and 4 first",
    "odd elements are as many as even ones",
    "the odd half of one element is not zero",
    "the count of a merge is that of the merge before",
    "results of batch statistics are given without a place for them",
    "more is asked of batch statistics than can wait",
    "more is asked for than the writer has places",
    "results that the writer still has are forgotten",
    "zeros of different signs differ in a search",
    "a NaN is found in a search",
    "equal values are all found at once",
    "a value is found at its last place, not at its first",
    "the order of negative numbers is turned",
    "a NaN keeps its sign and payload among the largest",
    "equal numbers are kept once",
    "an absent value was found at the place its code says",
    "the share of nothing is a NaN",
    "a spread below zero stays",
    "element 0 is not taken off",
    "all blocks take from the first one",
)

RUNS = (
    Run("special_units", options=_TWO_BLOCKS, faults=_PLANTED),
    Run("special_units", options={"results": 16}, seeds=SEEDS[:1]),
)


FAR = 5  # cycles from a request to its element that the promised pace allows for
PACE = {  # cycles from the first request to the last result, without stalls: rate and overhead
    Opcode.MAX8: (1, 9),
    Opcode.FIND_INDEX8: (1, 9),
    Opcode.MATCH_REPLACE8: (1, 2),
    Opcode.TRANSPOSE: (1, Q + 2),
    Opcode.SHUFFLE: (1, 2),
    Opcode.BN_STATS: (1, 21),
    Opcode.BN_AGGR: (13 / 3, 9),
    Opcode.RECIPROCAL: (8, 3),
}


class Driver:
    """Plays the reader and the writer. Reads and drives in the middle of cycles: no output depends on an input."""

    def __init__(self, bench: Bench):
        self.dut = bench.dut
        self.rng = bench.rng
        self.middle = FallingEdge(bench.clk)

    async def idle(self, cycles: int) -> None:
        """Nothing happens, and nothing comes."""
        for _ in range(cycles):
            await self.middle
            assert not int(self.dut.busy.value), "busy without an instruction"
            assert not int(self.dut.out_valid.value), "a result without an instruction"
            self.dut.start.value = 0

    async def run(self, work: Work, reader: str, writer: str, latency: int) -> None:
        """One instruction, from `start` to its last result in memory. `reader`, `writer`: styles of their stalls."""
        dut, rng = self.dut, self.rng
        await self.middle
        assert not int(dut.busy.value), f"{work.opcode.name}: busy before it starts"
        dut.start.value = 1
        dut.opcode.value = int(work.opcode)
        dut.mask.value = sum(entry << 6 * j for j, entry in enumerate(work.mask))
        dut.a.value = packed(work.a)
        slow_reader, slow_writer = styled(reader, rng), styled(writer, rng)
        to_ask = deque(work.beats())
        underway: deque[tuple[int, tuple[int, int, int]]] = deque()
        stored = given = written = 0
        outs: list[int] = []
        cycle, first, last = 0, -1, -1
        total = work.wanted.shape[1]
        while written < total:
            await self.middle
            cycle += 1
            assert cycle < 100 * (work.x.shape[1] + total + 40), f"{work.opcode.name} does not end"
            if int(dut.out_valid.value):
                assert stored < RESULTS, f"{work.opcode.name}: result {given} finds no place"
                outs.append(int(dut.out.value))
                stored, given, last = stored + 1, given + 1, cycle
                assert given <= total, f"{work.opcode.name}: more results than {total}"
                if work.opcode == Opcode.SHUFFLE:
                    touched = [int(work.mask[p % Q] != SHUFFLE_KEEP) for p in range(P)]
                    seen = [int(dut.touched.value) >> p & 1 for p in range(P)]
                    assert seen == touched, f"touched partitions are {seen}, should be {touched}"
                else:
                    assert int(dut.touched.value) == (1 << P) - 1, "a partition is not touched"
            coverage.when(stored == RESULTS and RESULTS < 8, "no place")
            assert int(dut.busy.value) == (given < total or last == cycle), f"{work.opcode.name}: busy"
            room = int(dut.room.value)
            coverage.when(to_ask and not room, "no room")
            granted = bool(to_ask and room and not next(slow_reader))
            if granted:
                underway.append((cycle + latency, to_ask.popleft()))
                first = cycle if first < 0 else first
            arrived = bool(underway and underway[0][0] == cycle)
            if arrived:
                dut.x.value, dut.values.value, dut.last.value = underway.popleft()[1]
            else:
                dut.x.value, dut.values.value, dut.last.value = int(rng.integers(1 << 62)), cycle & 1, cycle >> 1 & 1
            leaves = stored > int(last == cycle) and not next(slow_writer)
            stored, written = stored - leaves, written + leaves
            dut.granted.value, dut.valid.value, dut.written.value = int(granted), int(arrived), int(leaves)
            dut.start.value = 0
            dut.opcode.value = int(rng.integers(64))
            dut.mask.value = int(rng.integers(1 << 20))
        seen = np.stack([unpacked(out) for out in outs], axis=1)
        self.compare(work, seen)
        if reader == writer == "never" and latency <= FAR:
            coverage.hit(f"{work.opcode.name} without stalls")
            elements = work.x.shape[1] + (0 if work.values is None else 8)
            rate, more = PACE[work.opcode]
            most = rate * elements + more + latency
            limit = {Opcode.TRANSPOSE: Q, Opcode.MATCH_REPLACE8: RESULTS, Opcode.SHUFFLE: RESULTS}
            few_places = limit.get(work.opcode, 99) < latency + 4  # to keep a beat a cycle on its way
            took = last - first
            assert took <= most or few_places, f"{work.opcode.name} of {elements}: {took} cycles, promised {most}"

    def compare(self, work: Work, seen: U32) -> None:
        """Every lane that is written."""
        lanes = np.array([work.mask[p % Q] != SHUFFLE_KEEP for p in range(P)])
        if work.opcode != Opcode.SHUFFLE:
            lanes[:] = True
        wrong = np.argwhere((seen != work.wanted) & lanes[:, None])
        if wrong.size:
            p, i = wrong[0].tolist()
            raise AssertionError(
                f"{work.opcode.name} of {work.x.shape[1]}: lane {p}, result {i}: is {int(seen[p, i]):#010x}, should be "
                f"{int(work.wanted[p, i]):#010x}; x = {[hex(v) for v in work.x[p]]}"
            )


async def begin(dut: Any) -> tuple[Bench, Driver]:
    """Clock and reset, inputs quiet."""
    bench = Bench(dut)
    for name in ("start", "granted", "valid", "values", "last", "written"):
        getattr(dut, name).value = 0
    await bench.start()
    return bench, Driver(bench)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_unit_at_full_speed(dut: Any) -> None:
    """Each instruction some times, memory and writer always ready: results, and the cycles they take."""
    bench, driver = await begin(dut)
    for opcode in SPECIAL:
        for latency in (3, FAR):
            await driver.run(MAKERS[opcode](bench.rng), "never", "never", latency)
    for count, kind in ((512, 0.3), (1, 0.9), (33, 0.5), (21, 0.5), (40, 0.5), (40, 0.1)):
        await driver.run(statistics(bench.rng, count, kind), "never", "never", 4)
    await driver.idle(3)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def instructions_in_any_order(dut: Any) -> None:
    """Random instructions, one at once after the other or not, with every style of stalls."""
    bench, driver = await begin(dut)
    rng = bench.rng
    order = [opcode for opcode in SPECIAL for _ in range(5)]
    rng.shuffle(order)
    for opcode in order:
        styles = [str(style) for style in rng.choice(STYLES, 2)]
        await driver.run(MAKERS[opcode](rng), *styles, int(rng.integers(2, 8)))
        coverage.hit(opcode.name)
        if rng.random() < 0.3:
            await driver.idle(int(rng.integers(1, 4)))
        else:
            coverage.hit("at once")
    await driver.run(shuffled(rng, only_one=True), "half", "half", 3)
    for turn in range(1, Q + 1):
        await driver.run(shuffled(rng, turn=turn), "never", "never", 3)
    for _ in range(40):
        await driver.run(largest(rng, close=True), "never", "never", 3)
    for latency in (2, 3):  # the reader is always ahead, so that beats take words that have just been left
        await driver.run(transposed(rng, 9), "never", "mostly", latency)
    coverage.require_all()
