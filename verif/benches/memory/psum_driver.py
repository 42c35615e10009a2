"""PSUM with all its users at once and what it must hold; what its bench drives."""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.contract.timing import PSUM_ADD_CYCLES
from verif.agents.bench import Bench
from verif.benches.memory.psum_writes import Row, Store, added, canonical, contents, random_row, random_store
from verif.checks.coverage import Coverage

__all__ = ["COVERAGE", "started"]


PORTS = ("vector", "scalar")

COVERAGE = Coverage(
    "psum",
    [
        "row added",
        "row overwritten",
        "row with partitions masked",
        "a row every cycle",
        "read granted beside an overwrite of its bank",
        "read granted beside a sum being written to its bank",
        "vector refused by the writer",
        "scalar refused by the writer",
        "scalar refused by vector",
        "both read different banks",
        "vector write refused by a sum",
        "scalar write refused by a sum",
        "scalar write refused by vector",
        "both write different banks",
        "an engine writes one element of a word",
        "an engine writes both",
        "an engine writes some partitions",
        "an engine overwrites an add's old row in its cycle",
        "an engine writes beside the commit of a sum",
        "read in the cycle of the write gives the old row",
        "read one cycle later gives the new row",
        "element added again as soon as allowed",
        "sum is NaN",
        "sum is subnormal",
        "sum overflows",
        "-0 overwrites",
    ],
)


