"""Bypass: every choice is the golden one; no output ever has two units, no unit goes twice, no beat goes astray."""

from collections import deque
from dataclasses import dataclass

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from verif.agents.bench import Bench, manifest
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.switch_output import Bypass, Crossbar


def _four(lanes: int) -> SwitchConfig:
    return SwitchConfig(ports=4, link=LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=lanes))


RUNS = (
    Run("switch_bypass", config=_four(8), faults=EVERY),
    Run("switch_bypass", config=_four(4), regress=True),
    Run("switch_bypass", config=_four(16), regress=True),
)

COVER = Coverage(
    "switch.bypass",
    [
        "one flit",
        "several flits",
        "in the first cycle of a slot",
        "in another cycle",
        "in the last cycle of a slot",
        "goes on in the next slot",
        "ended, but the scheduler must not look",
        "another holds a unit for the output",
        "output busy by itself",
        "output taken by the scheduler",
        "not ready",
        "two units wait",
        "two begin at once",
        "an input begins a second unit in a slot",
        "the scheduler sends a unit",
        "every pair",
    ],
)


@dataclass(eq=False, slots=True)
class _Unit:
    output: int
    queue: int
    flits: int


class BypassBench(Bench):
    """The unit between inputs with units, a scheduler that looks once a slot, and a golden crossbar.

    As in Switch, an input with a unit alone shows it at once, others what they held a cycle ago; what the scheduler
    matches was true at the end of the first cycle of the slot before.
    """

    def __init__(self, dut, load: float, scheduled: float, unready: float):
        super().__init__(dut)
        cfg = self.cfg
        self.n, self.queues = cfg.outputs, cfg.link.queues
        self.load, self.scheduled, self.unready = load, scheduled, unready
        self.golden = Bypass(cfg.bypass)
        self.crossbar = Crossbar(self.n)
        self.waiting: list[deque[_Unit]] = [deque() for _ in range(self.n)]
        self.reads: list[deque[tuple[_Unit, bool]]] = [deque() for _ in range(self.n)]  # beats to read, the last one
        self.shown: list[_Unit | None] = [None] * self.n  # whose beat each input shows in this cycle
        self.held: dict[int, _Unit] = {}  # units of the scheduler that go on, by input
        self.sends: dict[int, int] = {}  # the scheduler's match of this slot
        self.lists: list[set[tuple[int, int]]] = [set() for _ in range(self.n)]
        self.lone: set[int] = set()
        self.captured: list[set[tuple[int, int]]] = [set() for _ in range(self.n)]
        self.blocked: tuple[set[int], set[int]] = (set(), set())
        self.sent = self.by_itself = self.received = 0
        self.came: dict[_Unit, int] = {}
        self.pairs: set[tuple[int, int]] = set()
        self.slot_starts: set[int] = set()
        self.t = 0
        self.inputs = [getattr(dut, f"lists__{k}") for k in range(self.n)]
        for port in (dut.slot, dut.lone, dut.ready, dut.sends, dut.takes, dut.ends, *self.inputs):
            port.value = 0

    def new_units(self) -> None:
        """Units arrive: one of a few inputs, seldom to the same output."""
        for k in range(self.n):
            if self.rng.random() < self.load and len(self.waiting[k]) < 4:
                flits = 1 if self.rng.random() < 0.6 else int(self.rng.integers(2, UNIT_FLITS_MAX + 1))
                unit = _Unit(int(self.rng.integers(self.n)), int(self.rng.integers(self.queues)), flits)
                self.waiting[k].append(unit)

    def read(self, source: int, unit: _Unit, flits: int, left: int) -> None:
        """Beats of a unit from now on; `left`: flits of it that come in later slots."""
        beats = flits * self.cfg.link.beats
        self.reads[source].extend((unit, n == beats - 1 and not left) for n in range(beats))

    def match(self) -> set[int]:
        """The scheduler's match for this slot. Returns outputs that it uses."""
        self.slot_starts = set()
        self.sends = {}
        for k, unit in list(self.held.items()):
            unit.flits -= 1
            self.sends[k] = unit.output
            self.read(k, unit, 1, unit.flits)
            if not unit.flits:
                del self.held[k]
        blocked_inputs, blocked_outputs = self.blocked
        for k in self.rng.permutation(self.n).tolist():
            if k in self.sends or k in blocked_inputs or self.rng.random() >= self.scheduled:
                continue
            free = [u for u in self.captured[k] if u[0] not in {*self.sends.values(), *blocked_outputs}]
            if free:
                wanted = free[int(self.rng.integers(len(free)))]
                unit = next((u for u in self.waiting[k] if (u.output, u.queue) == wanted), None)
                assert unit, f"cycle {self.t}: the scheduler sends a unit of input {k} that has gone"
                self.waiting[k].remove(unit)
                self.begin(k, unit)
                unit.flits -= 1
                self.sends[k] = unit.output
                self.read(k, unit, 1, unit.flits)
                if unit.flits:
                    self.held[k] = unit
                COVER.hit("the scheduler sends a unit")
        return set(self.sends.values())

    def begin(self, source: int, unit: _Unit) -> None:
        """A unit begins to be read."""
        assert not self.reads[source], f"cycle {self.t}: input {source} begins a unit while it reads another"
        assert all(not (r and r[0][0].output == unit.output) for r in self.reads), f"output {unit.output} is busy"
        self.came[unit] = unit.flits * self.cfg.link.beats
        self.sent += 1

    async def cycle(self) -> None:
        """One cycle."""
        cfg, dut, n = self.cfg, self.dut, self.n
        phase = self.t % cfg.slot_cycles
        slot = phase == 0
        self.new_units()
        self.look()
        takes = self.match() if slot else set(self.sends.values())
        ready = {(o, q) for o in range(n) for q in range(self.queues) if self.rng.random() >= self.unready}
        ends = {k for k, r in enumerate(self.reads) if r and r[0][1]}
        dut.slot.value, dut.lone.value = int(slot), sum(1 << k for k in self.lone)
        for port, lists in zip(self.inputs, self.lists, strict=True):
            port.value = sum(1 << o * self.queues + q for o, q in lists)
        dut.ready.value = sum(1 << o * self.queues + q for o, q in ready)
        dut.sends.value, dut.takes.value = (sum(1 << k for k in x) for x in (set(self.sends), takes))
        dut.ends.value = sum(1 << k for k in ends)
        self.cover(slot, ready, takes)
        e = self.golden.cycle(slot, self.lone, self.lists, ready, set(self.sends), takes, ends)
        await RisingEdge(self.clk)

        source_bits, out_bits, queue_bits = ((x - 1).bit_length() for x in (cfg.inputs, n, self.queues))
        tunes = {o: k for k, (o, _) in e.starts.items()}
        expected = {
            "starts": set(e.starts),
            "tunes": set(tunes),
            "busy_inputs": e.busy_inputs,
            "busy_outputs": e.busy_outputs,
            "blocked_inputs": e.blocked_inputs,
            "blocked_outputs": e.blocked_outputs,
            "mutes": e.mutes,
        }
        for name, members in expected.items():
            got = int(getattr(dut, name).value)
            assert got == sum(1 << k for k in members), f"cycle {self.t}: {name} {got:b}, golden {sorted(members)}"
        for k, (output, queue) in e.starts.items():
            told = [
                int(getattr(dut, name).value) >> at * bits & ((1 << bits) - 1)
                for name, at, bits in (
                    ("source", output, source_bits),
                    ("out_port", k, out_bits),
                    ("queue", k, queue_bits),
                    ("tuned_queue", output, queue_bits),
                )
            ]
            assert told == [k, output, queue, queue], f"cycle {self.t}: {told}, not input {k} to {output} of {queue}"
            self.starts(k, output, queue, phase)
        COVER.when(len(e.starts) > 1, "two begin at once")
        if phase == cfg.slot_cycles - 1:
            self.blocked = (e.blocked_inputs, e.blocked_outputs)
            busy = set(self.golden.busy)
            COVER.when(busy, "goes on in the next slot")
            COVER.when(e.blocked_inputs - busy, "ended, but the scheduler must not look")
        self.beats_arrive(tunes, e, slot)
        self.t += 1

    def starts(self, source: int, output: int, queue: int, phase: int) -> None:
        """A unit begins by itself."""
        unit = next((u for u in self.waiting[source] if (u.output, u.queue) == (output, queue)), None)
        assert unit, f"cycle {self.t}: input {source} has no unit of {queue} for {output}"
        self.waiting[source].remove(unit)
        self.begin(source, unit)
        self.read(source, unit, unit.flits, 0)
        self.by_itself += 1
        COVER.hit("one flit" if unit.flits == 1 else "several flits")
        COVER.hit("in the first cycle of a slot" if phase == 0 else "in another cycle")
        COVER.when(phase == self.cfg.slot_cycles - 1, "in the last cycle of a slot")
        COVER.when(source in self.slot_starts, "an input begins a second unit in a slot")
        self.slot_starts.add(source)
        self.pairs.add((source, output))
        COVER.when(len(self.pairs) == self.n * self.n, "every pair")

    def beats_arrive(self, tunes: dict[int, int], e, slot: bool) -> None:
        """Beats read a cycle ago reach their outputs and no other; the next ones are read."""
        for output, source in enumerate(self.crossbar.listens):
            unit = self.shown[source] if source is not None else None
            if unit:
                assert unit.output == output, f"cycle {self.t}: output {output} hears a beat for {unit.output}"
                self.came[unit] -= 1
                if not self.came[unit]:
                    self.received += 1
                    del self.came[unit]
        mutes = (set(range(self.n)) - e.busy_outputs if slot else set()) | e.mutes
        if slot:
            tunes = tunes | {o: k for k, o in self.sends.items()}
        self.crossbar.step(tunes, mutes)
        for k, reads in enumerate(self.reads):
            self.shown[k] = reads.popleft()[0] if reads else None
        self.lists = [{(u.output, u.queue) for u in waiting} for waiting in self.waiting]
        if slot:
            self.captured = self.lists

    def look(self) -> None:
        """What the inputs show in this cycle, before the scheduler's units begin."""
        self.lone = {k for k, w in enumerate(self.waiting) if len(w) == 1 and not self.reads[k] and k not in self.held}
        self.lists = [
            {(w[0].output, w[0].queue)} if k in self.lone else self.lists[k] for k, w in enumerate(self.waiting)
        ]

    def cover(self, slot: bool, ready: set[tuple[int, int]], takes: set[int]) -> None:
        """Why a unit does not begin."""
        COVER.when(any(len(w) > 1 for w in self.waiting), "two units wait")
        for k in self.lone - set(self.sends) - set(self.golden.busy):
            for output, queue in self.lists[k]:
                others = any(o == output for j, w in enumerate(self.lists) if j != k for o, _ in w)
                by_itself = output in self.golden.busy.values()
                COVER.when(others, "another holds a unit for the output")
                COVER.when(by_itself, "output busy by itself")
                COVER.when(output in takes, "output taken by the scheduler")
                free = not others and not by_itself and output not in takes
                COVER.when((output, queue) not in ready and free, "not ready")


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(load=[0.004, 0.02, 0.1], scheduled=[0.3, 1.0])
async def chooses_like_golden(dut, load: float, scheduled: float) -> None:
    bench = BypassBench(dut, load, scheduled, 0.1)
    await bench.start()
    for _ in range(2500):
        await bench.cycle()
    bench.load, bench.scheduled, bench.unready = 0, 1, 0
    for _ in range(60 * bench.cfg.slot_cycles):
        await bench.cycle()
    assert bench.received == bench.sent and not bench.came, f"{len(bench.came)} units did not come whole"
    assert not any(bench.waiting), "units wait for ever"
    assert bench.by_itself > 20 or load > 0.05


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_unit_alone_begins_in_the_cycle_in_which_it_is_shown(dut) -> None:
    bench = BypassBench(dut, 0, 0, 0)
    await bench.start()
    for k in range(bench.n):
        for output in range(bench.n):
            for _ in range(int(bench.rng.integers(2 * bench.cfg.slot_cycles))):
                await bench.cycle()
            before = bench.by_itself
            bench.waiting[k].append(_Unit(output, int(bench.rng.integers(bench.queues)), 1))
            await bench.cycle()
            assert bench.by_itself == before + 1, "a unit alone did not begin at once"
            for _ in range(3 * bench.cfg.slot_cycles):
                await bench.cycle()


@cocotb.test()
async def covered(dut) -> None:
    link = manifest().config.link
    # a unit that began late goes on into the next slot, whatever it is
    late = ("ended, but the scheduler must not look", "an input begins a second unit in a slot")
    COVER.rule_out(link.beat_cycles == 1, *late)
    COVER.require_all()
