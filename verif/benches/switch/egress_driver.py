"""An egress between a scheduler that grants all it may and a link with golden credits; every output is compared."""

from dataclasses import dataclass

from cocotb.triggers import RisingEdge

from rtl.contract.link import FLIT_HEADER, UNIT_FLITS_MAX
from rtl.link.rules.credit_sender import COUNT_BITS
from verif.agents.bench import Bench
from verif.checks.coverage import Coverage
from verif.golden.link_rules import CreditReceiver, CreditSender
from verif.golden.switch_output import Egress

__all__ = ["COVER", "EgressBench"]

COVER = Coverage(
    "switch.egress",
    [
        *(f"{n} flits" for n in range(1, UNIT_FLITS_MAX + 1)),
        "shared",
        "dedicated",
        "shared in the middle of a unit ends",
        "no credits",
        "own credits alone",
        "window full",
        "wire behind",
        "begins by itself",
        "granted with the last beat of the one before",
        "session ends in a unit",
        "session ends in the cycle of a flit",
        "session ends before a unit comes",
        "doomed",
        "retrain in a unit",
        "credits come",
    ],
)
_DOWN_FLITS = 12  # more than a unit takes; in truth it is 33 and more


@dataclass(frozen=True, slots=True)
class _Beat:
    """What the crossbar shows."""

    first: bool
    last: bool
    header: int
    head: bool
    tail: bool


