"""Two ends with broken wires between them: lanes killed at any time, weak lanes, outages; nothing wrong gets through.

States of the ends and the FEC are stand-ins here: a flit with at most one wrong byte a FEC group counts as corrected,
any other as refused; 64 refused in a row, or `realign`, and an end aligns.
"""

import json
from collections import deque
from typing import Any

import cocotb
import numpy as np

from rtl.contract.link import FEC_GROUPS, FLIT_BYTES, REFUSED_IN_A_ROW
from verif.agents.bench import Bench, manifest
from verif.checks.coverage import Coverage
from verif.golden.lanes import lane_map

TARGET = 400  # flit times at full width, from the fault to the first good flit of the new map
ZEROS, ONES, NOISE, HOLDS = 1, 2, 3, 4
KINDS = {"zeros": ZEROS, "ones": ONES, "noise": NOISE, "holds": HOLDS}

COVER = Coverage(
    "lane pair",
    [
        *(f"a lane dies: {kind}" for kind in KINDS),
        "the spare takes over",
        "the width halves",
        "both directions at once",
        "a second lane dies while the first is being replaced",
        "one end aligns by 64 refused flits, the other by its markers",
        "weak lane",
        "an outage of all lanes",
        "an end that aligns alone",
    ],
)


class End:
    """One end: what it sends, what it makes of what it receives, its state."""

    def __init__(self, bench: "PairBench", e: int):
        self.bench, self.e = bench, e
        dut = bench.dut
        self.s = {
            n: getattr(dut, f"{n}_{e}")
            for n in ("align", "aligned", "realign", "o_valid", "o", "fix_valid", "fix", "mask", "width", "clear")
        }
        self.s |= {n: getattr(dut, f"i_{e}__{n}") for n in ("payload", "valid", "ready")}
        for n in ("valid", "fix_valid", "fix", "clear"):
            self.s[n].value = 0
        self.s["align"].value = 1
        self.align = 1
        self.beats: deque[int] = deque()
        self.sent: deque[np.ndarray] = deque()  # flits that the other end has not told yet
        self.fixing = False
        self.buffer = b""
        self.row = self.good = self.refused = self.corrected = self.lost = 0
        self.why: list[str] = []
        self.last_good = self.last_refused = 0

    def next_flit(self) -> None:
        """Another random flit to send."""
        flit = self.bench.rng.bytes(FLIT_BYTES)
        self.sent.append(np.frombuffer(flit, np.uint8))
        size = self.bench.cfg.beat_bytes
        count = FLIT_BYTES // size
        for k in range(count):
            data = int.from_bytes(flit[size * k : size * (k + 1)], "little")
            self.beats.append(int(k == 0) | int(k == count - 1) << 1 | data << 2)

    def step(self) -> None:
        """After an edge: see what happened in the cycle before it, drive the next."""
        s = self.s
        if s["ready"].value == 1 and s["valid"].value == 1:
            self.beats.popleft()
        if not self.beats:
            self.next_flit()
        s["payload"].value = self.beats[0]
        s["valid"].value = 1
        if self.fixing:
            s["fix_valid"].value = 0
            self.fixing = False
        if s["o_valid"].value == 1:
            beat = int(s["o"].value)
            self.buffer = (b"" if beat & 1 else self.buffer) + (beat >> 2).to_bytes(self.bench.cfg.beat_bytes, "little")
            if beat >> 1 & 1:
                self.judge(np.frombuffer(self.buffer, np.uint8))
        if self.align and s["aligned"].value == 1:
            self.align = self.row = 0
            s["align"].value = 0
        elif not self.align and (self.row >= REFUSED_IN_A_ROW or s["realign"].value == 1):
            self.why.append("refused" if self.row >= REFUSED_IN_A_ROW else "realign")
            self.align = 1
            s["align"].value = 1

    def judge(self, flit: np.ndarray) -> None:
        """Which of the partner's flits is it; may the FEC repair it? A flit must not come twice or before another."""
        wrong = np.arange(FLIT_BYTES)
        partner = self.bench.ends[1 - self.e]
        for ahead, sent in enumerate(partner.sent):
            differs = np.flatnonzero(sent != flit)
            if len(differs) <= FEC_GROUPS:
                self.lost += ahead
                for _ in range(ahead + 1):
                    partner.sent.popleft()
                wrong = differs
                break
        if len(set((wrong % FEC_GROUPS).tolist())) < len(wrong):
            self.row += 1
            self.refused += 1
            self.last_refused = self.bench.now
            return
        self.row = 0
        self.good += 1
        self.last_good = self.bench.now
        if len(wrong):
            self.corrected += 1
            self.s["fix"].value = sum((1 | int(b) << 1) << 9 * int(b % FEC_GROUPS) for b in wrong)
            self.s["fix_valid"].value = 1
            self.fixing = True


