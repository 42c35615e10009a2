"""Two ends of lanes with broken wires between them; what their bench drives."""

import json
from collections import deque
from typing import Any

import numpy as np

from rtl.contract.link import FEC_GROUPS, FLIT_BYTES, REFUSED_IN_A_ROW
from verif.agents.bench import Bench
from verif.checks.coverage import Coverage
from verif.golden.lanes import lane_map

__all__ = ["COVER", "KINDS", "NOISE", "begin", "used_lane"]


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
        names = "align aligned realign o_valid o fix_valid fix_lost fix mask width clear"
        self.s = {n: getattr(dut, f"end__{e}__{n}") for n in names.split()}
        self.s |= {n: getattr(dut, f"end__{e}__i__{n}") for n in ("payload", "valid", "ready")}
        for n in ("valid", "fix_valid", "fix_lost", "fix", "clear"):
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
        self.sent_marker = [-1000, -1000]  # cycle of the last one
        self.flip_next = [0, 0]  # cycle of the next wrong bit: one a flit at most, as two may meet in a FEC group
        for e in (0, 1):
            getattr(dut, f"end__{e}__broken").value = 0
            getattr(dut, f"end__{e}__flip").value = 0

    def wires(self, e: int, lane: int, kind: int) -> None:
        """Break a lane that leaves end e, or repair it (0)."""
        self.broken[e][lane] = kind
        getattr(self.dut, f"end__{e}__broken").value = sum(k << 3 * p for p, k in enumerate(self.broken[e]))

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
                if int(getattr(self.dut, f"end__{e}__sent_marker").value):
                    self.sent_marker[e] = self.now
                if lane >= 0:
                    # A wrong marker counts as missing, and two of four make the lane dead, not weak.
                    marker = abs(self.now - self.sent_marker[e] - self.options["delay"]) <= self.cfg.flit_cycles
                    hit = self.now >= self.flip_next[e] and not marker
                    bit = int(self.rng.integers(64))
                    if hit:
                        flit = self.cfg.flit_cycles * self.cfg.lanes // self.narrowest()
                        self.flip_next[e] = self.now + int(self.rng.integers(flit + 1, 4 * flit))
                    getattr(self.dut, f"end__{e}__flip").value = int(hit) << 64 * lane + bit

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
        calm = (2 * REFUSED_IN_A_ROW + 40) * self.cfg.flit_cycles * self.cfg.lanes // self.narrowest()
        while quiet < calm:
            await self.run(1)
            assert self.now - start < 5 * calm, "the link does not come back"
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
