"""ClassQueues: rows of a class in order, classes as the golden turn has them, cycle by cycle; shares by weight."""

from collections import deque
from itertools import cycle
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.config import load
from rtl.dma.layouts import row_layout
from verif.agents.bench import Bench
from verif.agents.stall import STYLES, styled
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.class_turn import ClassTurn, StrictCap, entitled, first_class

CLASSES = range(4)
_DEPTH = 16
_ONE = 64 << 10  # bytes over which shares are held
_CAPPED = ["dma.strict_class=2", "dma.strict_cap=8", "dma.weights=3:1:5:2"]
_LONG = ["dma.slice_bytes=2048", "dma.weights=64:1:1:9"]
_PHASES = ([0.9] * 4, [1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 1], [0, 0, 1, 0], [0.02] * 4, [0, 1, 0, 1], [0] * 4)

_FAULTS = (
    EVERY,
    "the deficit of a class is not charged",
    "all weights of a mover's classes are 1",
    "the strict class of a mover has no cap",
)

RUNS = (
    Run("class_queues", options={"depth": _DEPTH}, faults=_FAULTS, config=load("tiny", _CAPPED)),
    Run("class_queues", options={"depth": _DEPTH}),
    Run(
        "class_queues", options={"depth": _DEPTH}, config=load("tiny", ["dma.priority=true"]), seeds=(1,), regress=True
    ),
    Run("class_queues", options={"depth": _DEPTH}, config=load("tiny", _LONG), regress=True),
    *(
        Run("class_queues", options={"depth": _DEPTH}, config=load("tiny", [f"dma.classes={n}"]), regress=True)
        for n in (1, 2)
    ),
)

COVER = Coverage(
    "dma.class_queues",
    [
        "empty",
        *(f"class {c} full" for c in CLASSES),
        *(f"{n} classes wait" for n in (1, 2, 3, 4)),
        "over its cap",
        "both leave",
    ],
)


