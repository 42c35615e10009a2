"""Indices: every choice of a descriptor is its index times the table's step, at full width; places, order, stalls."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.dma.layouts import address_bits, choice_layout, fetch_layout, indices_layout
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSink
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

RUNS = (Run("indices", config="full", faults=EVERY), Run("indices", seeds=(1,), regress=True))

_ROW_BITS, _WORD_BITS = 28, 16
COVERAGE = Coverage(
    "dma.indices",
    [
        *(f"index bit {n}" for n in range(_ROW_BITS)),
        *(f"table of 2^{n} rows, the last and the one behind it" for n in range(_ROW_BITS)),
        *(f"bit {n} alone above the table" for n in range(_ROW_BITS, 32)),
        *(f"{way} from word {n}" for way in ("down", "along") for n in range(4)),
        "negative step",
        "the last partition",
        "the last word",
        "all places full",
    ],
)


class IndicesBench(Bench):
    """The unit, SBUF as a table of words, and what each descriptor must choose."""

    def __init__(self, dut: Any, *, calm: bool = False):
        super().__init__(dut)
        self.calm = calm
        self.sink = StreamSink(self, "choice", self._stalls())
        self.asked: deque[tuple[int, int]] = deque()  # (cycles until its answer may come, address of a unit)
        self.sbuf: dict[int, int] = {}  # word by its place
        self._ask, self._choice = opened(fetch_layout(self.cfg)), opened(choice_layout(self.cfg))
        dut.start.value = 0
        cocotb.start_soon(self._serve())

    def _stalls(self) -> Iterator[bool]:
        while True:
            style = styled("never" if self.calm else str(self.rng.choice(STYLES)), self.rng)
            for _ in range(200):
                yield next(style)

    async def _serve(self) -> None:
        """A crossbar: takes a request now and then, answers in order, two cycles later or more."""
        dut, edge, stall = self.dut, RisingEdge(self.clk), self._stalls()
        lanes = self.cfg.partitions // self.cfg.dma.engines
        dut.ask__ready.value = 0
        while True:
            await edge
            if dut.ask__valid.value == 1 and dut.ask__ready.value == 1:
                unit = self._ask(int(dut.ask__payload.value))
                partition = int(unit.group) * lanes + int(unit.lane)
                self.asked.append(
                    (1 if self.calm else int(self.rng.integers(1, 7)), partition << _WORD_BITS | int(unit.pair) << 2)
                )
                COVERAGE.when(len(self.asked) == 4, "all places full")
                assert len(self.asked) <= 4, "a unit was asked for that has no place"
            self.asked = deque((left - 1, at) for left, at in self.asked)
            comes = bool(self.asked) and self.asked[0][0] <= 0
            dut.answer_valid.value = comes
            junk = int.from_bytes(self.rng.bytes(16), "little")
            if comes:
                at = self.asked.popleft()[1]
                words = [self.sbuf.get(at + n, int(self.rng.integers(1 << 32))) for n in range(4)]
                junk = sum(word << 32 * n for n, word in enumerate(words))
            dut.answer.value = junk
            dut.ask__ready.value = not next(stall)

    async def choose(
        self, places: list[int], indices: list[int], *, inner: int, down: bool, rows: int, step: int
    ) -> None:
        """A descriptor's choices, compared."""
        self.sbuf = dict(zip(places, indices, strict=True))
        job = {
            "indirect": int(self.rng.integers(1, 3)), "skips": int(self.rng.integers(2)), "down": int(down),
            "place": places[0], "total": len(places), "rows": rows,
        }  # fmt: skip
        bits = address_bits(self.cfg)
        before = len(self.sink.taken)
        self.dut.job.value = indices_layout().const(job).as_bits()
        self.dut.count.value = inner
        self.dut.step.value = step % (1 << bits)
        self.dut.start.value = 1
        await RisingEdge(self.clk)
        self.dut.start.value = 0
        self.dut.job.value = int(self.rng.integers(1 << 62))
        self.dut.step.value = int(self.rng.integers(1 << bits))
        self.dut.count.value = int(self.rng.integers(1 << 17))
        await self.sink.count(before + len(places))
        for got, place, index in zip(self.sink.taken[before:], places, indices, strict=True):
            choice = self._choice(got)
            assert int(choice.beyond) == (index >= rows), f"index {index:#x} of a table of {rows} rows"
            assert int(choice.at) == place, f"index at {int(choice.at):#x}, not {place:#x}"
            if index < rows:
                want = index * step % (1 << bits)
                assert int(choice.offset) == want, f"{int(choice.offset):#x}, not {want:#x} for {index:#x} x {step}"
        for _ in range(8):
            await RisingEdge(self.clk)
            assert self.dut.choice__valid.value == 0, "a choice that no index made"


