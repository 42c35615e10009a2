"""LaneReceiver against the golden rules of its lanes: whose marker counts, who is dead, who is weak."""

from dataclasses import replace
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles

from rtl.contract.lanes import ALIGN_MARKERS, NO_LANE, VERSIONS
from rtl.contract.link_config import LINKS, LinkConfig
from verif.bench import Run, noticed_by
from verif.benches.link.lane_receiver_driver import ReceiverBench, fix, just_apart, random_hits
from verif.checks.coverage import Coverage
from verif.golden.lane_health import LaneHealth, LaneTrust
from verif.golden.lanes import lane_map, marker


def _link(name: str, spares: int) -> LinkConfig:
    """A link whose lanes are called weak soon, as in bench_lane_receiver."""
    return replace(LINKS[name], spare_lanes=spares, weak_corrections=8)


_ENDS = {"interval": 6}

RUNS = (
    Run("lane_receiver", config=_link("x1", 0), options=_ENDS, regress=True),
    Run(
        "lane_receiver",
        config=_link("x8", 2),
        options=_ENDS,
        faults=(
            *noticed_by("believes_the_lowest_lane_it_may", "a dead lane is not noticed"),
            *noticed_by("judges_lanes_as_the_golden_model", "a weak lane is not noticed"),
        ),
    ),
    Run("lane_receiver", config=_link("x16", 0), options=_ENDS, regress=True),
)

COVER = Coverage(
    "lane trust",
    [
        "one lane shows a marker",
        "a dead lane shows one",
        "the lowest lane repeats itself",
        "all that show one repeat themselves",
        "a lane shows another version",
        "a map is shown whole",
        "a lane of a map is not shown",
        "aligned",
        "another map",
        "random corrections name a lane",
        "random corrections name none",
        "a lane is dead when lanes are judged",
    ],
)


class _Told:
    """Markers lane by lane, to the unit and to the golden model."""

    def __init__(self, bench: ReceiverBench):
        self.bench, self.golden = bench, LaneTrust(bench.physical)
        self.heard = 0  # markers back to back since they were found
        self.alone = 0  # the lane that is next alone
        self.counted = (0, 0)

    def _counters(self) -> tuple[int, int]:
        return self.bench.value("markers"), self.bench.value("missed")

    def some(self) -> set[int]:
        """Lanes: all but a few, few, or any."""
        rng, physical = self.bench.rng, self.bench.physical
        few = set(rng.permutation(physical)[: int(rng.integers(1, 3))].tolist())
        everywhere = set(range(physical))
        some = (everywhere, few, everywhere - few, {p for p in range(physical) if rng.random() < 0.5}, set())
        chosen = some[int(rng.integers(5))]
        if not chosen:
            self.alone = (self.alone + 1) % physical
        return chosen or {self.alone}

    async def say(
        self, shows: set[int], *, more: int = 0, repeats: set[int] = frozenset(), old: set[int] = frozenset()
    ):
        """A marker time: lanes in `shows` say a mask each; the others noise, or a marker with a wrong bit.

        repeats: lanes with the marker from before; old: with another version of the map.
        """
        bench, writer = self.bench, self.bench.writer
        rng = bench.rng
        place = {p: logical for logical, p in enumerate(writer.map)}
        words = []
        for p in range(bench.physical):
            said: dict[str, Any] = dict(physical=p, logical=place.get(p, NO_LANE), more=more, here=int(rng.integers(2)))
            said |= dict(width=len(writer.map).bit_length() - 1, toggle=writer.toggle ^ (p in repeats))
            said |= dict(version=(writer.version + (p in old)) % VERSIONS, mask=int(rng.integers(1 << bench.physical)))
            word = marker(**said)
            wrong = int(rng.integers(1 << 63)) if rng.random() < 0.5 else word ^ 1 << int(rng.integers(64))
            words.append(word if p in shows else wrong)
        writer.toggle ^= 1
        writer.at = 0
        bench.words.append(words)
        before = set(self.golden.dead)
        back_to_back = self.golden.told is not None and self.golden.told["more"]
        self.heard = min(self.heard + bool(back_to_back), ALIGN_MARKERS)
        self.golden.marker(words, between_flits=not back_to_back)
        await bench.drained()
        told = self.golden.told
        assert told is not None and bench.value("partner_mask") == told["mask"], "another lane is believed"
        assert bench.value("dead_lanes") == sum(1 << p for p in self.golden.dead)
        assert bench.value("locked") == (self.heard == ALIGN_MARKERS)
        counts = tuple(now - then for now, then in zip(self._counters(), self.counted))
        assert counts == (self.golden.markers, self.golden.missed), f"{counts} markers and missing ones are told"
        COVER.when(len(shows) == 1, "one lane shows a marker")
        COVER.when(bool(shows & before) and bool(shows - before) and not more, "a dead lane shows one")
        COVER.when(
            more and bool(shows) and min(shows) in repeats and bool(shows - repeats), "the lowest lane repeats itself"
        )
        COVER.when(more and shows <= repeats, "all that show one repeat themselves")
        COVER.when(old & shows, "a lane shows another version")

    async def find(self) -> None:
        """Markers back to back within an interval, so that no lane is dead."""
        self.bench.flits(int(self.bench.rng.integers(1, self.bench.interval)))
        self.golden.flit()
        self.bench.marker(more=1)  # to the unit a word of a flit
        self.bench.marker(more=1)
        words = self.bench.words
        self.golden.marker(words[-2], between_flits=False)
        self.golden.marker(words[-1], between_flits=False)
        self.golden.found()
        self.heard = 0
        await self.bench.drained()
        assert self.bench.value("dead_lanes") == 0 and not self.bench.value("locked")
        self.golden.markers = self.golden.missed = 0
        self.counted = self._counters()


