"""LaneSender against the golden reader: every flit once and in order, markers in their places, maps as asked."""

from dataclasses import replace

import cocotb

from rtl.contract.lanes import VERSIONS
from rtl.contract.link import FLIT_BYTES
from rtl.contract.link_config import LINKS, LinkConfig
from verif.agents.bench import Bench, manifest
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.golden.lanes import LaneReader, lane_map


def _link(name: str, spares: int) -> LinkConfig:
    """A link whose lanes are called weak soon."""
    return replace(LINKS[name], spare_lanes=spares, weak_corrections=8)


_ENDS = {"interval": 6}

_PLANTED = (
    "the mask of the partner is not obeyed",
    "the map changes between markers",
    "the scrambler of the sender does not start again at a marker",
)

RUNS = (
    Run("lane_sender", config=_link("x1", 0), options=_ENDS, regress=True),
    Run("lane_sender", config=_link("x8", 2), options=_ENDS, faults=_PLANTED),
    Run("lane_sender", config=_link("x16", 0), options=_ENDS, regress=True),
)

COVER = Coverage(
    "lane sender",
    ["marker after a full interval", "markers back to back", "map changes", "the width changes", "full rate"],
)


def beats(flit: bytes, size: int) -> list[int]:
    """Payloads of the stream that carries a flit."""
    count = len(flit) // size
    return [
        int(k == 0) | int(k == count - 1) << 1 | int.from_bytes(flit[size * k : size * (k + 1)], "little") << 2
        for k in range(count)
    ]


class SenderBench(Bench):
    """Source -> unit -> golden reader."""

    def __init__(self, dut, style: str):
        super().__init__(dut)
        self.interval = self.options["interval"]
        self.physical = self.cfg.lanes + self.cfg.spare_lanes
        self.reader = LaneReader(self.cfg.lanes, self.physical)
        self.source = StreamSource(self, "i", styled(style, self.rng))
        self.sent: list[bytes] = []
        self.masks = [0]  # the last ones given, oldest first
        self.valid_cycles: list[bool] = []
        for name in ("align", "mask", "hear", "here"):
            getattr(dut, name).value = 0

    def queue(self, flits: int) -> None:
        """Send random flits."""
        for _ in range(flits):
            flit = self.rng.bytes(FLIT_BYTES)
            self.sent.append(flit)
            self.source.send(beats(flit, self.cfg.beat_bytes))

    def new_mask(self) -> None:
        """A random mask of good lanes; 0 too, which says nothing."""
        mask = int(self.rng.integers(1 << self.physical))
        if self.rng.random() < 0.2:
            mask = 1 << int(self.rng.integers(self.physical))
        elif self.rng.random() < 0.5:
            mask |= int(self.rng.integers(1 << self.physical))
        self.masks = [*self.masks[-1:], mask]
        self.dut.mask.value = mask

    async def read(self) -> None:
        """Feed the reader; check each marker against the masks given."""
        marks, more, sent = 0, 1, 0
        version, width = 0, self.cfg.lanes
        told = heard = (0, 0)
        while True:
            await self.edge
            on = self.dut.valid.value == 1
            told, heard = heard, (int(self.dut.hear.value), int(self.dut.here.value))
            self.valid_cycles.append(on)
            if not on:
                continue
            word = int(self.dut.lanes.value)
            since = len(self.reader.flits) - sent
            self.reader.word([word >> 64 * p & (1 << 64) - 1 for p in range(self.physical)])
            marked = len(self.reader.markers) != marks
            assert self.dut.sent_marker.value == marked
            assert int(self.dut.width.value) == len(self.reader.map), "the width told is not that of the map in use"
            if not marked:
                assert since < self.interval, "a marker is late"
                continue
            marks, sent = marks + 1, len(self.reader.flits)
            said = self.reader.markers[-1]
            allowed = [lane_map(mask, self.cfg.lanes, self.physical) for mask in self.masks]
            assert self.reader.map in allowed, f"map {self.reader.map}, and masks {[bin(x) for x in self.masks]}"
            assert (said["mask"], said["here"]) == told, "a marker does not say what is heard"
            assert int(self.dut.version.value) == said["version"]
            assert said["toggle"] == (marks - 1) % 2
            assert said["version"] in (version, (version + 1) % VERSIONS), "the version skips"
            COVER.when(said["version"] != version, "map changes")
            COVER.when(len(self.reader.map) != width, "the width changes")
            version, width = said["version"], len(self.reader.map)
            if said["more"] and marks > 1 and self.reader.since[-1] == 0:
                COVER.hit("markers back to back")
            COVER.when(self.reader.since[-1] == self.interval, "marker after a full interval")
            if not (more or said["more"]):
                assert self.reader.since[-1] == self.interval, f"a marker after {self.reader.since[-1]} flits"
            more = said["more"]

    async def arrive(self) -> None:
        """Until all that was queued has come, then compare."""
        for _ in range(400_000):
            if len(self.reader.flits) == len(self.sent):
                break
            await self.edge
        assert self.reader.flits == self.sent


@cocotb.test(timeout_time=3000, timeout_unit="us")
@cocotb.parametrize(style=STYLES)
async def carries_flits(dut, style: str) -> None:
    """Random masks and ALIGN at any time."""
    bench = SenderBench(dut, style)
    await bench.start()
    cocotb.start_soon(bench.read())
    for _ in range(24):
        bench.queue(int(bench.rng.integers(1, 2 * bench.interval)))
        bench.dut.hear.value = int(bench.rng.integers(1 << bench.physical))
        bench.dut.here.value = int(bench.rng.integers(2))
        await bench.cycles(int(bench.rng.integers(1, 60)))
        if bench.rng.random() < 0.5:
            dut.align.value = 1
            await bench.cycles(bench.cfg.flit_cycles * 16 + int(bench.rng.integers(1, 40)))
            assert bench.reader.markers[-1]["more"] and bench.dut.sent_marker.value == 1, "no markers back to back"
            bench.new_mask()
            await bench.cycles(10)
            dut.align.value = 0
        else:
            bench.new_mask()
        await bench.arrive()
    await bench.cycles(5)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def keeps_the_rate(dut) -> None:
    """At full width a beat each beat_cycles cycles, but for one cycle a marker."""
    bench = SenderBench(dut, "never")
    await bench.start()
    cocotb.start_soon(bench.read())
    flits = 4 * bench.interval
    bench.queue(flits)
    await bench.arrive()
    first = bench.valid_cycles.index(True)  # the marker after reset; then the source fills the pipe
    run = bench.valid_cycles[first + 8 : first + flits * bench.cfg.flit_cycles]
    assert all(run), f"{run.count(False)} cycles without a word"
    COVER.hit("full rate")


@cocotb.test(timeout_time=1000, timeout_unit="us", skip=manifest().config.lanes == 1)
async def versions_wrap(dut) -> None:
    """A new mask for every marker, more often than there are versions."""
    bench = SenderBench(dut, "never")
    await bench.start()
    cocotb.start_soon(bench.read())
    dut.align.value = 1
    seen = set()
    for _ in range(VERSIONS * 5 // 4):
        bench.new_mask()
        await bench.cycles(3)
        seen.add(int(dut.version.value))
    assert len(seen) == VERSIONS, f"{len(seen)} versions"


@cocotb.test()
async def covered(dut) -> None:
    link = manifest().config
    COVER.rule_out(link.lanes == 1, "the width changes")
    COVER.rule_out(link.lanes + link.spare_lanes == 1, "map changes")
    COVER.require_all()