class PsumBench(Bench):
    """Drives the writer and the engines' ports at random and checks every output in every cycle."""

    def __init__(self, dut) -> None:
        super().__init__(dut)
        cfg = self.cfg
        self.lanes = cfg.partitions
        self.rows = cfg.psum.bank_bytes // 4
        self.elements = self.rows * cfg.psum.banks
        self.memory = contents(self.lanes, self.elements)
        self.write = {
            n: getattr(dut, f"accumulate__{n}") for n in ("valid", "element", "accumulate", "partitions", "data")
        }
        self.reads = [
            {n: getattr(dut, f"read_{port}__{n}") for n in ("valid", "ready", "word", "data", "data_valid")}
            for port in PORTS
        ]
        self.writes = [
            {n: getattr(dut, f"write_{port}__{n}") for n in ("valid", "ready", "word", "data", "bytes", "partitions")}
            for port in PORTS
        ]
        self.stores: list[Store | None] = [None] * len(PORTS)
        self.storing = 0.0  # probability of a write of an engine, and where to
        self.words: NDArray[np.integer] = np.arange(self.elements // 2)
        self.refused_writes = [0] * len(PORTS)
        self.asked: list[int | None] = [None] * len(PORTS)
        self.answers: list[NDArray[np.uint32] | None] = [None] * len(PORTS)
        self.row: Row | None = None
        self.flying: deque[tuple[Row, NDArray[np.uint32]] | None] = deque([None] * PSUM_ADD_CYCLES)
        self.committed: deque[int | None] = deque([None], maxlen=1)  # element written in the last cycle
        self.counts = [0] * len(PORTS)
        self.streak = 0
        self.write["valid"].value = 0
        for port in (*self.reads, *self.writes):
            port["valid"].value = 0

    def bank(self, element: int) -> int:
        """Bank of an element."""
        return element // self.rows

    async def step(self, row: Row | None, choose: Callable[[int], int | None]) -> None:
        """One clock edge: check what was there before it, then put `row` and new reads on the ports."""
        await self.edge
        self.check()
        self.row = row
        self.write["valid"].value = row is not None
        if row is not None:
            self.write["element"].value = row.element
            self.write["accumulate"].value = row.accumulate
            self.write["partitions"].value = row.partitions
            self.write["data"].value = int.from_bytes(row.data.tobytes(), "little")
        for n, port in enumerate(self.reads):
            if self.asked[n] is None:
                self.asked[n] = choose(n)
                port["valid"].value = self.asked[n] is not None
                if self.asked[n] is not None:
                    port["word"].value = self.asked[n]
        for n, port in enumerate(self.writes):
            if self.stores[n] is None and self.rng.random() < self.storing:
                self.stores[n] = store = random_store(self.rng, self.lanes, self.words)
                port["word"].value = store.word
                port["bytes"].value = (0, 0x0F, 0xF0, 0xFF)[store.halves]
                port["partitions"].value = store.partitions
                port["data"].value = int.from_bytes(store.data.tobytes(), "little")
            port["valid"].value = self.stores[n] is not None

    def check(self) -> None:
        """The cycle that has just ended."""
        for n, (port, answer) in enumerate(zip(self.reads, self.answers, strict=True)):
            assert bool(port["data_valid"].value) == (answer is not None), f"{PORTS[n]}: data_valid"
            if answer is not None:
                got = np.frombuffer(int(port["data"].value).to_bytes(8 * self.lanes, "little"), np.uint32)
                assert (got.reshape(-1, 2) == answer).all(), f"{PORTS[n]} reads {got}, not {answer}"
            self.answers[n] = None

        row = self.row
        writer = self.bank(row.element) if row is not None and row.accumulate else None
        last = self.flying[-1]
        leaving = last[0].element if last is not None else None
        taken = set() if writer is None else {writer}
        refused = 0
        served = []
        for n, word in enumerate(self.asked):
            if word is None:
                continue
            bank = self.bank(2 * word)
            ok = bank not in taken
            port = self.reads[n]
            assert bool(port["ready"].value) == ok, f"{PORTS[n]}: ready is {port['ready'].value}"
            if not ok:
                refused |= 1 << n
                self.counts[n] += 1
                COVERAGE.hit(f"{PORTS[n]} refused by the writer" if bank == writer else "scalar refused by vector")
                continue
            taken.add(bank)
            served.append(bank)
            self.answers[n] = self.memory[2 * word : 2 * word + 2].T.copy()
            COVERAGE.when(
                row is not None and not row.accumulate and self.bank(row.element) == bank,
                "read granted beside an overwrite of its bank",
            )
            COVERAGE.when(
                leaving is not None and self.bank(leaving) == bank,
                "read granted beside a sum being written to its bank",
            )
            during = leaving is not None and word == leaving // 2
            after = self.committed[0] is not None and word == self.committed[0] // 2
            COVERAGE.when(during, "read in the cycle of the write gives the old row")
            COVERAGE.when(after, "read one cycle later gives the new row")
            self.asked[n] = None
        COVERAGE.when(len(served) == 2, "both read different banks")
        ready = self.check_writes(leaving)
        for n in range(len(PORTS)):
            refused |= (self.stores[n] is not None and not ready[n]) << (len(PORTS) + n)
        seen = int(self.dut.refused.value)
        assert seen == refused, f"refused is {seen:b}, not {refused:b}"

        done = self.flying.pop()
        self.flying.appendleft((row, self.result(row)) if row is not None else None)
        self.committed.append(None)
        if done is not None:
            self.commit(*done)
        for n, store in enumerate(self.stores):
            if store is not None and ready[n]:
                self.store(store)
                self.stores[n] = None

    def check_writes(self, leaving: int | None) -> list[bool]:
        """Which engines' writes are due in the cycle that has just ended; `leaving`: element that commits."""
        sum_bank = None if leaving is None else self.bank(leaving)
        taken = set() if sum_bank is None else {sum_bank}
        due: list[bool] = []
        for n, store in enumerate(self.stores):
            if store is None:
                due.append(False)
                continue
            bank = self.bank(2 * store.word)
            ok = bank not in taken
            assert bool(self.writes[n]["ready"].value) == ok, f"{PORTS[n]}: ready of a write is {not ok}"
            due.append(ok)
            if ok:
                taken.add(bank)
                COVERAGE.when(leaving is not None, "an engine writes beside the commit of a sum")
                under_add = self.row is not None and self.row.accumulate and self.row.element // 2 == store.word
                COVERAGE.when(under_add, "an engine overwrites an add's old row in its cycle")
                COVERAGE.hit("an engine writes both" if store.halves == 3 else "an engine writes one element of a word")
                COVERAGE.when(store.partitions != (1 << self.lanes) - 1, "an engine writes some partitions")
            else:
                self.refused_writes[n] += 1
                by_sum = bank == sum_bank
                COVERAGE.hit(f"{PORTS[n]} write refused by a sum" if by_sum else "scalar write refused by vector")
        COVERAGE.when(all(due), "both write different banks")
        return due

    def store(self, store: Store) -> None:
        """A write of an engine reaches the memory."""
        mask = np.array([store.partitions >> p & 1 for p in range(self.lanes)], dtype=bool)
        for half in range(2):
            if store.halves >> half & 1:
                self.memory[2 * store.word + half, mask] = store.data[mask, half]

    def result(self, row: Row) -> NDArray[np.uint32]:
        """What the row will write: its old row is the one of this cycle."""
        old = self.memory[row.element]
        COVERAGE.hit("row added" if row.accumulate else "row overwritten")
        self.streak = self.streak + 1
        COVERAGE.when(self.streak > 32, "a row every cycle")
        COVERAGE.when(row.partitions != (1 << self.lanes) - 1, "row with partitions masked")
        COVERAGE.when(row.accumulate and self.committed[0] == row.element, "element added again as soon as allowed")
        if not row.accumulate:
            COVERAGE.when((row.data == 0x8000_0000).any(), "-0 overwrites")
            return canonical(row.data)
        total = added(old, row.data)
        size = total & 0x7FFF_FFFF
        finite = (old & 0x7F80_0000 != 0x7F80_0000) & (row.data & 0x7F80_0000 != 0x7F80_0000)
        COVERAGE.when((total == CANONICAL_NAN_FP32).any(), "sum is NaN")
        COVERAGE.when(((size > 0) & (size < 0x0080_0000)).any(), "sum is subnormal")
        COVERAGE.when(((size == 0x7F80_0000) & finite).any(), "sum overflows")
        return total

    def commit(self, row: Row, total: NDArray[np.uint32]) -> None:
        """The row reaches the memory."""
        mask = np.array([row.partitions >> p & 1 for p in range(self.lanes)], dtype=bool)
        self.memory[row.element, mask] = total[mask]
        self.committed.append(row.element)

    def random_row(self, elements: NDArray[np.integer], accumulate: float) -> Row | None:
        """A row of one of `elements` that is not on its way, if there is one."""
        busy = {item[0].element for item in self.flying if item is not None}
        if self.row is not None:
            busy.add(self.row.element)
        free = [int(e) for e in elements if e not in busy]
        if not free:
            return None
        return random_row(self.rng, self.lanes, free, accumulate)

    async def run(
        self,
        cycles: int,
        write: float,
        read: float,
        accumulate: float,
        elements: NDArray[np.integer],
        store: float = 0.0,
    ) -> None:
        """Random traffic on `elements` and their words; the probabilities are per cycle and free port."""
        rng = self.rng
        self.words = np.unique(elements // 2)
        self.storing = store

        def choose(n: int) -> int | None:
            return int(rng.choice(self.words)) if rng.random() < read else None

        for _ in range(cycles):
            row = self.random_row(elements, accumulate) if rng.random() < write else None
            if row is None:
                self.streak = 0
            await self.step(row, choose)
        self.storing = 0.0
        for _ in range(PSUM_ADD_CYCLES + 40):
            self.streak = 0
            await self.step(None, lambda n: None)

    def few(self, count: int) -> NDArray[np.integer]:
        """Some elements of two banks."""
        banks = self.rng.choice(self.cfg.psum.banks, 2, replace=False)
        return self.rng.choice(
            np.concatenate([b * self.rows + np.arange(self.rows) for b in banks]), count, replace=False
        )


async def started(dut) -> PsumBench:
    bench = PsumBench(dut)
    await bench.start()
    return bench
