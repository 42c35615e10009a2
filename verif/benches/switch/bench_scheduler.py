"""Scheduler of a switch: every slot is the golden one, under requests of every kind; what is granted makes sense."""

from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LINKS, LinkConfig
from rtl.contract.switch_config import SwitchConfig
from verif.agents.bench import Bench, manifest
from verif.bench import Run, noticed_by
from verif.checks.coverage import Coverage
from verif.golden.switch_schedule import Schedule

_WEIGHTS = (3, 1, 2, 8, 1, 1, 5, 1)
_STRICT_LINK = LinkConfig(weights=_WEIGHTS, strict_class=2, strict_cap=16)
_MERGED = SwitchConfig(ports=4, link=_STRICT_LINK, keep_slots=4)
_WAVEFRONT = SwitchConfig(ports=5, matching="wavefront", link=LINKS["x16"])
_ISLIP = SwitchConfig(ports=6, matching="islip", link=LinkConfig(weights=_WEIGHTS, classes=4))
_SIXTEEN = SwitchConfig(ports=16, link=LinkConfig(weights=_WEIGHTS))

_PLANTED = (
    "all weights of an output's classes are 1",
    "deficits of an output are raised without a bound",
    "requests to an output go before responses, always",
    "flits of a unit after the first are not charged",
    "the lighter matching stands",
    "the order of the inputs is not undone",
    "a matching has no second pass",
    "a unit holds its input and output for ever",
    "nothing is kept free for who waits",
    *noticed_by(
        "matches_like_golden/traffic=1",
        "a ring is taken for its single inputs",
        "a starved pair never becomes urgent",
        "what is blocked is scheduled",
        "what was served is not paid",
        "busy inputs are owed as well",
        "the strict class of an output has no cap",
        "a match is kept for ever",
    ),
    *noticed_by(
        "matches_like_golden/traffic=3",
        "who waits no longer stays behind",
    ),
    *noticed_by(
        "matches_like_golden/traffic=5",
        "nobody is ever behind in a schedule",
    ),
)

RUNS = (
    Run("switch_scheduler", config=_MERGED, faults=_PLANTED),
    Run("switch_scheduler", config=_WAVEFRONT, regress=True),
    Run("switch_scheduler", config=_ISLIP, faults=("pointers of iSLIP never move",)),
    Run("switch_scheduler", config=_SIXTEEN, regress=True),
)

BINS = [
    "hold",
    "barred",
    "urgent begins",
    "urgent waits",
    "second pass",
    "blocked",
    "all idle",
    "all sent",
    "more without a start",
]
MERGED = ["kept", "new match stands", "kept long enough", "filled up"]
STRICT = ["strict begins", "strict waits", "urgent before strict"]
COVER = Coverage(
    "switch.scheduler",
    [
        *BINS,
        *(MERGED if manifest().config.matching == "merged" else []),
        *(STRICT if manifest().config.link.strict_class >= 0 else []),
    ],
)


@dataclass(frozen=True)
class Traffic:
    """How often: a list holds a unit, it changes in a slot, an output is not ready, a row or column is blocked."""

    name: str
    share: float
    change: float
    unready: float = 0.0
    blocked: float = 0.0
    flits: int = UNIT_FLITS_MAX
    least: int = 1  # flits of a unit
    classes: int = 8  # in use
    outputs: int = 99  # in use
    hog: bool = False  # one input alone, with strict units to all outputs but one, another class to that
    starves: bool = False  # outputs open for urgent pairs only; all inputs but one hold strict units


_STARVING = 640
"""Slots in which an output sends two windows of its cap and more, nearly all of it urgent: some 100 flits of 127 that
the hardware can count beyond a cap. The golden model counts any number."""
TRAFFIC = [
    Traffic("sparse", 0.01, 0.5),
    Traffic("half", 0.3, 0.3, unready=0.3, blocked=0.05),
    Traffic("full", 1.0, 0.0),
    Traffic("steady", 0.5, 0.002),
    Traffic("single", 0.7, 0.05, flits=1, classes=1),
    Traffic("contended", 0.9, 0.01, outputs=2, blocked=0.02),
    Traffic("ready changes", 0.8, 0.1, unready=0.5),
    Traffic("strict hogs", 1.0, 0.0, flits=1, hog=True),
    Traffic("urgent strict", 1.0, 0.0, least=UNIT_FLITS_MAX, starves=True),
]


