"""Reductions against the golden model: groups of all lengths, beats of all widths, bubbles, group after group."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.formats import FORMATS
from rtl.contract.isa import REDUCTIONS, AluOp
from rtl.numeric.fp32.partial_sums import PARTIALS, PartialSums
from verif.agents.bench import Bench, manifest
from verif.agents.stall import styled
from verif.agents.values import companions, random_codes, special_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.golden.alu import reduce

_PLANTED = (
    "a group of one beat is joined a cycle late",
    "partial results go on from the group before",
    "every element goes to the partial result of its neighbour",
    "the tree leaves out the last pair",
    "a NaN loses against a number",
    "the larger of two zeros is the first",
    "what is not valid counts in partial sums",
    "the smallest is sought from zero",
)

RUNS = (
    Run("partial_sums", options={"slots": 1}, regress=True),
    Run("partial_sums", options={"slots": 4}, faults=_PLANTED),
)

SLOTS = int(manifest().options["slots"])
coverage = Coverage(
    "partial_sums",
    [op.name for op in REDUCTIONS]
    + ["one element", "fewer than the partial results", "more", "bubble", "group at once"]
    + ["width 1", "width of all slots", *(["last beat not full"] if SLOTS > 1 else [])],
)


class Cycles:
    """Lets cycles pass and checks `busy`, `done` and `out` in each."""

    def __init__(self, bench: Bench):
        self.dut = bench.dut
        self.edge = RisingEdge(bench.clk)
        self.tree = PartialSums.TREE[SLOTS]
        self.now = 0
        self.busy: set[int] = set()
        self.due: dict[int, tuple[int, str]] = {}

    def ends(self, want: int, what: str) -> None:
        """The group's last beat is in this cycle."""
        self.busy |= set(range(self.now + 1, self.now + 1 + self.tree))
        self.due[self.now + 1 + self.tree] = (want, what)

    async def tick(self) -> None:
        """Handles show, right behind an edge, what was there before it."""
        await self.edge
        assert int(self.dut.busy.value) == (self.now in self.busy), f"busy in cycle {self.now}"
        due = self.due.pop(self.now, None)
        assert int(self.dut.done.value) == (due is not None), f"done in cycle {self.now}"
        if due is not None:
            seen = int(self.dut.out.value)
            assert seen == due[0], f"{due[1]}: is {seen:#010x}, should be {due[0]:#010x}"
        self.now += 1


async def group(bench: Bench, cycles: Cycles, x: np.ndarray, op: AluOp, width: int, stalls: str) -> None:
    """Send a group in beats of `width`; leaves in the first cycle in which the next one may begin."""
    dut = bench.dut
    rng = bench.rng
    held_back = styled(stalls, rng)
    dut.op.value = int(op)
    for start in range(0, x.size, width):
        while next(held_back):
            dut.valid.value = 0
            dut.first.value = dut.last.value = int(rng.integers(2))
            coverage.hit("bubble")
            await cycles.tick()
        some = x[start : start + width]
        lanes = rng.integers(0, 1 << 32, SLOTS, dtype=np.uint32)
        lanes[: some.size] = some
        dut.x.value = int.from_bytes(lanes.astype("<u4").tobytes(), "little")
        dut.valid.value = (1 << some.size) - 1
        dut.position.value = start % PARTIALS
        dut.first.value = int(start == 0)
        dut.last.value = int(start + width >= x.size)
        coverage.when(some.size < width, "last beat not full")
        if start + width >= x.size:
            cycles.ends(int(reduce(x[None], op)[0]), f"{op.name} of {[hex(v) for v in x]}")
        await cycles.tick()
    dut.valid.value = 0
    for _ in range(cycles.tree):
        dut.first.value = dut.last.value = int(rng.integers(2))
        dut.x.value = int(rng.integers(1 << 31))
        await cycles.tick()


def hard(rng: np.random.Generator, length: int) -> np.ndarray:
    """Each number is hard to add to the one of the same partial result before it; sometimes one of all is special."""
    x = random_codes(rng, (length,), "fp32", "normal").astype(np.uint32)
    for start in range(PARTIALS, length, PARTIALS):
        now = x[start : start + PARTIALS]
        now[:] = companions(rng, x[start - PARTIALS : start][: now.size])
        finite = (now >> np.uint32(23)) & np.uint32(0xFF) < 0xFF
        now[:] = np.where(finite, now, x[start - PARTIALS : start][: now.size])
    if rng.random() < 0.5:
        x[rng.integers(length)] = rng.choice(special_codes(FORMATS["fp32"]))
    return x


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reduces(dut: Any) -> None:
    """Lengths around multiples of the partial results; numbers of like size, specials, random bits, zeros."""
    bench = Bench(dut)
    dut.valid.value = 0
    await bench.start()
    rng = bench.rng
    cycles = Cycles(bench)
    for length in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, *rng.integers(1, 70, 8).tolist()]:
        for op in (AluOp.ADD, AluOp.ADD, *REDUCTIONS):
            flavour = str(rng.choice(["bits", "special", "narrow", "normal"]))
            x = random_codes(rng, (length,), "fp32", flavour).astype(np.uint32)
            if rng.random() < 0.4:
                x = rng.normal(size=length).astype(np.float32).view(np.uint32)
            elif rng.random() < 0.3:
                x = rng.choice(np.array([0, 1 << 31], np.uint32), length)
            elif rng.random() < 0.5:
                x = hard(rng, length)
            width = 1 << int(rng.integers(SLOTS.bit_length()))
            stalls = str(rng.choice(["never", "never", "half", "rarely"]))
            await group(bench, cycles, x, op, width, stalls)
            if rng.random() < 0.3:
                await cycles.tick()
            coverage.hit(op.name)
            coverage.when(length == 1, "one element")
            coverage.when(1 < length < PARTIALS, "fewer than the partial results")
            coverage.when(length > PARTIALS, "more")
            coverage.when(stalls == "never", "group at once")
            coverage.when(width == 1, "width 1")
            coverage.when(width == SLOTS, "width of all slots")
    await cycles.tick()
    coverage.require_all()