class EgressBench(Bench):
    """The unit between a scheduler that grants all it may, and a link with golden credits."""

    def __init__(self, dut, returns: float, acks: float, ends: float):
        super().__init__(dut)
        link = self.cfg
        self.returns, self.acks, self.session_ends = returns, acks, ends
        self.golden = Egress(link)
        self.credits, self.partner = CreditSender(link), CreditReceiver(link)
        self.link_cycle = 0
        self.up = self.alive = False
        self.down_for = 60
        self.retrain_for = 0
        self.in_flight = self.unsent = 0
        self.held: list[int] = []  # accounts of the flits that the partner holds
        self.beats: dict[int, _Beat] = {}  # by cycle
        self.taken_until = 0  # cycle from which on the output is free
        self.late = False  # began by itself in this slot, when the scheduler had looked
        self.flits_left = 0  # of the unit that holds the output
        self.flits = 0  # of it
        self.captured: set[int] = set()
        self.queue = 0
        self.kept = False
        self.spent = 0
        self.dropped = 0
        self.last_account = 0
        for name in ("granted", "doomed", "queue", "i_valid", "i", "up", "alive", "clear", "room", "in_flight", "free"):
            getattr(dut, name).value = 0

    @property
    def free(self) -> list[int]:
        """Credits by account."""
        return [self.credits.free(a) for a in range(self.cfg.accounts)]

    def next_flit(self, at: int, head: bool) -> None:
        """A flit of the unit that holds the output begins to arrive in that cycle."""
        link = self.cfg
        self.flits_left -= 1
        header = {f.name: int(self.rng.integers(1 << f.width)) for f in FLIT_HEADER}
        for n in range(link.beats):
            self.beats[at + n] = _Beat(
                n == 0, n == link.beats - 1, FLIT_HEADER.pack(header), head, self.flits_left == 0
            )

    def grant(self, phase: int, may: bool) -> tuple[int | None, bool]:
        """What begins in this cycle: a queue, and whether it is doomed."""
        link, t = self.cfg, self.link_cycle
        free = self.free
        idle = self.golden.ready(free, self.in_flight, may) if self.golden.due == 0 else set()
        choices: set[int] = set()
        doomed = False
        if phase == 0 and self.flits_left:
            self.next_flit(t + 1, False)
            self.taken_until = t + link.flit_cycles
            return None, False
        late, self.late = self.late, self.late and phase != 0
        if phase == 0 and t >= self.taken_until and not late:
            choices = self.captured
            doomed = not self.alive and self.rng.random() < 0.2
            if doomed:
                choices = set(range(link.queues))
        by_itself = not choices and t >= self.taken_until and self.rng.random() < 0.3
        if by_itself:
            choices = idle
        if not choices or (not doomed and self.rng.random() < 0.1):
            return None, False
        self.queue = int(self.rng.choice(sorted(choices)))
        self.flits = self.flits_left = int(self.rng.integers(1, UNIT_FLITS_MAX + 1))
        COVER.when(self.beats.get(t), "granted with the last beat of the one before")
        self.taken_until = t + link.flit_cycles
        self.next_flit(t + 1, True)
        if by_itself:
            COVER.hit("begins by itself")
            self.late = phase != 0
            while self.flits_left:
                self.next_flit(max(self.beats) + 1, False)
            self.taken_until = max(max(self.beats), t - phase + link.flit_cycles)
        return self.queue, doomed

    def session(self) -> bool:
        """Ends of sessions, beginnings, retrains. Returns `clear`."""
        self.retrain_for = max(self.retrain_for - 1, 0)
        if not self.alive and not self.down_for:
            self.down_for = -1
            self.up = True
        elif self.up:
            self.alive = True
            beat = self.beats.get(self.link_cycle)
            between = self.link_cycle % self.cfg.flit_cycles == 0 and not self.flits_left
            if self.rng.random() < self.session_ends * (8 if between or (beat and beat.first) else 1):
                return True
            if self.rng.random() < self.session_ends:
                self.retrain_for = int(self.rng.integers(1, 60))
        if self.down_for > 0:
            self.down_for -= 1
        return False

    def partner_moves(self) -> None:
        """Once a flit time: counts come, flits are acknowledged and freed, one goes on the wire."""
        rng = self.rng
        if self.unsent and not self.retrain_for and rng.random() < self.acks:
            self.unsent -= 1
        if self.in_flight > self.unsent and rng.random() < self.acks:
            self.in_flight -= int(rng.integers(1, self.in_flight - self.unsent + 1))
        while self.held and rng.random() < self.returns:
            self.partner.freed(self.held.pop(int(rng.integers(len(self.held)))))
        if self.up:
            before = self.free
            self.credits.hear(*self.partner.told())
            self.partner.next_turn()
            COVER.when(self.free != before, "credits come")

    async def cycle(self) -> None:
        """One cycle; all that is seen is compared."""
        link, dut, t = self.cfg, self.dut, self.link_cycle
        phase = t % link.flit_cycles
        clear = self.session()
        may = self.up and not self.retrain_for
        room = may and self.in_flight < link.window_flits and self.unsent < 2
        free = self.free
        idle = self.golden.ready(free, self.in_flight, room) if self.golden.due == 0 else set()
        queue, doomed = self.grant(phase, room)
        beat = self.beats.pop(t, None)
        dut.granted.value = int(queue is not None)
        dut.doomed.value = int(doomed)
        dut.queue.value = self.queue if queue is not None else int(self.rng.integers(link.queues))
        dut.i_valid.value = int(beat is not None)
        if beat:
            data = self.rng.bytes(link.beat_bytes)
            body = beat.header if beat.first else int.from_bytes(data[:4], "little")
            word = int.from_bytes(data, "little") >> 32 << 32 | body
            flags = (beat.head | beat.tail << 1) << 9 * link.beat_bytes
            dut.i.value = beat.first | beat.last << 1 | (word | flags) << 2
        dut.up.value, dut.alive.value, dut.clear.value = int(may), int(self.alive), int(clear)
        dut.room.value, dut.in_flight.value = int(room), self.in_flight
        dut.free.value = sum(f << COUNT_BITS * n for n, f in enumerate(free))
        if queue is not None:
            self.golden.grant(queue, doomed)
        ready = self.golden.ready(free, self.in_flight, room)
        self.cover(free, room, may, ready, clear, beat)

        await RisingEdge(self.clk)
        for name, expected in (("ready", ready), ("idle_ready", idle)):
            got = int(getattr(dut, name).value)
            assert got == sum(1 << q for q in expected), f"cycle {t}: {name} {got:b}, golden {sorted(expected)}"
        self.arrived(beat, free, self.alive and not clear)
        if phase == 0:
            self.captured = ready
        if clear:
            COVER.when(beat and beat.first, "session ends in the cycle of a flit")
            self.up = self.alive = False
            self.down_for = link.flit_cycles * _DOWN_FLITS
            self.in_flight = self.unsent = 0
            self.credits.clear()
            self.partner.held = [0] * link.accounts
            self.partner.clear()
            self.held.clear()
        elif phase == link.flit_cycles - 1:
            self.partner_moves()
        self.link_cycle += 1

    def arrived(self, beat: _Beat | None, free: list[int], alive: bool) -> None:
        """Compare what the unit says of a beat."""
        dut = self.dut
        stored, dropped, spend = (int(getattr(dut, n).value) for n in ("o_valid", "dropped", "spend"))
        if not beat:
            assert not (stored or dropped or spend), f"cycle {self.link_cycle}: a strobe without a beat"
            return
        if not beat.first:
            assert stored == self.kept and not dropped and not spend, f"cycle {self.link_cycle}: in a flit"
            return
        doomed = self.golden.units[0].doomed
        expected = self.golden.arrive(beat.header, beat.head, beat.tail, free, alive)
        self.kept = expected.stored
        told = (stored, dropped, spend)
        assert told == (expected.stored, not expected.stored, expected.stored), f"cycle {self.link_cycle}: {told}"
        COVER.when(doomed, "doomed")
        if not expected.stored:
            self.dropped += 1
            return
        account = int(dut.account.value)
        header = int(dut.header.value)
        assert account == expected.account, f"charged {account}, golden {expected.account}"
        assert header == expected.header, f"header {header:08x}, golden {expected.header:08x}"
        # A partner that is obeyed has room, and the retry buffer too.
        assert self.credits.free(account) > 0, f"account {account} has nothing left to spend"
        assert self.in_flight < self.cfg.window_flits, "the window is full"
        assert self.partner.room(account), "the partner has no room"
        self.credits.spend(account)
        self.partner.arrive(account)
        self.held.append(account)
        self.in_flight += 1
        self.unsent += 1
        self.spent += 1
        own = account < self.cfg.queues
        COVER.hit("dedicated" if own else "shared")
        COVER.when(
            own and not beat.head and self.last_account >= self.cfg.queues, "shared in the middle of a unit ends"
        )
        self.last_account = account

    def cover(self, free: list[int], room: bool, may: bool, ready: set[int], clear: bool, beat: _Beat | None) -> None:
        """What this cycle is an example of."""
        link = self.cfg
        COVER.when(room and not ready, "no credits" if max(free) < UNIT_FLITS_MAX else "window full")
        COVER.when(any(free[q] >= UNIT_FLITS_MAX > free[link.queues + q % 2] for q in ready), "own credits alone")
        COVER.when(may and not room, "wire behind")
        units = self.golden.units
        begun = bool(units) and units[0].left < UNIT_FLITS_MAX
        COVER.when(clear and begun, "session ends in a unit")
        COVER.when(clear and units and not begun, "session ends before a unit comes")
        COVER.when(self.retrain_for and begun, "retrain in a unit")
        COVER.when(beat and beat.first and beat.tail, f"{self.flits} flits")