class SchedulerBench(Bench):
    """The unit beside the golden one, a slot at a time."""

    def __init__(self, dut):
        super().__init__(dut)
        self.count = self.cfg.inputs
        self.queues = self.cfg.link.queues
        self.golden = Schedule(self.cfg)
        self.left = [0] * self.count  # flits of the unit under way
        self.lists = [getattr(dut, f"lists__{i}") for i in range(self.count)]
        self.lengths = [getattr(dut, f"lengths__{i}") for i in range(self.count)]
        others = (dut.slot, dut.more, dut.ready, dut.blocked_inputs, dut.blocked_outputs)
        for port in (*self.lists, *self.lengths, *others):
            port.value = 0

    def packed(self, values, bits: int) -> int:
        """A vector of numbers of so many bits."""
        return sum(int(v) << (bits * k) for k, v in enumerate(values))

    def bits(self, share: float, count: int) -> int:
        """Random bits."""
        return int(sum(1 << int(k) for k in np.flatnonzero(self.rng.random(count) < share)))

    def told(self) -> dict[str, int]:
        """What the outputs should be, from the golden grants; fields of idle inputs and outputs are left out."""
        grants = self.golden.grants
        by_output = {g.output: (i, g) for i, g in grants.items()}
        return {
            "start": sum(1 << i for i in grants),
            "first": sum(1 << i for i, g in grants.items() if g.first),
            "valid": sum(1 << o for o in by_output),
            "granted": sum(1 << o for o, (_, g) in by_output.items() if g.first),
        }

    def check(self, slot: int) -> None:
        """Compare the outputs, and see that they agree with each other."""
        d, n = self.dut, self.count
        for name, value in self.told().items():
            got = int(getattr(d, name).value)
            assert got == value, f"slot {slot}: {name} is {got:0{n}b}, golden {value:0{n}b}"
        number, queue = (n - 1).bit_length(), (self.queues - 1).bit_length()
        out_port, select = int(d.out_port.value), int(d.select.value)
        queues, granted_queue = int(d.queue.value), int(d.granted_queue.value)
        for i, g in self.golden.grants.items():
            o = out_port >> number * i & (1 << number) - 1
            q = queues >> queue * i & (1 << queue) - 1
            assert (o, q) == (g.output, g.queue), f"slot {slot}: input {i} sends to {o} from {q}, golden {g}"
            assert select >> number * o & (1 << number) - 1 == i, f"slot {slot}: output {o} does not select {i}"
            if g.first:
                assert granted_queue >> queue * o & (1 << queue) - 1 == q, f"slot {slot}: output {o} not told {q}"

    async def slot(self, slot: int, lists: list[int], lengths: list[list[int]], traffic: Traffic) -> None:
        """One slot: what is held now, what is sent in the next one."""
        d, n, rng = self.dut, self.count, self.rng
        for i, g in self.golden.grants.items():
            self.left[i] = int(rng.integers(traffic.least, traffic.flits + 1)) if g.first else self.left[i]
            self.left[i] -= 1
        more = sum(1 << i for i in range(n) if self.left[i] > 0)
        stray = self.bits(0.02 if traffic.blocked else 0, n)
        for i in range(n):
            if stray >> i & 1 and i not in self.golden.grants:
                more |= 1 << i
                COVER.hit("more without a start")
        ready = self.bits(1 - traffic.unready, n * self.queues)
        blocked = [self.bits(traffic.blocked, n) for _ in range(2)]
        if traffic.starves and slot < _STARVING and not self.golden.patience.urgent:
            blocked[1] = (1 << n) - 1
        going = {i: g for i, g in self.golden.grants.items() if more >> i & 1}
        blocked[0] &= ~sum(1 << i for i in going)
        blocked[1] &= ~sum(1 << g.output for g in going.values())
        d.slot.value = 1
        bits = self.cfg.length_cap_flits.bit_length()
        for i in range(n):
            self.lists[i].value = lists[i]
            self.lengths[i].value = self.packed(lengths[i], bits)
        d.more.value = more
        d.ready.value = ready
        for cycle in range(self.cfg.slot_cycles):
            if cycle == self.cfg.slot_cycles - 1:
                d.blocked_inputs.value, d.blocked_outputs.value = blocked
            await RisingEdge(self.clk)
            if cycle == 0:
                self.check(slot)
                self.golden.step(lists, lengths, more, ready, *blocked)
                d.slot.value = 0
                d.more.value, d.ready.value = (1 << n) - 1, 0  # captured by now
                for port in self.lists:
                    port.value = 0
        d.blocked_inputs.value, d.blocked_outputs.value = (1 << n) - 1, (1 << n) - 1
        for name in self.golden.seen & set(COVER.hits):
            COVER.hit(name)
        COVER.when(any(blocked), "blocked")
        COVER.when(not self.golden.grants, "all idle")
        COVER.when(len(self.golden.grants) == n, "all sent")


def _used(bench: SchedulerBench, slot: int, traffic: Traffic) -> NDArray[np.bool_]:
    """Lists that may hold units, by input, output and queue: for a while, so that each output is in use and each input
    the hog at some time."""
    n, queues, rng = bench.count, bench.queues, bench.rng
    strict, turn = max(bench.cfg.link.strict_class, 1), slot // 300
    used = np.zeros((n, n, queues), dtype=bool)
    if traffic.hog:
        used[turn % n, :, 2 * strict] = True
        used[turn % n, int(rng.integers(n))] = np.arange(queues) == 0
        return used
    if traffic.starves and slot < _STARVING:
        used[:, :, 2 * strict] = True
        used[int(rng.integers(n))] = np.arange(queues) == 0
        return used
    used[:, (turn + np.arange(min(n, traffic.outputs))) % n, : 2 * traffic.classes] = True
    return used


@cocotb.test(timeout_time=2000, timeout_unit="us")
@cocotb.parametrize(traffic=TRAFFIC)
async def matches_like_golden(dut, traffic: Traffic) -> None:
    bench = SchedulerBench(dut)
    await bench.start()
    await bench.cycles(TRAFFIC.index(traffic))  # before the first slot
    n, queues, rng = bench.count, bench.queues, bench.rng
    here = rng.random((n, n, queues)) < traffic.share
    lengths = rng.integers(0, bench.cfg.length_cap_flits + 1, (n, n))
    for slot in range(5000 // bench.cfg.slot_cycles // (1 + n // 10)):
        if slot % 300 == 0 or slot == _STARVING:
            used = _used(bench, slot, traffic)
        change = rng.random((n, n, queues)) < traffic.change
        here = np.where(change, rng.random((n, n, queues)) < traffic.share, here)
        shift = rng.random((n, n)) < 0.1
        lengths = np.where(shift, rng.integers(0, bench.cfg.length_cap_flits + 1, (n, n)), lengths)
        if slot % 300 == 299 and not traffic.starves:  # everybody gone, everybody back
            here = ~here.any() | np.zeros_like(here)
        now = (here & used).reshape(n, -1)
        lists = [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in now]
        await bench.slot(slot, lists, lengths.tolist(), traffic)


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
