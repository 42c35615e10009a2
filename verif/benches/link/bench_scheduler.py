"""Scheduler: every choice is the golden one; shares follow weights; the strict class has its cap."""

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from verif.agents.bench import Bench, manifest
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.framing import Turns

_PLAIN = LinkConfig(weights=(3, 1, 3, 1, 3, 1, 3, 1))
_STRICT = LinkConfig(weights=(3, 1, 2, 8, 1, 1, 5, 1), strict_class=2, strict_cap=16)

RUNS = (Run("scheduler", config=_PLAIN, regress=True), Run("scheduler", config=_STRICT, faults=EVERY))

COVER = Coverage(
    "port.scheduler",
    ["request", "response", "both kinds wait", "raises", "strict class goes", "nobody", "4 flits", "all classes"],
)
FLITS_BITS = 3


class SchedulerBench(Bench):
    """The unit beside the golden one, a cycle at a time."""

    def __init__(self, dut):
        super().__init__(dut)
        self.link = self.cfg
        self.golden = Turns(self.link)
        self.served = np.zeros(self.link.queues, dtype=np.int64)
        for port in (dut.eligible, dut.flits, dut.accept):
            port.value = 0

    async def cycle(self, eligible: int, flits: list[int], willing: bool) -> int | None:
        """One cycle with these inputs; the queue served, if any."""
        self.dut.eligible.value = eligible
        self.dut.flits.value = sum(f << (FLITS_BITS * q) for q, f in enumerate(flits))
        wanted = self.golden.choose(eligible)
        taken = flits[wanted] if willing and wanted is not None else 0
        self.dut.accept.value = int(taken != 0)
        await RisingEdge(self.clk)
        got = int(self.dut.queue.value) if self.dut.valid.value == 1 else None
        assert got == wanted, f"chose {got}, golden {wanted} of {eligible:016b}"
        COVER.when(wanted is not None and taken and self.golden.rounds(wanted // 2), "raises")
        self.golden.step(eligible, taken)
        COVER.when(eligible == 0, "nobody")
        if wanted is not None and taken:
            self.served[wanted] += taken
            COVER.hit("response" if wanted % 2 else "request")
            COVER.when(eligible >> (wanted & ~1) & 3 == 3, "both kinds wait")
            COVER.when(wanted // 2 == self.link.strict_class, "strict class goes")
            COVER.when(taken == UNIT_FLITS_MAX, "4 flits")
            return wanted
        return None

    def sizes(self) -> list[int]:
        """Flits of the oldest unit of each queue, at random."""
        return self.rng.integers(1, UNIT_FLITS_MAX + 1, self.link.queues).tolist()


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(share=[0.1, 0.5, 0.9])
async def chooses_like_golden(dut, share: float) -> None:
    bench = SchedulerBench(dut)
    await bench.start()
    for _ in range(2000):
        bits = bench.rng.random(bench.link.queues) < share
        eligible = int(sum(1 << int(q) for q in np.flatnonzero(bits)))
        await bench.cycle(eligible, bench.sizes(), bool(bench.rng.random() < 0.6))
    COVER.when((bench.served.reshape(-1, 2).sum(1) > 0).all(), "all classes")


@cocotb.test(timeout_time=200, timeout_unit="us")
async def shares_follow_weights(dut) -> None:
    """10,000 flits, all classes saturated, units of random size: shares within 2 % of the weights."""
    bench = SchedulerBench(dut)
    await bench.start()
    link = bench.link
    flits = bench.sizes()
    everybody = (1 << link.queues) - 1
    while bench.served.sum() < 10_000:
        queue = await bench.cycle(everybody, flits, True)
        if queue is not None:
            flits[queue] = int(bench.rng.integers(1, UNIT_FLITS_MAX + 1))
    served = bench.served.reshape(-1, 2).sum(1)
    total = served.sum()
    weights = np.array(link.weights[: link.classes], dtype=float)
    left = 1.0
    if link.strict_class >= 0:
        share = link.strict_cap / Turns.WINDOW
        assert abs(served[link.strict_class] / total - share) <= 0.02 * share, f"strict class: {served} of {total}"
        weights[link.strict_class], left = 0, 1 - share
    wanted = left * weights / weights.sum()
    for class_ in np.flatnonzero(weights):
        error = abs(served[class_] / total / wanted[class_] - 1)
        assert error <= 0.02, f"class {class_} had {served[class_]} of {total} flits, {wanted[class_]:.3f} is its share"
    kinds = bench.served.reshape(-1, 2)
    assert (np.abs(kinds[:, 0] / kinds.sum(1) - 0.5) < 0.1).all(), f"kinds do not alternate: {kinds.tolist()}"
    COVER.hit("all classes")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def who_is_alone_waits_for_nobody(dut) -> None:
    """A class alone is served in the cycle in which it asks, whatever it sent before."""
    bench = SchedulerBench(dut)
    await bench.start()
    for class_ in range(bench.link.classes):
        for _ in range(40):
            served = await bench.cycle(1 << (2 * class_), [UNIT_FLITS_MAX] * bench.link.queues, True)
            assert served is not None, f"class {class_} was not served alone"


@cocotb.test(skip=manifest().config.strict_class < 0)
async def covered(dut) -> None:
    COVER.require_all()
