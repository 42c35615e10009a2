"""An Ingress beside its golden model, compared in every cycle; what drives it as links and a scheduler would."""

from collections import deque
from dataclasses import dataclass

from cocotb.triggers import RisingEdge

from rtl.contract.link import FLIT_HEADER, FLIT_HEADER_BYTES, UNIT_FLITS_MAX
from verif.agents.bench import Bench
from verif.benches.switch.units import FILLS, MALFORMED, malformed, random_unit
from verif.checks.coverage import Coverage
from verif.golden.switch_buffer import Arrival, Choice, SwitchBuffer, Told

__all__ = ["COVER", "IngressBench", "Pace"]

COVER = Coverage(
    "switch.ingress",
    [
        *FILLS,
        *MALFORMED,
        *(f"unit of {n} flits" for n in range(1, UNIT_FLITS_MAX + 1)),
        *(f"begun at once in phase {n}" for n in range(2)),
        "every output",
        "every queue",
        "responder",
        "refused, dropped",
        "refused response",
        "overrun",
        "pool full",
        "units interleave",
        "last of a list leaves while the next comes",
        "lengths stop at the cap",
        "unit of several flits begun at once",
        "held over slots",
        "an empty list is chosen",
        "clear with open units",
        "clear while a flit arrives",
        "head on a unit that clear closed",
        "flit without head on a unit that clear closed",
        "bit turned",
        "dropped flits wait for those sent",
        "lone",
    ],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often things happen: probabilities."""

    arrive: float = 0.8  # that the next flit begins, a cycle
    serve: float = 0.8  # that a slot begins a unit, if one waits
    now: float = 0.3  # that a lone unit is begun at once, a cycle
    empty: float = 0.02  # that a slot asks for a unit of a list that is empty
    pause: float = 0.0  # that a unit under way misses a slot
    refuse: float = 0.2  # of the units
    malform: float = 0.1
    clear: float = 0.0  # a cycle
    flip: float = 0.01  # a beat
    together: int = 4  # units whose flits interleave
    outputs: int = 0  # that units go to, the first ones; 0: all
    flits: int = 0  # of a unit; 0: any number


class IngressBench(Bench):
    """`run` drives; every output is compared in every cycle."""

    def __init__(self, dut):
        super().__init__(dut)
        self.link = self.cfg.link
        self.golden = SwitchBuffer(self.cfg)
        self.flits: deque[tuple[bytes, int, bool]] = deque()  # flit, output, refused
        self.beats: deque[Arrival] = deque()
        self.phase = 0
        self.accepted = self.freed = 0
        self.delivered: list[int] = []  # bytes of the flits that left, as beats
        self.outputs: set[int] = set()
        self.queues: set[int] = set()
        for port in ("valid", "beat", "flip", "clear", "route", "refused"):
            getattr(dut, port).value = 0
        for port in ("slot", "start", "first", "out_port", "queue", "now"):
            getattr(dut, port).value = 0

    def fields(self, queue: int, endpoint: int) -> dict[str, int]:
        """Of a unit's flits."""
        return {"endpoint": endpoint, "class_": queue // 2, "kind": queue % 2}

    def send(self, flits: list[bytes], output: int, refused: bool = False) -> None:
        """Queue flits of one unit."""
        self.flits.extend((f, output, refused) for f in flits)

    def some_units(self, pace: Pace) -> None:
        """Queue units whose flits interleave where their queues differ."""
        rng = self.rng
        by_queue: dict[int, deque[tuple[bytes, int, bool]]] = {}
        for _ in range(pace.together):
            queue = int(rng.integers(self.link.queues))
            output = int(rng.integers(pace.outputs or self.cfg.ports))
            refused = bool(rng.random() < pace.refuse)
            fill = FILLS[int(rng.integers(len(FILLS)))] if refused else "no read"
            unit = random_unit(rng, self.fields(queue, int(rng.integers(1 << 12))), fill, pace.flits)
            COVER.hit(fill, int(refused and not queue % 2))
            if rng.random() < pace.malform:
                how = MALFORMED[int(rng.integers(len(MALFORMED)))]
                unit = malformed(rng, unit, how)
                COVER.hit(how)
            by_queue.setdefault(queue, deque()).extend((f, output, refused) for f in unit)
        COVER.when(len(by_queue) > 1, "units interleave")
        while by_queue:
            queue = int(rng.choice(list(by_queue)))
            self.flits.append(by_queue[queue].popleft())
            if not by_queue[queue]:
                del by_queue[queue]

    def next_beat(self, pace: Pace) -> Arrival | None:
        """What arrives in this cycle."""
        size = self.link.beat_bytes
        if not self.beats and self.flits and self.rng.random() < pace.arrive:
            flit, output, refused = self.flits.popleft()
            header = FLIT_HEADER.unpack(int.from_bytes(flit[:FLIT_HEADER_BYTES], "little"))
            if not header["head"]:  # the head's route holds: these must not be looked at
                output, refused = int(self.rng.integers(self.cfg.ports)), bool(self.rng.integers(2))
            for n in range(self.link.beats):
                text = flit[n * size : (n + 1) * size]
                parity = int.from_bytes(self.rng.bytes(size // 8), "little")
                flip = bool(self.rng.random() < pace.flip)
                beat = Arrival(
                    n == 0, n == self.link.beats - 1, int.from_bytes(text, "little"), parity, output, refused, flip
                )
                self.beats.append(beat)
        return self.beats.popleft() if self.beats else None

    def choose(self, pace: Pace) -> Choice:
        """What a scheduler could choose, of what waited before this cycle."""
        rng, golden = self.rng, self.golden
        waiting = sorted(n for n, units in golden.lists.items() if units)
        slot = self.phase == 0
        idle = not golden.remaining and not golden.leaving
        if slot and golden.remaining and not golden.fast:
            COVER.hit("held over slots")
            return Choice(slot, bool(rng.random() >= pace.pause))
        if slot and idle and waiting and rng.random() < pace.serve:
            return Choice(slot, True, True, False, *divmod(int(rng.choice(waiting)), self.link.queues))
        if slot and idle and rng.random() < pace.empty:
            chosen = int(rng.integers(self.cfg.outputs * self.link.queues))
            COVER.when(chosen not in waiting, "an empty list is chosen")
            return Choice(slot, True, True, False, *divmod(chosen, self.link.queues))
        if idle and sum(len(u) for u in golden.lists.values()) == 1 and rng.random() < pace.now:
            COVER.when(self.phase < 2, f"begun at once in phase {min(self.phase, 1)}")
            unit = golden.lists[waiting[0]][0]
            COVER.when(len(unit.flits) > 1, "unit of several flits begun at once")
            return Choice(slot, False, False, True, *divmod(waiting[0], self.link.queues))
        return Choice(slot)

    async def cycle(self, arrival: Arrival | None, choice: Choice, clear: bool = False) -> Told:
        """One cycle with these inputs, compared."""
        dut, golden = self.dut, self.golden
        self.watch(arrival, choice, clear)
        dut.valid.value = int(arrival is not None)
        if arrival:
            bits = 8 * self.link.beat_bytes
            word = (arrival.parity << bits | arrival.data) << 2 | arrival.last << 1 | arrival.first
            dut.beat.value = word
            dut.route.value, dut.refused.value = arrival.output, int(arrival.refused)
            dut.flip.value = int(arrival.flip)
        dut.clear.value = int(clear)
        dut.slot.value, dut.start.value, dut.first.value = int(choice.slot), int(choice.start), int(choice.first)
        dut.now.value, dut.out_port.value, dut.queue.value = int(choice.now), choice.output, choice.queue
        told = golden.step(arrival, choice, clear)
        if golden.shown and golden.shown[1] == 0 and golden.begun == 1 and golden.unit:
            COVER.hit(f"unit of {len(golden.unit.flits)} flits")
        await RisingEdge(self.clk)
        self.compare(told, arrival)
        self.phase = (self.phase + 1) % self.cfg.slot_cycles
        return told

    def watch(self, arrival: Arrival | None, choice: Choice, clear: bool) -> None:
        """Coverage of what is about to happen."""
        golden = self.golden
        COVER.when(clear and golden.open, "clear with open units")
        COVER.when(clear and arrival and not arrival.first, "clear while a flit arrives")
        COVER.when(len(golden.free) == 0, "pool full")
        COVER.when(arrival and arrival.flip, "bit turned")
        if arrival and arrival.first:
            header = FLIT_HEADER.unpack(arrival.data & 0xFFFFFFFF)
            old = golden.open.get(2 * header["class_"] + header["kind"])
            if old and old.stale:
                COVER.hit(f"{'head' if header['head'] else 'flit without head'} on a unit that clear closed")
            if header["head"] and header["tail"] and (choice.first or choice.now):
                mine = golden.lists.get(choice.output * self.link.queues + choice.queue, ())
                same = choice.output == arrival.output and choice.queue == 2 * header["class_"] + header["kind"]
                COVER.when(
                    same and len(mine) == 1 and not arrival.refused, "last of a list leaves while the next comes"
                )

    def compare(self, told: Told, arrival: Arrival | None) -> None:
        """Every output against the golden one."""
        dut, cfg = self.dut, self.cfg
        where = f"cycle {self.golden.cycle - 1}"
        flags = {
            name: bool(getattr(told, name))
            for name in ("more", "sending", "ends", "answered", "dropped_unit", "bad_unit", "overrun")
        }
        flags |= {"lone": told.lone is not None, "o_valid": told.beat is not None, "freed": told.freed is not None}
        for name, value in flags.items():
            got = bool(getattr(dut, name).value)
            assert got == value, f"{where}: {name} is {got}, golden {value}"
        dropped = (int(dut.dropped_flits.value), int(dut.bad_flits.value))
        assert dropped == (told.dropped_flits, told.bad_flits), f"{where}: {dropped} flits dropped, of units and others"
        lists = sum(1 << n for n in told.lists)
        got = int(dut.lists.value)
        assert got == lists, f"{where}: lists {got:x}, golden {lists:x}"
        width = cfg.length_cap_flits.bit_length()
        lengths = int(dut.lengths.value)
        expected = sum(n << width * o for o, n in enumerate(told.lengths))
        assert lengths == expected, f"{where}: lengths {lengths:x}, golden {told.lengths}"
        COVER.when(cfg.length_cap_flits in told.lengths, "lengths stop at the cap")
        if told.freed is not None:
            self.freed += 1
            assert int(dut.freed_account.value) == told.freed, f"{where}: account of the place that is free"
        elif self.golden.drops and self.golden.drops[0][0] < self.golden.cycle:
            raise AssertionError(f"{where}: the golden model frees nothing though flits wait to be dropped")
        if told.freed is not None and self.golden.drops and self.golden.leaving:
            COVER.hit("dropped flits wait for those sent")
        if told.lone:
            lone = (int(dut.lone_port.value), int(dut.lone_queue.value), int(dut.lone_flits.value))
            assert lone == told.lone, f"{where}: lone is {lone}, golden {told.lone}"
            COVER.hit("lone")
        if told.beat:
            b = told.beat
            size = self.link.beat_bytes
            word = int(b.tail) << 1 | int(b.head)
            word = ((word << size | b.parity) << 8 * size | b.data) << 2 | b.last << 1 | b.first
            got = int(dut.o.value)
            assert got == word, f"{where}: beat {got:x}, golden {word:x}"
        if arrival and arrival.first:
            header = FLIT_HEADER.unpack(arrival.data & 0xFFFFFFFF)
            assert int(dut.endpoint.value) == header["endpoint"], f"{where}: endpoint"
            self.accepted += not told.overrun
        COVER.when(told.overrun, "overrun")
        if told.dropped_unit:
            COVER.hit("refused, dropped")
        for number in told.lists:
            self.outputs.add(number // self.link.queues)
            self.queues.add(number % self.link.queues)
        COVER.when(told.lists and max(told.lists) // self.link.queues == cfg.ports, "responder")
        COVER.when(len(self.outputs) == cfg.outputs, "every output")
        COVER.when(len(self.queues) == self.link.queues, "every queue")

    async def run(self, cycles: int, pace: Pace) -> None:
        """Random units, choices and new sessions."""
        for _ in range(cycles):
            if len(self.flits) < 8:
                self.some_units(pace)
            await self.cycle(self.next_beat(pace), self.choose(pace), bool(self.rng.random() < pace.clear))

    async def drain(self) -> None:
        """Nothing more arrives; what is complete leaves, what is open is cleared. No place must be missing."""
        pace = Pace(arrive=1, serve=1, now=1, empty=0)
        self.flits.clear()
        while self.beats:
            await self.cycle(self.next_beat(pace), self.choose(pace))
        await self.cycle(None, self.choose(pace), True)
        golden = self.golden
        while golden.waiting() or golden.remaining or golden.leaving or golden.open or golden.drops:
            await self.cycle(None, self.choose(pace))
        for _ in range(4):
            await self.cycle(None, self.choose(pace))
        assert self.freed == self.accepted, f"{self.accepted} flits were stored, {self.freed} places came back"
        assert len(golden.free) == self.link.pool_flits
