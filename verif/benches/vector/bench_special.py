"""The special units against the golden model: instruction after instruction, with a memory and a writer that hesitate.

The memory gives what was asked for a fixed number of cycles later, as the engine's reader does; the writer has few
places and loses what comes without one.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS
from rtl.contract.isa import SHUFFLE_KEEP, Opcode, block
from rtl.vector.special import SPECIAL
from verif.agents.bench import Bench, manifest
from verif.agents.stall import STYLES, styled
from verif.agents.values import random_codes, special_codes
from verif.bench import SEEDS, Run
from verif.checks.coverage import Coverage
from verif.golden import special as golden
from verif.golden.reciprocal import reciprocal

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

U32 = NDArray[np.uint32]
CORNERS = special_codes(FORMATS["fp32"]).astype(np.uint32)
RESULTS = int(manifest().options["results"])
P = manifest().config.partitions
Q = int(manifest().options.get("size", 0)) or block(P)
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
coverage = Coverage(
    "special_units",
    [opcode.name for opcode in SPECIAL]
    + [f"{opcode.name} without stalls" for opcode in SPECIAL]
    + ["at once", "no room", "equal values", "NaN looked for", "zero of the other sign", "absent", "NaN largest"]
    + (["no place"] if RESULTS < 8 else [])
    + ["replaced all", "kept partition", "all kept but one", "one element", "halves of different counts", "largest run"]
    + ["nothing merged", "spread below zero", "many runs", "infinite"],
)


@dataclass
class Work:
    """An instruction: what its beats are, and what it has to give."""

    opcode: Opcode
    x: U32
    wanted: U32
    values: U32 | None = None
    a: U32 = field(default_factory=lambda: np.zeros(P, np.uint32))
    mask: list[int] = field(default_factory=lambda: [0] * Q)

    def beats(self) -> Iterator[tuple[int, int, int]]:
        """(data, values, last)"""
        for i in range(0 if self.values is None else self.values.shape[1]):
            yield packed(self.values[:, i]), 1, 0  # type: ignore[index]
        for i in range(self.x.shape[1]):
            yield packed(self.x[:, i]), 0, int(i == self.x.shape[1] - 1)


def packed(column: U32) -> int:
    """One beat."""
    return int.from_bytes(np.ascontiguousarray(column, "<u4").tobytes(), "little")


def unpacked(beat: int) -> U32:
    """The lanes of a beat."""
    return np.frombuffer(beat.to_bytes(4 * P, "little"), "<u4")


def some(rng: np.random.Generator, count: int) -> U32:
    """[P, count] numbers of any kind."""
    flavour = str(rng.choice(["bits", "special", "narrow", "normal", "subnormal"]))
    if rng.random() < 0.4:
        return rng.normal(1, 3, size=(P, count)).astype(np.float32).view(np.uint32)
    return random_codes(rng, (P, count), "fp32", flavour).astype(np.uint32)


def few(rng: np.random.Generator, count: int) -> U32:
    """[P, count] numbers of which many are equal."""
    return rng.choice(rng.choice(CORNERS, int(rng.integers(2, 12))), (P, count)).astype(np.uint32)


def largest(rng: np.random.Generator) -> Work:
    x = few(rng, int(rng.integers(8, 40))) if rng.random() < 0.4 else some(rng, int(rng.integers(8, 60)))
    coverage.when(((x & np.uint32(0x7FFFFFFF)) > 0x7F800000).any(), "NaN largest")
    return Work(Opcode.MAX8, x, golden.max8(x))


def looked_for(rng: np.random.Generator) -> tuple[U32, U32]:
    """Elements, and eight values of which most are among them."""
    x = few(rng, int(rng.integers(8, 40))) if rng.random() < 0.5 else some(rng, int(rng.integers(8, 60)))
    values = np.take_along_axis(x, rng.integers(0, x.shape[1], (P, 8)), axis=1)
    values = np.where(rng.random((P, 8)) < 0.2, rng.choice(CORNERS, (P, 8)), values)
    values[values == 0] = 1 << 31 if rng.random() < 0.5 else 0
    x[0, 3], values[0, 5] = rng.permutation(np.array([0, 1 << 31], np.uint32))
    coverage.hit("zero of the other sign")
    coverage.when(((values & np.uint32(0x7FFFFFFF)) > 0x7F800000).any(), "NaN looked for")
    coverage.when(any(np.unique(row).size < 8 for row in values), "equal values")
    return x, values.astype(np.uint32)


def found(rng: np.random.Generator) -> Work:
    x, values = looked_for(rng)
    wanted = golden.find_index8(x, values)
    coverage.when((wanted == golden.ABSENT).any(), "absent")
    return Work(Opcode.FIND_INDEX8, x, wanted, values)


def replaced(rng: np.random.Generator) -> Work:
    x, values = looked_for(rng)
    a = rng.integers(0, 1 << 32, P, dtype=np.uint32)
    coverage.when(((golden.find_index8(x, values) != golden.ABSENT).all(axis=1)).any(), "replaced all")
    return Work(Opcode.MATCH_REPLACE8, x, golden.match_replace8(x, values, a), values, a)


def transposed(rng: np.random.Generator, runs: int = 0) -> Work:
    runs = runs or int(rng.choice([1, 2, 3, 5, 9]))
    x = rng.integers(0, 1 << 32, (P, Q * runs), dtype=np.uint32)
    coverage.when(runs > 4, "many runs")
    return Work(Opcode.TRANSPOSE, x, golden.transpose(x, Q).astype(np.uint32))


def shuffled(rng: np.random.Generator, only_one: bool = False) -> Work:
    x = rng.integers(0, 1 << 32, (P, int(rng.integers(1, 20))), dtype=np.uint32)
    mask = rng.integers(0, Q, Q)
    mask[rng.random(Q) < rng.choice([0, 0.3])] = SHUFFLE_KEEP
    if only_one:
        mask[:] = SHUFFLE_KEEP
        mask[int(rng.integers(Q))] = int(rng.integers(Q))
    coverage.when((mask == SHUFFLE_KEEP).any(), "kept partition")
    coverage.when((mask == SHUFFLE_KEEP).sum() == Q - 1, "all kept but one")
    wanted = golden.shuffle(x, np.zeros_like(x), mask.tolist(), Q)
    return Work(Opcode.SHUFFLE, x, wanted.astype(np.uint32), mask=mask.tolist())


def statistics(rng: np.random.Generator, count: int = 0, kind: float = -1) -> Work:
    count = count or int(rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 40]))
    x = some(rng, count)
    kind = rng.random() if kind < 0 else kind
    if kind < 0.2:
        x = rng.normal(size=(P, count)).astype(np.float32).view(np.uint32)
    elif kind < 0.4:
        x = (1000 + 1e-4 * rng.normal(size=(P, count))).astype(np.float32).view(np.uint32)
    elif kind < 0.6:  # all but the first are equal: what the odd ones' spread should be is what rounding makes of 0
        x[:, 1:] = x[:, 1:2]
    wanted = golden.bn_stats(x)
    coverage.when(count == 1, "one element")
    coverage.when(count > 1 and count % 2, "halves of different counts")
    coverage.when(count == 512, "largest run")
    coverage.when((wanted[:, 5] == 0).any() and count > 8, "spread below zero")
    return Work(Opcode.BN_STATS, x, wanted)


def merged(rng: np.random.Generator) -> Work:
    triples = int(rng.integers(1, 7))
    x = some(rng, 3 * triples)
    if rng.random() < 0.7:
        x = rng.normal(2, 3, size=(P, 3 * triples)).astype(np.float32)
        x[:, 0::3] = rng.integers(0, 4, (P, triples))
        x[:, 2::3] = np.abs(x[:, 2::3])
        x = x.view(np.uint32)
    x[0, 0::3] = rng.choice(np.array([0, 1 << 31], np.uint32), triples)
    wanted = golden.bn_aggr(x)
    coverage.when((x[:, 0::3] & np.uint32(0x7FFFFFFF) == 0).all(axis=1).any(), "nothing merged")
    return Work(Opcode.BN_AGGR, x, wanted)


def inverted(rng: np.random.Generator) -> Work:
    x = some(rng, int(rng.integers(1, 12)))
    x[:, 0] = rng.choice(CORNERS, P)
    x[0, 0] = rng.choice(np.array([0, 1 << 31], np.uint32))
    wanted = reciprocal(x)
    coverage.when((wanted & np.uint32(0x7FFFFFFF) == 0x7F800000).any(), "infinite")
    return Work(Opcode.RECIPROCAL, x, wanted)


MAKERS: dict[Opcode, Callable[[np.random.Generator], Work]] = {
    Opcode.MAX8: largest,
    Opcode.FIND_INDEX8: found,
    Opcode.MATCH_REPLACE8: replaced,
    Opcode.TRANSPOSE: transposed,
    Opcode.SHUFFLE: shuffled,
    Opcode.BN_STATS: statistics,
    Opcode.BN_AGGR: merged,
    Opcode.RECIPROCAL: inverted,
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
    for latency in (2, 3):  # the reader is always ahead, so that beats take words that have just been left
        await driver.run(transposed(rng, 9), "never", "mostly", latency)
    coverage.require_all()