def _places(bench: IndicesBench, inner: int, outer: int, *, down: bool) -> list[int]:
    """Where the indices lie; often at the ends of SBUF."""
    rng, cfg = bench.rng, bench.cfg
    words = cfg.sbuf.partition_bytes // 4
    along, across = (outer, inner) if down else (inner * outer, 1)
    first = words - along if rng.random() < 0.2 else int(rng.integers(0, words - along + 1))
    partition = cfg.partitions - across if rng.random() < 0.2 else int(rng.integers(0, cfg.partitions - across + 1))
    COVERAGE.when(first + along == words, "the last word")
    COVERAGE.when(partition + across == cfg.partitions, "the last partition")
    COVERAGE.hit(f"{'down' if down else 'along'} from word {first & 3}")
    inside = ((i0, i1) for i1 in range(outer) for i0 in range(inner))
    return [
        (partition + (i0 if down else 0)) << _WORD_BITS | first + (i1 if down else i0 + inner * i1) for i0, i1 in inside
    ]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_choice_is_its_index_times_the_step(dut: Any) -> None:
    bench = IndicesBench(dut)
    await bench.start()
    rng = bench.rng
    for number in range(250):
        down = bool(rng.integers(2))
        inner, outer = int(rng.integers(1, min(12, bench.cfg.partitions) + 1)), int(rng.choice([1, 2, 5]))
        power = number % _ROW_BITS
        rows = int(rng.choice([1 << power, rng.integers(1, 1 << _ROW_BITS), rng.integers(1, 2 << power)]))
        rows = min(rows, (1 << _ROW_BITS) - 1)
        step = int(rng.choice([1, -1, 512, 1 << 18, rng.integers(-(1 << 34), 1 << 34)]))
        some: list[int] = [
            int(rng.choice([rows - 1, rows, 1 << int(rng.integers(32)), rng.integers(0, rows), rng.integers(1 << 32)]))
            for _ in range(inner * outer)
        ]
        await bench.choose(_places(bench, inner, outer, down=down), some, inner=inner, down=down, rows=rows, step=step)
        COVERAGE.when(step < 0, "negative step")
        both = {rows - 1, rows} <= set(some) and rows == 1 << power
        COVERAGE.when(both, f"table of 2^{power} rows, the last and the one behind it")
        for index in some:
            for n in range(_ROW_BITS):
                COVERAGE.when(index < rows and index >> n & 1, f"index bit {n}")
            for n in range(_ROW_BITS, 32):
                COVERAGE.when(index == 1 << n, f"bit {n} alone above the table")
    for power in range(_ROW_BITS):
        rows = 1 << power
        await bench.choose(_places(bench, 2, 1, down=False), [rows - 1, rows], inner=2, down=False, rows=rows, step=77)
        COVERAGE.hit(f"table of 2^{power} rows, the last and the one behind it")
    COVERAGE.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_choice_a_cycle_without_stalls(dut: Any) -> None:
    """Along a partition a unit every four cycles is enough, down the partitions one a cycle comes."""
    bench = IndicesBench(dut, calm=True)
    await bench.start()
    clock = Clocked(bench)
    for down in (False, True):
        count = bench.cfg.partitions
        places = [n << _WORD_BITS | 7 if down else 3 << _WORD_BITS | 4 + n for n in range(count)]
        clock.taken.clear()
        await bench.choose(places, list(range(count)), inner=count, down=down, rows=count, step=512)
        took = clock.taken[-1] - clock.taken[0]
        assert took == count - 1, f"{count} choices in {took + 1} cycles"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def as_many_as_a_partition_holds(dut: Any) -> None:
    bench = IndicesBench(dut, calm=True)
    await bench.start()
    count = bench.cfg.sbuf.partition_bytes // 4
    places = [2 << _WORD_BITS | n for n in range(count)]
    await bench.choose(places, list(range(count)), inner=count, down=False, rows=count, step=3)


class Clocked:
    """In which cycles choices were taken."""

    def __init__(self, bench: IndicesBench):
        self.taken: list[int] = []
        self.now = 0
        self._edge = RisingEdge(bench.clk)
        bench.sink.on_taken = lambda _: self.taken.append(self.now)
        cocotb.start_soon(self._count())

    async def _count(self) -> None:
        while True:
            await self._edge
            self.now += 1
