"""The receiving end of lanes beside the golden sender; what its bench drives."""

from collections import deque
from collections.abc import Iterator

import cocotb
import numpy as np

from rtl.contract.lanes import ALIGN_MARKERS, WEAK_RATIO
from rtl.contract.link import FLIT_BYTES
from verif.agents.bench import Bench
from verif.agents.stall import styled
from verif.checks.coverage import Coverage
from verif.golden.lanes import LaneWriter

__all__ = ["COVER", "ReceiverBench", "fix", "fixes", "interval", "just_apart", "random_hits", "some_mask", "until"]


COVER = Coverage(
    "lane receiver",
    [
        "map changes between flits",
        "map changes back to back",
        "a marker missing on a lane is forgiven",
        "a marker missing on all lanes is forgiven",
        "a lane with an old map is not believed",
        "a dead lane is named",
        "a weak lane is named",
        "a weak lane comes back with a session",
        "lanes that are equally bad stay",
        "most flits are lost: a lane leaves without a spare",
        "few flits are lost: a lane stays without a spare",
        "markers lost",
        "aligned",
        "called",
        "quiet",
        "unanswered",
    ],
)


class ReceiverBench(Bench):
    """Golden writer -> unit -> comparison with what was written."""

    def __init__(self, dut, style: str = "never"):
        super().__init__(dut)
        self.interval = self.options["interval"]
        self.physical = self.cfg.lanes + self.cfg.spare_lanes
        self.everywhere = (1 << self.physical) - 1
        self.writer = LaneWriter(self.cfg.lanes, self.physical)
        self.stall = styled(style, self.rng)
        self.words: deque[list[int]] = deque()
        self.sent: list[bytes] = []
        self.got: list[bytes] = []
        self.markers: list[int] = []  # lanes that hide each, since counting began
        self.unforeseen = 0  # of them, words of a flit to the unit
        self.counted = (0, 0)
        for name in ("valid", "lanes", "align", "fix_valid", "fix_lost", "fix", "clear"):
            getattr(dut, name).value = 0

    async def begin(self) -> None:
        """Reset, wires, and two markers so that the unit finds the lanes."""
        await self.start()
        cocotb.start_soon(self.wires())
        cocotb.start_soon(self._beats())
        self.marker(more=1, here=1, count=ALIGN_MARKERS + 4)
        self.marker()

    def marker(self, count: int = 1, hide: int = 0, **said: int) -> None:
        """Marker times; lanes in `hide` carry noise instead."""
        for _ in range(count):
            words = self.writer.marker(**said)[0].tolist()
            self.markers.append(hide)
            noise = self.rng.integers(1 << 63, size=self.physical).tolist()
            self.words.append([n if hide >> p & 1 else w for p, (w, n) in enumerate(zip(words, noise))])

    def flits(self, count: int) -> None:
        """Random flits."""
        for _ in range(count):
            flit = self.rng.bytes(FLIT_BYTES)
            self.sent.append(flit)
            self.words.extend(self.writer.flit(np.frombuffer(flit, np.uint8)).tolist())

    async def drained(self) -> None:
        """Until all words have gone and come out."""
        while self.words:
            await self.edge
        await self.cycles(6)

    def _counters(self) -> tuple[int, int]:
        return self.value("markers"), self.value("missed")

    def count(self) -> None:
        """From here on markers count."""
        self.markers.clear()
        self.counted = self._counters()

    def check_counts(self) -> None:
        """The counters tell the markers since, and the lanes without one."""
        told = tuple(now - before for now, before in zip(self._counters(), self.counted))
        hidden = sum(lanes.bit_count() for lanes in self.markers)
        assert told == (len(self.markers) - self.unforeseen, hidden), f"{told} markers and missing ones are told"

    def same(self) -> None:
        """What came is what was sent."""
        assert len(self.got) == len(self.sent), f"{len(self.got)} flits came, {len(self.sent)} were sent"
        wrong = [k for k, (a, b) in enumerate(zip(self.got, self.sent)) if a != b]
        assert not wrong, f"flits {wrong[:8]} of {len(self.sent)} differ"

    async def wires(self) -> None:
        """The words, one a cycle unless it stalls."""
        while True:
            go = bool(self.words) and not next(self.stall)
            self.dut.valid.value = int(go)
            if go:
                self.dut.lanes.value = sum(w << 64 * p for p, w in enumerate(self.words.popleft()))
            await self.edge

    async def _beats(self) -> None:
        flit = b""
        while True:
            await self.edge
            if self.dut.o_valid.value != 1:
                continue
            beat = int(self.dut.o.value)
            if beat & 1:
                flit = b""
            flit += (beat >> 2).to_bytes(self.cfg.beat_bytes, "little")
            if beat >> 1 & 1:
                self.got.append(flit)

    def value(self, name: str) -> int:
        """An output."""
        return int(getattr(self.dut, name).value)