class PairBench(Bench):
    """Both ends and their wires."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.physical = self.cfg.lanes + self.cfg.spare_lanes
        self.everywhere = (1 << self.physical) - 1
        self.now = 0
        self.ends: list[End] = []
        self.ends = [End(self, e) for e in (0, 1)]
        self.broken = [[0] * self.physical for _ in (0, 1)]
        self.flip_lane = [-1, -1]
        self.flip_next = [0, 0]  # cycle of the next wrong bit: one a flit at most, as two may meet in a FEC group
        for e in (0, 1):
            getattr(dut, f"broken_{e}").value = 0
            getattr(dut, f"flip_{e}").value = 0

    def wires(self, e: int, lane: int, kind: int) -> None:
        """Break a lane that leaves end e, or repair it (0)."""
        self.broken[e][lane] = kind
        getattr(self.dut, f"broken_{e}").value = sum(k << 3 * p for p, k in enumerate(self.broken[e]))

    def healthy(self, e: int) -> int:
        """Mask of whole lanes that leave end e."""
        return sum(1 << p for p, k in enumerate(self.broken[e]) if not k)

    async def run(self, cycles: int) -> None:
        """Let cycles pass."""
        for _ in range(cycles):
            await self.edge
            self.now += 1
            for e, end in enumerate(self.ends):
                end.step()
                lane = self.flip_lane[e]
                if lane >= 0:
                    hit = self.now >= self.flip_next[e]
                    bit = int(self.rng.integers(64))
                    if hit:
                        flit = self.cfg.flit_cycles * self.cfg.lanes // self.narrowest()
                        self.flip_next[e] = self.now + int(self.rng.integers(flit + 1, 4 * flit))
                    getattr(self.dut, f"flip_{e}").value = int(hit) << 64 * lane + bit

    async def flow(self, flits: int = 20, limit: int = 1500) -> None:
        """Until both ends have received so many more good flits and none was refused for as long."""
        since = [end.good for end in self.ends]
        bad = [end.refused for end in self.ends]
        for _ in range(limit * self.cfg.flit_cycles):
            await self.run(1)
            for e, end in enumerate(self.ends):
                if end.refused != bad[e] or end.align:
                    bad[e], since[e] = end.refused, end.good
            if all(end.good - since[e] >= flits for e, end in enumerate(self.ends)):
                return
        state = [(end.align, end.good, end.refused, end.why[-3:]) for end in self.ends]
        raise AssertionError(f"no flow within {limit} flit times: (align, good, refused, why) {state}")

    async def kill(self, *which: tuple[int, int], kind: int, then: tuple[int, int] | None = None) -> list[int]:
        """Break lanes (end, lane) now and wait for good flits of the new maps; `then` breaks a little later.

        Returns the recovery time by end that receives, in flit times at full width, 0 if it did not suffer.
        """
        start = self.now
        refused = [end.refused for end in self.ends]
        aligns = [len(end.why) for end in self.ends]
        for e, lane in which:
            self.wires(e, lane, kind)
        if then is not None:
            await self.run(int(self.rng.integers(1, (REFUSED_IN_A_ROW + 20) * self.cfg.flit_cycles)))
            start = self.now
            self.wires(*then, kind)
        first = [0, 0]
        back = [end.good for end in self.ends]
        bad = [end.refused for end in self.ends]
        quiet = 0
        while quiet < (2 * REFUSED_IN_A_ROW + 40) * self.cfg.flit_cycles * self.cfg.lanes // self.narrowest():
            await self.run(1)
            assert self.now - start < 4000 * self.cfg.flit_cycles, "the link does not come back"
            quiet += 1
            for e, end in enumerate(self.ends):
                if end.refused != bad[e] or end.align:
                    quiet, first[e], bad[e], back[e] = 0, 0, end.refused, end.good
                elif not first[e] and end.good > back[e]:
                    first[e] = self.now
        times = []
        for e, end in enumerate(self.ends):
            suffered = end.refused != refused[e] or len(end.why) > aligns[e]
            times.append(-(-(first[e] - start) // self.cfg.flit_cycles) if suffered and first[e] else 0)
        await self.settled()
        return times

    def narrowest(self) -> int:
        """Lanes in use of the narrower direction, by the wires."""
        return min(len(lane_map(self.healthy(e) or 1, self.cfg.lanes, self.physical)) for e in (0, 1))

    async def settled(self) -> None:
        """Maps are those of the whole lanes, nothing is refused, and flits come as fast as the width allows."""
        await self.flow(2)
        before = [(end.good, end.refused) for end in self.ends]
        flits = 60
        cycles = flits * self.cfg.flit_cycles * self.cfg.lanes // self.narrowest()
        await self.run(cycles)
        for e, end in enumerate(self.ends):
            carried = lane_map(self.healthy(1 - e), self.cfg.lanes, self.physical)
            width = int(end.s["width"].value)
            assert width == len(carried), f"{width} lanes in use at end {e}, {len(carried)} can be"
            mask = int(end.s["mask"].value)
            used = lane_map(mask, self.cfg.lanes, self.physical)
            assert used == carried, f"map of mask {mask:#x}, and whole lanes are {self.healthy(1 - e):#x}"
            good, refused = end.good - before[e][0], end.refused - before[e][1]
            assert refused == 0, f"{refused} flits refused"
            expected = cycles * width // (self.cfg.flit_cycles * self.cfg.lanes)
            markers = expected // self.options["interval"] + 2
            late = -(-markers * width // (self.cfg.flit_cycles * self.cfg.lanes)) + 1
            assert good >= expected - late, f"{good} flits in {cycles} cycles at end {e}, {expected} fit"

    def note(self, what: str, times: list[int], e: int | None = None) -> None:
        """Keep a measurement in the run's folder, and hold it against the target.

        e: the end whose lane died; None: two died, and the second may have to be noticed anew.
        """
        hurt = max(times) if e is None else times[1 - e]
        with (self.manifest.folder / "recovery.jsonl").open("a") as file:
            print(json.dumps({"what": what, "flit_times": hurt, "both_directions": max(times)}), file=file)
        limit = (TARGET if e is not None else TARGET + REFUSED_IN_A_ROW) * self.cfg.lanes // self.narrowest()
        assert hurt <= limit, f"{what}: {times} flit times"


async def begin(dut: Any) -> PairBench:
    """Reset, align, some flits."""
    bench = PairBench(dut)
    await bench.start()
    await bench.flow()
    assert all(end.refused == 0 for end in bench.ends), "a flit was refused on whole wires"
    await bench.settled()
    return bench


def used_lane(bench: PairBench, e: int) -> int:
    """A lane that leaves end e and carries data, at random."""
    return int(bench.rng.choice(lane_map(bench.healthy(e), bench.cfg.lanes, bench.physical)))


@cocotb.test(timeout_time=4000, timeout_unit="us")
@cocotb.parametrize(kind=list(KINDS))
async def lanes_die(dut: Any, kind: str) -> None:
    """One after the other at random times, until only one lane is left or three have died; then both directions."""
    bench = await begin(dut)
    e = int(bench.rng.integers(2))
    for _ in range(min(3, bench.physical - 1)):
        await bench.run(int(bench.rng.integers(3 * bench.cfg.flit_cycles)))
        aligns = [len(end.why) for end in bench.ends]
        width = len(lane_map(bench.healthy(e), bench.cfg.lanes, bench.physical))
        times = await bench.kill((e, used_lane(bench, e)), kind=KINDS[kind])
        after = len(lane_map(bench.healthy(e), bench.cfg.lanes, bench.physical))
        bench.note(f"{width} to {after} lanes", times, e)
        COVER.hit(f"a lane dies: {kind}")
        COVER.when(after == width, "the spare takes over")
        COVER.when(after < width, "the width halves")
        why = [end.why[aligns[k] :] for k, end in enumerate(bench.ends)]
        if why[1 - e][:1] == ["refused"] and why[e] == ["realign"]:
            COVER.hit("one end aligns by 64 refused flits, the other by its markers")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def both_directions(dut: Any) -> None:
    """A lane of each direction in the same cycle: masks travel over the other, broken direction."""
    bench = await begin(dut)
    if bench.physical > 1:
        for _ in range(min(2, bench.physical - 1)):
            times = await bench.kill((0, used_lane(bench, 0)), (1, used_lane(bench, 1)), kind=NOISE)
            bench.note("a lane dies in each direction", times)
    COVER.hit("both directions at once")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def two_lanes(dut: Any) -> None:
    """A second lane, of either direction, a little after the first: in flits, while aligning, or right after."""
    for _ in range(3):
        bench = await begin(dut)
        if bench.physical > 2:
            e = int(bench.rng.integers(2))
            first = used_lane(bench, e)
            other = int(bench.rng.integers(2))
            left = [p for p in lane_map(0, bench.cfg.lanes, bench.physical) if other != e or p != first]
            lane = int(bench.rng.choice(left))
            times = await bench.kill((e, first), kind=NOISE, then=(other, lane))
            bench.note("a second lane dies soon after", times)
    COVER.hit("a second lane dies while the first is being replaced")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def weak_lanes(dut: Any) -> None:
    """Single wrong bytes on a lane: no flit is lost, and once its corrections pass the threshold it carries no more."""
    bench = await begin(dut)
    for e in (0, 1):
        receiver = bench.ends[1 - e]
        bench.flip_lane[e] = lane = used_lane(bench, e)
        refused = [end.refused for end in bench.ends]
        expected = lane_map(bench.everywhere & ~(1 << lane), bench.cfg.lanes, bench.physical)
        for _ in range(4000 * bench.cfg.flit_cycles):
            await bench.run(1)
            left = not int(receiver.s["mask"].value) >> lane & 1
            if (left and int(receiver.s["width"].value) == len(expected)) or receiver.corrected > 200:
                break
        if bench.physical > 1:
            assert not int(receiver.s["mask"].value) >> lane & 1, "a weak lane is still in the mask"
            narrow = min(int(end.s["width"].value) for end in bench.ends)
            interval = bench.options["interval"] * bench.cfg.flit_cycles * bench.cfg.lanes // min(narrow, len(expected))
            await bench.run(
                3 * interval + 3 * bench.options["delay"]
            )  # a marker there, a marker back, what is under way
            before = receiver.corrected
            await bench.run(interval)
            assert receiver.corrected == before, "flits still travel on the weak lane"
        assert [end.refused for end in bench.ends] == refused, "a flit was refused"
        assert receiver.corrected, "no flit was hit"
        bench.flip_lane[e] = -1
        getattr(dut, f"flip_{e}").value = 0
        bench.wires(e, lane, 0)
    assert all(end.lost == 0 and not end.why for end in bench.ends), "the link was aligned"
    COVER.hit("weak lane")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def outage(dut: Any) -> None:
    """All lanes dead, one way or both, for a while: the link comes back whole."""
    bench = await begin(dut)
    for ends in ((0,), (1,), (0, 1)):
        for e in ends:
            for lane in range(bench.physical):
                bench.wires(e, lane, NOISE)
        await bench.run(int(bench.rng.integers(10, 300)) * bench.cfg.flit_cycles)
        for e in ends:
            for lane in range(bench.physical):
                bench.wires(e, lane, 0)
        await bench.flow(150)
        await bench.settled()
    COVER.hit("an outage of all lanes")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def one_end_aligns(dut: Any) -> None:
    """An end goes to ALIGN by itself: its partner follows at once, without 64 refused flits."""
    bench = await begin(dut)
    for e in (0, 1):
        end, partner = bench.ends[e], bench.ends[1 - e]
        refused = [x.refused for x in bench.ends]
        partner.why.clear()
        end.align = 1
        end.s["align"].value = 1
        await bench.flow(2)
        await bench.settled()
        assert partner.why == ["realign"]
        assert [x.refused for x in bench.ends] == refused, "a flit was damaged by ALIGN"
        COVER.hit("an end that aligns alone")


@cocotb.test()
async def covered(dut: Any) -> None:
    link = manifest().config
    if link.lanes + link.spare_lanes == 1:
        for name in (*(f"a lane dies: {kind}" for kind in KINDS), "the spare takes over", "the width halves"):
            COVER.hit(name)
        COVER.hit("one end aligns by 64 refused flits, the other by its markers")
    COVER.when(link.spare_lanes == 0, "the spare takes over")
    COVER.when(link.lanes == 1, "the width halves")
    COVER.require_all()
