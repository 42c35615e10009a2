"""Semaphores against a dictionary: no update lost or done twice, one a cycle, fair, reads exact."""

from typing import Any

import cocotb

from rtl.contract.isa import Update
from verif.agents.bench import Bench
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

RUNS = (Run("semaphores", options={"readers": 3, "writers": 4}, faults=EVERY),)

COVERAGE = Coverage(
    "semaphores",
    ["add", "set", "negative", "wraps", "several_at_once", "same_index_at_once", "clear", "first_set", "last_index"],
)


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class SemaphoreBench(Bench):
    """Writers, readers and the expected values, checked in every cycle."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.count = self.cfg.issue.semaphores
        self.writers = int(self.options["writers"])
        self.readers = int(self.options["readers"])
        self.sources = [StreamSource(self, f"update__{w}") for w in range(self.writers)]
        self.valids = [s.valid for s in self.sources]
        self.readies = [s.ready for s in self.sources]
        self.values = [0] * self.count
        self.accepted = 0
        self.hot = [int(self.rng.integers(self.count)) for _ in range(3)] + [self.count - 1]
        for w in range(self.writers):
            self.sources[w].on_sent = self.update
        dut.clear.value = 0
        for r in range(self.readers):
            getattr(dut, f"index__{r}").value = 0
        self.index = [getattr(dut, f"index__{r}") for r in range(self.readers)]
        self.value = [getattr(dut, f"value__{r}") for r in range(self.readers)]
        self.turn = self.writers  # above the writer served last

    def some_index(self) -> int:
        """Often one of a few, so that updates meet."""
        return int(self.rng.integers(self.count)) if self.rng.random() < 0.3 else int(self.rng.choice(self.hot))

    def random_update(self) -> int:
        """A payload."""
        kind = int(self.rng.integers(1, 3))
        value = int(self.rng.choice([1, -1, 2, 100, -100, (1 << 31) - 1, -(1 << 31)]))
        return self.some_index() | kind << 8 | (value & 0xFFFFFFFF) << 10

    def update(self, payload: int) -> None:
        """What an accepted update does."""
        index, kind, value = payload & 0xFF, payload >> 8 & 3, _signed(payload >> 10)
        old = self.values[index]
        new = value if kind == Update.SET else old + value
        COVERAGE.hit("set" if kind == Update.SET else "add")
        COVERAGE.when(kind == Update.SET and old == 0, "first_set")
        COVERAGE.when(value < 0, "negative")
        COVERAGE.when(new != _signed(new), "wraps")
        COVERAGE.when(index == self.count - 1, "last_index")
        self.values[index] = _signed(new)
        self.accepted += 1

    async def watch(self, cycles: int) -> None:
        """Look at random semaphores in every cycle, and at who is served."""
        asked = [0] * self.readers
        old = list(self.values)
        for _ in range(cycles):
            await self.edge
            for r in range(self.readers):
                got = _signed(int(self.value[r].value))
                assert got == old[asked[r]], f"semaphore {asked[r]} reads {got}, not {old[asked[r]]}"
            waiting = [w for w in range(self.writers) if self.valids[w].value == 1]
            served = [w for w in waiting if self.readies[w].value == 1]
            next_ = min(waiting, key=lambda w: (w < self.turn, w), default=None)
            assert served == [w for w in waiting if w == next_], f"{served} of {waiting} served, not {next_} alone"
            self.turn = self.turn if next_ is None else next_ + 1
            COVERAGE.when(len(waiting) > 1, "several_at_once")
            indexes = [int(self.sources[w].payload.value) & 0xFF for w in waiting]
            COVERAGE.when(len(set(indexes)) < len(indexes), "same_index_at_once")
            # The sources see this edge too; what they accept shows in the next cycle.
            await cocotb.triggers.ReadOnly()
            old = list(self.values)
            await cocotb.triggers.FallingEdge(self.clk)
            for r in range(self.readers):
                asked[r] = self.some_index()
                self.index[r].value = asked[r]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def loses_no_update_and_does_none_twice(dut: Any, style: str) -> None:
    """Random updates of all writers at random times."""
    bench = SemaphoreBench(dut)
    for source in bench.sources:
        source.stall = styled(style, bench.rng)
    await bench.start()
    for source in bench.sources:
        source.send(bench.random_update() for _ in range(150))
    await bench.watch(900)
    if style != "mostly":
        assert bench.accepted == 150 * bench.writers


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def starts_from_zero_again(dut: Any) -> None:
    """Clear makes all of them 0 in one cycle."""
    bench = SemaphoreBench(dut)
    await bench.start()
    for _ in range(3):
        for source in bench.sources:
            source.send(bench.random_update() for _ in range(40))
        await bench.watch(40 * bench.writers + 20)
        dut.clear.value = 1
        await bench.edge
        dut.clear.value = 0
        bench.values = [0] * bench.count
        await bench.edge
        for index in range(bench.count):
            bench.index[0].value = index
            await bench.edge
            await cocotb.triggers.ReadOnly()
            assert int(bench.value[0].value) == 0, f"semaphore {index} is not 0 after clear"
            await cocotb.triggers.FallingEdge(bench.clk)
        bench.index[0].value = 0
        await bench.edge
        COVERAGE.hit("clear")
    COVERAGE.require_all()