async def _begun(dut) -> _Told:
    bench = ReceiverBench(dut)
    await bench.begin()
    await bench.drained()
    return _Told(bench)


@cocotb.test(timeout_time=3000, timeout_unit="us")
async def believes_the_lowest_lane_it_may(dut) -> None:
    """Between flits the lowest that is not dead, back to back the lowest that does not repeat itself."""
    told = await _begun(dut)
    bench = told.bench
    for _ in range(40):
        await told.find()
        everywhere = set(range(bench.physical))
        for _ in range(int(bench.rng.integers(6))):
            shows = told.some()
            repeats = everywhere - told.some() if bench.rng.random() < 0.8 else everywhere
            await told.say(shows, more=1, repeats=repeats)
        await told.say(everywhere)
        for _ in range(int(bench.rng.integers(1, 7))):
            bench.flits(bench.interval)
            told.golden.flit()
            shows = told.some()
            kept = min(shows - told.golden.dead or shows)
            old = {p for p in shows - {kept} if bench.rng.random() < 0.1}
            await told.say(shows, old=old)
        bench.same()
    COVER.rule_out(bench.physical == 1, "a dead lane shows one")
    COVER.rule_out(bench.physical == 1, "the lowest lane repeats itself")
    COVER.rule_out(bench.physical == 1, "a lane shows another version")


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def takes_a_map_that_is_shown_whole(dut) -> None:
    """Between flits a map counts if every lane of it shows its marker."""
    told = await _begun(dut)
    bench, rng = told.bench, told.bench.rng
    everywhere = set(range(bench.physical))
    for n in range(40):
        await told.find()
        await told.say(everywhere)
        old = bench.writer.version, len(bench.writer.map)
        bench.flits(bench.interval)
        told.golden.flit()
        bench.writer.obey(sum(1 << p for p in told.some()) if n % 3 else bench.everywhere)
        one = int(rng.choice(bench.writer.map))
        shows = (everywhere, told.some(), everywhere - {one}, everywhere - {one})[n % 4]
        if shows:
            await told.say(shows)
        whole = bool(shows) and shows >= set(bench.writer.map)
        new = bench.writer.version, len(bench.writer.map)
        assert (bench.value("version"), bench.value("width")) == (new if whole else old)
        COVER.hit("a map is shown whole" if whole else "a lane of a map is not shown")


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def is_aligned_by_the_map_of_its_mask(dut) -> None:
    """First all lanes are good: a partner that obeys sends on the first of them. Then any but some that are silent."""
    told = await _begun(dut)
    bench, rng = told.bench, told.bench.rng
    wanted = lane_map(0, bench.cfg.lanes, bench.physical)
    dut.align.value = 1
    for n in range(30):
        few = (1 << (n // 2 % bench.physical + 1)) - 1
        mask = few if n % 2 else sum(1 << p for p in told.some())
        bench.writer.obey(mask)
        bench.marker(more=1, here=1, count=3 * ALIGN_MARKERS)
        await bench.drained()
        assert bench.value("aligned") == (bench.writer.map == wanted), f"{bench.writer.map} and {wanted}"
        COVER.hit("aligned" if bench.writer.map == wanted else "another map")
    for n in range(2 * bench.physical):
        # The lanes below one are silent, or any.
        silent = (1 << n // 2 % bench.physical) - 1 if n % 2 else bench.everywhere & ~sum(1 << p for p in told.some())
        good = bench.everywhere & ~silent
        wanted = lane_map(good, bench.cfg.lanes, bench.physical)
        bench.marker()
        await told.find()
        bench.writer.obey(good)
        bench.marker(more=1, here=1, hide=silent, count=5 * ALIGN_MARKERS)
        await bench.drained()
        assert bench.value("mask") == good and bench.value("aligned") == 1, f"{good:#x} is not aligned"
        other = good & sum(1 << p for p in told.some()) or 1 << int(rng.choice(wanted))
        bench.writer.obey(other)
        bench.marker(more=1, here=1, hide=silent, count=3 * ALIGN_MARKERS)
        await bench.drained()
        assert bench.value("aligned") == (bench.writer.map == wanted), f"{bench.writer.map} and {wanted}"
    dut.align.value = 0


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def corrections_stop_at_their_end(dut) -> None:
    """Of one lane, three a flit; the others go on."""
    bench = (await _begun(dut)).bench
    lanes, most = bench.cfg.lanes, (1 << 16) - 1
    first, last = lane_map(0, lanes, bench.physical)[0], lane_map(0, lanes, bench.physical)[-1]
    told = lambda lane: bench.value("corrections") >> 16 * lane & most  # noqa: E731
    begin = told(first)
    await fix(bench, 0, lanes, 2 * lanes)
    bench.dut.fix_valid.value = 1  # the same again
    times = (most - begin) // 3 - 1
    await ClockCycles(bench.clk, times - 1)
    bench.dut.fix_valid.value = 0
    await bench.cycles(2)
    assert told(first) == begin + 3 * times
    for _ in range(3):
        before = told(first), told(last)
        await fix(bench, lanes - 1)
        await bench.cycles(2)
        assert first == last or (told(first), told(last)) == (before[0], before[1] + 1)
        await fix(bench, 0, lanes)
        await bench.cycles(2)
        assert told(first) == min(before[0] + 2 + (first == last), most)
    assert told(first) == most


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def counters_stop_at_their_end(dut) -> None:
    """From 0 on: markers, those missing on all lanes but one in turn, changes of the map."""
    bench = ReceiverBench(dut)
    names, most = ("markers", "missed", "map_changes"), (1 << 16) - 1
    await bench.start()
    assert [bench.value(name) for name in names] == [0, 0, 0]
    cocotb.start_soon(bench.wires())
    bench.marker(more=1, count=2)
    await bench.drained()
    last = [bench.value(name) for name in names]
    for n in range(130):
        hide = 0 if n < 75 or bench.physical == 1 else bench.everywhere & ~(1 << n % bench.physical)
        count = int(bench.rng.integers(20, 120))
        bench.marker(more=1, hide=hide, count=count)
        await bench.drained()
        now = [bench.value(name) for name in names]
        told = last[0] + count, min(last[1] + count * hide.bit_count(), most), last[2] + count * (not hide)
        assert now == list(told), f"{names} are {now}, not {told}"
        last = now


@cocotb.test(timeout_time=3000, timeout_unit="us")
async def judges_lanes_as_the_golden_model(dut) -> None:
    """Random corrections on random lanes, of which some are worse; the map follows the mask. Some lanes die."""
    told = await _begun(dut)
    bench = told.bench
    rng, limit = bench.rng, bench.cfg.weak_corrections
    everywhere = set(range(bench.physical))
    named = 0
    before = bench.value("corrections")
    total = [before >> 16 * lane & 0xFFFF for lane in range(bench.physical)]
    golden = LaneHealth(bench.physical, limit)
    for n in range(200):
        if n % 15 == 0:
            await told.find()
            bench.dut.clear.value = 1
            await bench.edge
            bench.dut.clear.value = 0
            golden = LaneHealth(bench.physical, limit)
            bench.writer.obey(bench.everywhere)
            for _ in range(ALIGN_MARKERS):  # before that the mask is the old one
                await told.say(everywhere, more=1)
            await told.say(everywhere)
        used = list(bench.writer.map)
        share = rng.choice([0.0, 0.3, 0.5, 0.7])
        for hit in (
            just_apart(rng, len(used)) if n % 10 == 5 else random_hits(rng, used, told.golden.dead, n % 50 == 49)
        ):
            lost = bool(rng.random() < share)
            await fix(bench, *(int(k) + len(used) * int(rng.integers(4)) for k in hit), lost=lost)
            golden.flit([used[k] for k in hit], lost)
            for k in hit:
                total[used[k]] += 1
        bench.flits(bench.interval)
        told.golden.flit()
        COVER.when(told.golden.dead & set(used), "a lane is dead when lanes are judged")
        named += golden.marker(used, frozenset(told.golden.dead)) is not None
        if rng.random() < 0.3:
            await told.say(told.some())
        else:
            gone = (golden.weak, golden.weak, golden.weak | told.golden.dead, everywhere - told.some())[
                int(rng.integers(4))
            ]
            bench.writer.obey(bench.everywhere & ~sum(1 << lane for lane in gone))
            await told.say(everywhere)
        weak = bench.value("weak_lanes")
        assert weak == sum(1 << lane for lane in golden.weak), f"interval {n}: weak lanes {weak:#x}, golden {golden}"
        assert bench.value("corrections") == sum(n << 16 * lane for lane, n in enumerate(total))
        strong = everywhere - golden.weak - told.golden.dead or everywhere - told.golden.dead
        assert bench.value("mask") == sum(1 << lane for lane in strong)
    COVER.when(named > 0 or bench.physical == 1, "random corrections name a lane")
    COVER.when(named < 200, "random corrections name none")
    COVER.rule_out(bench.physical == 1, "a lane is dead when lanes are judged")
    COVER.rule_out(bench.physical == 1, "another map")


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