def some_mask(bench: ReceiverBench) -> int:
    """Good lanes, at random."""
    return int(bench.rng.integers(1, bench.everywhere + 1))


async def fix(bench: ReceiverBench, *places: int, lost: bool = False) -> None:
    """The FEC located these bytes of a flit."""
    bench.dut.fix.value = sum((1 | place << 1) << 9 * k for k, place in enumerate(places))
    bench.dut.fix_lost.value = int(lost)
    bench.dut.fix_valid.value = 1
    await bench.edge
    bench.dut.fix_valid.value = 0


async def fixes(bench: ReceiverBench, logical: int, count: int, lost: bool = False) -> None:
    """So many located bytes on a lane, up to 3 a flit."""
    places = [logical + bench.cfg.lanes * k for k in range(FLIT_BYTES // bench.cfg.lanes)]
    while count:
        some = min(count, int(bench.rng.integers(1, 4)))
        await fix(bench, *bench.rng.choice(places, some).tolist(), lost=lost)
        count -= some


async def interval(bench: ReceiverBench) -> None:
    """Flits without corrections, and the marker that ends the interval."""
    bench.flits(bench.interval)
    bench.marker()
    await bench.drained()


async def until(bench: ReceiverBench, name: str, cycles: int) -> int:
    """Cycles until an output is 1; `cycles` + 1 if it stays 0."""
    for n in range(cycles + 1):
        if bench.value(name) == 1:
            return n
        await bench.edge
    return cycles + 1


def random_hits(rng: np.random.Generator, used: list[int], dead: set[int], long: bool) -> Iterator[list[int]]:
    """Random corrections by flit, some lanes worse than others."""
    rate = np.full(len(used), rng.choice([0.05, 0.3]))
    rate[rng.permutation(len(used))[: int(rng.integers(0, len(used) + 1))]] = rng.choice([0.3, 0.6, 0.9])
    if rng.random() < 0.5:  # one stands apart
        rate[:] = 0.05
        rate[int(rng.integers(len(used)))] = 2
    elif rng.random() < 0.5:
        rate[[lane in dead for lane in used]] = 0.9
    for _ in range(int(rng.integers(600, 1400) if long else rng.integers(4, 60))):
        yield np.flatnonzero(rng.random(len(used)) < rate * 3 / len(used))[:3].tolist()


def just_apart(rng: np.random.Generator, lanes: int) -> Iterator[list[int]]:
    """As many lanes as it takes for the worst to stand apart, or one fewer, have just few enough corrections."""
    most = WEAK_RATIO * int(rng.integers(2, 200)) + int(rng.integers(WEAK_RATIO))
    counts = np.full(lanes, most // WEAK_RATIO + 1)
    order = rng.permutation(lanes)
    counts[order[: max(lanes // 2 - int(rng.integers(2)), 0)]] = most // WEAK_RATIO
    counts[order[-1]] = most
    every = rng.permutation(np.repeat(np.arange(lanes), counts))
    yield from (part.tolist() for part in np.array_split(every, -(-len(every) // 3)))