class QueuesBench(Bench):
    """Queues and their golden turn. `has`: bytes that left of each class."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.turn = ClassTurn(self.cfg.dma)
        self.cap = StrictCap(self.cfg.dma)
        self.first = first_class(self.cfg.dma)  # of `fast`
        self.front = 0  # a row of it is at its output
        self.queues: list[deque[tuple[int, int]]] = [deque() for _ in CLASSES]  # (bytes, tag) by class
        self.shown: tuple[int, int, int] | None = None
        self.due = False  # the shown row has not been charged
        self.left: list[tuple[int, int]] = []
        self.number = 0
        self.spent = [0] * len(CLASSES)  # units of others while the class waited

    async def run(self, cycles: int, shares: list[float], longest: int, style: str, aligned: bool = False) -> None:
        """Rows of up to `longest` bytes; a class offers one with the probability of its share."""
        dut, rng = self.dut, self.rng
        ready, fast = (cycle([1] + 7 * [0]) if style == "slow" else styled(style, rng) for _ in range(2))
        edge = RisingEdge(self.clk)
        for _ in range(cycles):
            asks = [c for c in CLASSES if c < self.cfg.dma.classes and rng.random() < shares[c]]
            offer = int(rng.choice(asks)) if asks else None
            size = longest if aligned else int(rng.integers(1, longest + 1))
            payload = dut.i__payload
            dut.i__valid.value = offer is not None
            dut.class_.value = offer if offer is not None else int(rng.integers(4))
            payload.value = self.row(size, self.number)
            dut.o__ready.value = next(ready)
            if self.first is not None:
                dut.fast__ready.value = next(fast)
            await edge
            self._cycle(offer, size)

    def row(self, size: int, tag: int) -> int:
        """A row with that length, told from others by its source."""
        layout = self.layout
        return size << layout["bytes"] | (tag & 0xFFFF) << layout["source"]

    @property
    def layout(self) -> dict[str, int]:
        """Offsets of fields of a row."""
        return {name: field.offset for name, field in row_layout(self.cfg)}

    def _waits(self, there: list[int], chosen: int) -> None:
        """No class waits longer than others need to spend what they may have: see verif.formal.class_turn."""
        cfg = self.cfg.dma
        units = (self.queues[chosen][0][0] + 15) // 16
        share = [c for c in range(cfg.classes) if c != self.first]
        longest = (cfg.slice_bytes + self.cfg.hbm.port_bytes) // 16
        for c in share:
            rest = sum(cfg.weights[k] for k in share) - cfg.weights[c]
            bound = rest * (1 - -longest // cfg.weights[c]) + 3 * longest
            self.spent[c] = self.spent[c] + units if c in there and c != chosen else 0
            if not cfg.priority:
                assert self.spent[c] <= bound, f"class {c} waited while others had {self.spent[c]} units of {bound}"

    def _fast(self, mine: deque[tuple[int, int]], waits: bool, others: int) -> bool:
        """The output of the class that goes first: whether a row of it leaves. `others`: bytes of others that do."""
        if self.first is None:
            return False
        dut = self.dut
        opens = self.cap.opens(waits)
        assert bool(dut.fast__valid.value) == bool(self.front and opens)
        leaves = bool(self.front and opens and dut.fast__ready.value == 1)
        COVER.when(bool(self.front and not opens), "over its cap")
        COVER.when(leaves and others > 0, "both leave")
        length = 0
        if self.front and opens:
            length, tag = mine[0]
            got = int(dut.fast__payload.value)
            assert got == self.row(length, tag), (
                f"{got:x} left, {self.row(length, tag):x} of class {self.first} was next"
            )
        if leaves:
            mine.popleft()
            self.left.append((self.first, length))
        self.cap.left(waits, (length + 15) // 16 if leaves else 0, (others + 15) // 16)
        return leaves

    def _cycle(self, offer: int | None, size: int) -> None:
        dut, turn = self.dut, self.turn
        there = [c for c in CLASSES if self.queues[c] and c != self.first]
        room = [len(q) < _DEPTH + (c == self.first) for c, q in enumerate(self.queues[: self.cfg.dma.classes])]
        waits = bool(there or self.shown)  # others than the class that goes first
        mine = self.queues[self.first] if self.first is not None else deque()
        if self.first is not None:  # its RAM has _DEPTH rows, and one is in front in the second cycle
            room[self.first] = len(mine) - self.front < _DEPTH
        assert int(dut.room.value) == sum(r << c for c, r in enumerate(room))
        assert bool(dut.holds.value) == bool(waits or mine)
        assert bool(dut.o__valid.value) == (self.shown is not None)
        leaves = self.shown is not None and dut.o__ready.value == 1
        fast = self._fast(mine, waits, self.shown[1] if self.shown and leaves else 0)
        COVER.when(not waits and not mine, "empty")
        for c, free in enumerate(room):
            COVER.when(not free, f"class {c} full")
        if there:
            COVER.hit(f"{len(there) + bool(mine)} classes wait")
        if self.shown:
            class_, length, tag = self.shown
            got = int(dut.o__payload.value)
            assert got == self.row(length, tag), f"{got:x} left, {self.row(length, tag):x} of class {class_} was next"
            if self.due:
                turn.charge(class_, (length + 15) // 16)
                self.due = False
        if self.shown and leaves:
            self.left.append(self.shown[:2])
        class_ = turn.choose(there) if there and (self.shown is None or leaves) else None
        turn.passed(there, class_)
        if class_ is not None:
            self._waits(there, class_)
            self.shown = (class_, *self.queues[class_].popleft())
            self.due = True
        elif leaves:
            self.shown = None
        if self.first is not None:
            self.front = int(bool(mine) if fast or not self.front else 1)
        if offer is not None and room[offer]:
            self.queues[offer].append((size, self.number & 0xFFFF))
            self.number += 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def goes_as_the_golden_turn_does(dut: Any) -> None:
    bench = QueuesBench(dut)
    await bench.start()
    longest = bench.cfg.dma.slice_bytes + bench.cfg.hbm.port_bytes - 1
    for style in STYLES:
        for shares in _PHASES:
            await bench.run(400, shares, longest if bench.rng.random() < 0.5 else 100, style)
    await bench.run(4000, [0] * 4, 1, "mostly")  # a raise takes up to as many cycles as a piece has units
    assert not any(bench.queues) and bench.number > 1500


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def shares_are_those_of_the_weights(dut: Any) -> None:
    """While all four wait, 64 KiB in a row are shared by weight within 2 %, with pieces of 512 bytes or less. By
    priority the first class has an output, which others do not share: see bench_classes."""
    bench = QueuesBench(dut)
    await bench.start()
    cfg = bench.cfg.dma
    for longest in (cfg.slice_bytes, 512, 96):
        bench.left.clear()
        while sum(size for _, size in bench.left) < 4 * _ONE:
            await bench.run(200, [1] * 4, longest, "slow", aligned=longest != 96)
            if bench.number > 50_000:
                raise AssertionError("nothing leaves")
        if cfg.priority:
            assert not any(c > 1 for c, _ in bench.left[-100:]), "a class left before a lower one"
            continue
        want = entitled(cfg)
        rows = list(reversed(bench.left))  # the last ones: none of an earlier length
        rows = rows[: next(n for n in range(len(rows)) if sum(s for _, s in rows[:n]) >= _ONE)]
        total = sum(size for _, size in rows)
        for c in CLASSES:
            share = sum(size for k, size in rows if k == c) / total
            fine = 0.02 if max(cfg.weights) <= 8 else 0.03
            slack = fine if longest <= 512 else 2.2 * longest / _ONE
            slack += cfg.strict_cap * 256 / _ONE if cfg.strict_class >= 0 else 0  # what it may be ahead
            assert abs(share - want[c]) <= slack + 1e-9, f"class {c}: {share:.4f}, not {want[c]:.4f}, rows of {longest}"


@cocotb.test()
async def covered(dut: Any) -> None:
    dma = QueuesBench(dut).cfg.dma
    if dma.strict_class >= 0:  # only then there is a cap
        COVER.require_all()
