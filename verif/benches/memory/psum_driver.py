"""PSUM with all its users at once and what it must hold; what its bench drives."""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.contract.isa import Rounding
from rtl.contract.timing import PSUM_ADD_CYCLES
from verif.agents.bench import Bench
from verif.benches.memory.psum_coverage import COVERAGE, OF_GROUPS
from verif.benches.memory.psum_transposes import Transposes
from verif.benches.memory.psum_writes import Row, Store, added, canonical, contents, random_row, random_store
from verif.golden.rounding import to_bf16

__all__ = ["PsumBench", "started"]


PORTS = ("vector", "scalar")


class PsumBench(Bench):
    """Drives the writers and the engines' ports at random and checks every output in every cycle."""

    def __init__(self, dut) -> None:
        super().__init__(dut)
        cfg = self.cfg
        self.lanes = cfg.partitions
        self.rows = cfg.psum.bank_bytes // 4
        self.elements = self.rows * cfg.psum.banks
        self.memory = contents(self.lanes, self.elements)
        self.groups = cfg.tensor.groups
        members = ("valid", "element", "accumulate", "partitions", "data", "lost", "rounding", "random")
        self.sums = [{n: getattr(dut, f"accumulate__{g}__{n}") for n in members} for g in range(self.groups)]
        self.transposes = Transposes(dut, self.rng, self.lanes, self.rows)
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
        self.rows_now: list[Row | None] = [None] * self.groups
        self.flying: deque[dict[int, tuple[Row, NDArray[np.uint32]]]] = deque({} for _ in range(PSUM_ADD_CYCLES))
        self.committed: set[int] = set()  # elements written in the last cycle
        self.alone: set[int] = set()  # groups that had a cycle for themselves
        self.counts = [0] * len(PORTS)
        self.streak = 0
        for port in (*self.sums, *self.reads, *self.writes):
            port["valid"].value = 0

    def bank(self, element: int) -> int:
        """Bank of an element."""
        return element // self.rows

    async def step(self, rows: Sequence[Row | None], choose: Callable[[int], int | None]) -> None:
        """One clock edge: check what was there before it, then put `rows`, those of the first groups, and new reads
        on the ports."""
        await self.edge
        self.check()
        self.rows_now = [*rows, *[None] * (self.groups - len(rows))]
        for port, row in zip(self.sums, self.rows_now, strict=True):
            port["valid"].value = row is not None
            if row is not None:
                port["element"].value = row.element
                port["accumulate"].value = row.accumulate
                port["partitions"].value = row.partitions
                port["rounding"].value = row.rounding
                port["random"].value = row.random
                port["data"].value = int.from_bytes(row.data.tobytes(), "little")
        committing = {self.bank(row.element) for row, _ in self.flying[-1].values()}
        self.transposes.drive(self.words, committing)
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

        rows = self.check_rows()
        adds = {self.bank(row.element) for row in rows.values() if row.accumulate}
        overwrites = {self.bank(row.element) for row in rows.values() if not row.accumulate}
        leaving = [row.element for row, _ in self.flying[-1].values()]
        taken = set(adds)
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
                COVERAGE.hit(f"{PORTS[n]} refused by the writer" if bank in adds else "scalar refused by vector")
                continue
            taken.add(bank)
            served.append(bank)
            self.answers[n] = self.memory[2 * word : 2 * word + 2].T.copy()
            COVERAGE.when(bank in overwrites, "read granted beside an overwrite of its bank")
            commits = any(self.bank(e) == bank for e in leaving)
            COVERAGE.when(commits, "read granted beside a sum being written to its bank")
            OF_GROUPS.when(len(adds) > 1, "an engine reads beside adds of two groups")
            during = any(word == e // 2 for e in leaving)
            after = any(word == e // 2 for e in self.committed)
            COVERAGE.when(during, "read in the cycle of the write gives the old row")
            turned = any(word == r.element // 2 for r in self.transposes.rows)
            COVERAGE.when(turned, "read in the cycle of a transpose gives the old row")
            COVERAGE.when(after, "read one cycle later gives the new row")
            self.asked[n] = None
        COVERAGE.when(len(served) == 2, "both read different banks")
        ready = self.check_writes(leaving)
        for n in range(len(PORTS)):
            refused |= (self.stores[n] is not None and not ready[n]) << (len(PORTS) + n)
        seen = int(self.dut.refused.value)
        assert seen == refused, f"refused is {seen:b}, not {refused:b}"

        done = self.flying.pop()
        self.flying.appendleft({g: (row, self.result(row)) for g, row in rows.items()})
        self.committed.clear()
        for row, total in done.values():
            self.commit(row, total)
        for row in self.transposes.rows:
            self.commit(row, row.data)
        for n, store in enumerate(self.stores):
            if store is not None and ready[n]:
                self.store(store)
                self.stores[n] = None

    def check_rows(self) -> dict[int, Row]:
        """Rows that are taken in the cycle that has just ended, by group: of each bank that of the lowest one."""
        rows: dict[int, Row] = {}
        lost = 0
        asked = [row for row in self.rows_now if row is not None]
        for g, row in enumerate(self.rows_now):
            if row is None:
                continue
            first = next((r for r in rows.values() if self.bank(r.element) == self.bank(row.element)), None)
            if first is None:
                rows[g] = row
                continue
            lost |= 1 << g
            OF_GROUPS.hit("a row lost")
            OF_GROUPS.when(row.accumulate and not first.accumulate, "an add lost to an overwrite")
            same = sum(self.bank(r.element) == self.bank(row.element) for r in asked)
            OF_GROUPS.when(same > 2, "rows of three groups in one bank")
        OF_GROUPS.when(self.groups > 1 and len(rows) == self.groups, "rows of all groups in one cycle")
        if len(rows) == 1:
            self.alone |= set(rows)
            OF_GROUPS.when(len(self.alone) == self.groups > 1, "a lone row of each group")
        seen = sum(int(port["lost"].value) << g for g, port in enumerate(self.sums) if self.rows_now[g])
        assert seen == lost, f"rows of groups {seen:b} are lost, not {lost:b}"
        inside = set(rows).union(*self.flying)
        seen = int(self.dut.adding.value)
        assert seen == sum(1 << g for g in inside), f"adding is {seen:b}, groups {inside} have rows inside"
        return rows

    def check_writes(self, leaving: list[int]) -> list[bool]:
        """Which engines' writes are due in the cycle that has just ended; `leaving`: elements that commit."""
        sum_banks = {self.bank(element) for element in leaving}
        OF_GROUPS.when(len(leaving) > 1, "two sums commit in one cycle")
        turned = self.transposes.banks()
        taken = sum_banks | turned
        adds = {self.bank(row.element) for row in self.rows_now if row is not None and row.accumulate}
        COVERAGE.when(turned & adds, "transpose in a bank that an add reads")
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
                COVERAGE.when(leaving, "an engine writes beside the commit of a sum")
                OF_GROUPS.when(len(leaving) > 1, "an engine writes beside two commits")
                under_add = any(r and r.accumulate and r.element // 2 == store.word for r in self.rows_now)
                COVERAGE.when(under_add, "an engine overwrites an add's old row in its cycle")
                COVERAGE.hit("an engine writes both" if store.halves == 3 else "an engine writes one element of a word")
                COVERAGE.when(store.partitions != (1 << self.lanes) - 1, "an engine writes some partitions")
            else:
                self.refused_writes[n] += 1
                by_row = "a transpose" if bank in turned else "a sum" if bank in sum_banks else ""
                COVERAGE.hit(f"{PORTS[n]} write refused by {by_row}" if by_row else "scalar write refused by vector")
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
        COVERAGE.when(row.accumulate and row.element in self.committed, "element added again as soon as allowed")
        if not row.accumulate:
            COVERAGE.when((row.data == 0x8000_0000).any(), "-0 overwrites")
            return self.rounded(row, canonical(row.data))
        total = added(old, row.data)
        size = total & 0x7FFF_FFFF
        finite = (old & 0x7F80_0000 != 0x7F80_0000) & (row.data & 0x7F80_0000 != 0x7F80_0000)
        COVERAGE.when((total == CANONICAL_NAN_FP32).any(), "sum is NaN")
        COVERAGE.when(((size > 0) & (size < 0x0080_0000)).any(), "sum is subnormal")
        COVERAGE.when(((size == 0x7F80_0000) & finite).any(), "sum overflows")
        return self.rounded(row, total)

    def rounded(self, row: Row, total: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The sum as the row asks for it."""
        COVERAGE.when(row.rounding == Rounding.NEAREST, "a sum is rounded to the nearest BF16")
        COVERAGE.when(row.rounding == Rounding.STOCHASTIC, "a sum is rounded to BF16 at random")
        return to_bf16(total[:, None], row.rounding, [row.random])[:, 0]

    def commit(self, row: Row, total: NDArray[np.uint32]) -> None:
        """The row reaches the memory."""
        mask = np.array([row.partitions >> p & 1 for p in range(self.lanes)], dtype=bool)
        self.memory[row.element, mask] = total[mask]
        self.committed.add(row.element)

    def random_row(self, elements: NDArray[np.integer], accumulate: float) -> Row | None:
        """A row of one of `elements` that is not on its way, if there is one."""
        busy = {row.element for items in self.flying for row, _ in items.values()}
        busy |= {row.element for row in self.rows_now if row is not None}
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
        elements: NDArray[np.integer] | Sequence[NDArray[np.integer]],
        store: float = 0.0,
        turn: float = 0.3,
    ) -> None:
        """Random traffic on `elements`, of all groups or of each one, and their words; the probabilities are per cycle
        and free port, `turn` that of rows of transposes."""
        rng = self.rng
        each = [elements] * self.groups if isinstance(elements, np.ndarray) else list(elements)
        self.words = np.unique(np.concatenate(each) // 2)
        self.storing, self.transposes.often = store, turn

        def choose(n: int) -> int | None:
            return int(rng.choice(self.words)) if rng.random() < read else None

        for _ in range(cycles):
            rows = [self.random_row(e, accumulate) if rng.random() < write else None for e in each]
            if not any(rows):
                self.streak = 0
            await self.step(rows, choose)
        self.storing = self.transposes.often = 0.0
        for _ in range(PSUM_ADD_CYCLES + 40):
            self.streak = 0
            await self.step([], lambda n: None)

    def few(self, count: int) -> NDArray[np.integer]:
        """Some elements of two banks."""
        banks = self.rng.choice(self.cfg.psum.banks, 2, replace=False)
        return self.rng.choice(
            np.concatenate([b * self.rows + np.arange(self.rows) for b in banks]), count, replace=False
        )

    def apart(self, count: int) -> list[NDArray[np.integer]]:
        """Some elements for each group, in banks of its own."""
        banks = np.array_split(self.rng.permutation(self.cfg.psum.banks), self.groups)
        return [
            self.rng.choice(np.concatenate([b * self.rows + np.arange(self.rows) for b in mine]), count, replace=False)
            for mine in banks
        ]


async def started(dut) -> PsumBench:
    bench = PsumBench(dut)
    await bench.start()
    return bench
