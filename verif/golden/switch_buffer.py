"""The buffer of one input of a switch, cycle by cycle, from the text of docs/switch-buffer.md.

A flit is its 256 bytes and what parity bits came with it. Slots have no numbers here: a unit owns its flits.
"""

from collections import deque
from dataclasses import dataclass, field

from rtl.contract.link import FLIT_HEADER, FLIT_HEADER_BYTES, FLIT_PAYLOAD_BYTES, UNIT_FLITS_MAX
from rtl.contract.switch_config import SwitchConfig
from verif.golden.switch_routes import asks_for_answer

__all__ = ["Arrival", "Beat", "Choice", "Flit", "SwitchBuffer", "Told"]

_AGAIN_CYCLES = 2  # from a slot's freeing to its use; also from a drop to its first freeing


@dataclass(slots=True)
class Flit:
    """A flit in the pool: what is kept of its beats, (data, parity), and its bytes as they came."""

    header: dict[str, int]
    beats: list[tuple[int, int]] = field(default_factory=list)
    text: bytes = b""

    @property
    def words(self) -> bytes:
        """What stands between the flit header and the DLP."""
        return self.text[FLIT_HEADER_BYTES:FLIT_PAYLOAD_BYTES]


@dataclass(slots=True)
class Unit:
    """Flits of one queue, on their way to `output`."""

    queue: int
    output: int
    refused: bool
    flits: list[Flit]
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """A beat that arrives; output and refused are read in the first."""

    first: bool
    last: bool
    data: int
    parity: int
    output: int = 0
    refused: bool = False
    flip: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """What is chosen for this input in a cycle."""

    slot: bool = False
    start: bool = False
    first: bool = False
    now: bool = False
    output: int = 0
    queue: int = 0


@dataclass(frozen=True, slots=True)
class Beat:
    """A beat that leaves."""

    first: bool
    last: bool
    head: bool
    tail: bool
    data: int
    parity: int


@dataclass(slots=True)
class Told:
    """All outputs of a cycle; `lists` has the numbers of the lists with a unit."""

    lists: set[int] = field(default_factory=set)
    lengths: list[int] = field(default_factory=list)
    more: bool = False
    sending: bool = False
    ends: bool = False
    lone: tuple[int, int, int] | None = None  # output, queue, flits
    beat: Beat | None = None
    freed: int | None = None  # account
    dropped_unit: bool = False
    dropped_flits: int = 0
    answered: bool = False
    bad_unit: bool = False
    bad_flits: int = 0
    overrun: bool = False


class SwitchBuffer:
    """`step` is a cycle."""

    def __init__(self, cfg: SwitchConfig):
        link = cfg.link
        self.cfg = cfg
        self.size = link.beat_bytes
        self.beats = link.beats
        self.cycle = 0
        self.free: list[int] = [0] * link.pool_flits  # from which cycle each free slot may be used
        self.lists: dict[int, deque[Unit]] = {}
        self.open: dict[int, Unit] = {}
        self.skipping: set[int] = set()  # queues whose flits are dropped up to the next head
        self.swept = 0
        self.drops: deque[tuple[int, list[int]]] = deque()  # (cycle, accounts)
        self.arriving: Flit | None = None
        self.judged: Unit | None = None  # refused, its tail arrives
        self.unit: Unit | None = None  # under way
        self.begun = 0  # flits of it that have begun
        self.fast = False
        self.leaving: tuple[Flit, int, bool, bool] | None = None  # flit, next beat, head, tail
        self.shown: tuple[Flit, int, bool, bool] | None = None  # what was read in the cycle before

    # What comes and goes

    def _account(self, flit: Flit) -> int:
        h = flit.header
        return 2 * h["class_"] + h["kind"] if h["dedicated"] else self.cfg.link.queues + h["kind"]

    def _drop(self, told: Told, flits: list[Flit]) -> None:
        if told.dropped_unit:
            told.dropped_flits = len(flits)
        else:
            told.bad_flits = len(flits)
        self.drops.append((self.cycle + _AGAIN_CYCLES, [self._account(f) for f in flits]))

    def _enlist(self, output: int, unit: Unit) -> None:
        self.lists.setdefault(output * self.cfg.link.queues + unit.queue, deque()).append(unit)

    def _arrive_first(self, a: Arrival, told: Told) -> None:
        header = FLIT_HEADER.unpack(a.data & 0xFFFFFFFF)
        queue = 2 * header["class_"] + header["kind"]
        place = next((i for i, since in enumerate(self.free) if since <= self.cycle), None)
        told.overrun = place is None
        flit = Flit(header)
        if place is not None:
            del self.free[place]
        self.arriving = flit
        self.judged = None
        old = self.open.pop(queue, None)
        skipped = queue in self.skipping
        self.skipping.discard(queue)
        mine = [] if place is None else [flit]
        if header["head"]:
            if old:
                self._drop(told, old.flits)
            told.bad_unit = old is not None or not mine
            unit = Unit(queue, a.output, a.refused, mine)
            good = bool(mine)
        else:
            unit = old or Unit(queue, 0, False, [])
            good = bool(old and not old.stale and mine and unit.flits[0].header["endpoint"] == header["endpoint"])
            unit.flits += mine
            if good and len(unit.flits) == UNIT_FLITS_MAX and not header["tail"]:
                good = False
            if not good:
                told.bad_unit = old is not None or not skipped
                if unit.flits:
                    self._drop(told, unit.flits)
        if not good:
            if not header["tail"]:
                self.skipping.add(queue)
        elif not header["tail"]:
            self.open[queue] = unit
        elif unit.refused:
            self.judged = unit
        else:
            self._enlist(unit.output, unit)

    def _judge(self, unit: Unit, told: Told) -> None:
        """A refused unit is there."""
        self.judged = None
        if unit.queue % 2 == 0 and asks_for_answer(b"".join(f.words for f in unit.flits)):
            self._enlist(self.cfg.outputs - 1, unit)
            told.answered = True
        else:
            told.dropped_unit = True
            self._drop(told, unit.flits)

    def _sweep(self, told: Told) -> None:
        if any(u.stale for u in self.open.values()):
            unit = self.open.get(self.swept)
            if unit and unit.stale:
                del self.open[self.swept]
                told.bad_unit = True
                self._drop(told, unit.flits)
            self.swept = (self.swept + 1) % self.cfg.link.queues

    def _begin(self, choice: Choice) -> tuple[Flit, int, bool, bool] | None:
        """The flit that begins to leave in this cycle."""
        if choice.now or (choice.slot and choice.start and choice.first):
            waiting = self.lists.get(choice.output * self.cfg.link.queues + choice.queue)
            if not waiting:
                return None
            self.unit, self.begun, self.fast = waiting.popleft(), 0, choice.now
        elif self.remaining == 0 or not ((self.fast and not self.leaving) or (choice.slot and choice.start)):
            return None
        assert self.unit is not None
        self.begun += 1
        return self.unit.flits[self.begun - 1], 0, self.begun == 1, self.remaining == 0

    @property
    def remaining(self) -> int:
        """Flits of the unit under way that have not begun."""
        return len(self.unit.flits) - self.begun if self.unit else 0

    def waiting(self) -> list[tuple[int, Unit]]:
        """(list, unit) of all that wait."""
        return [(n, u) for n, units in self.lists.items() for u in units]

    # A cycle

    def step(self, arrival: Arrival | None, choice: Choice, clear: bool) -> Told:
        """What is told in this cycle."""
        told = Told()
        queues = self.cfg.link.queues
        if self.shown:
            flit, n, head, tail = self.shown
            told.beat = Beat(n == 0, n == self.beats - 1, head, tail, *flit.beats[n])

        # leaves
        waits = self.waiting()
        told.sending = bool(self.leaving or (choice.slot and choice.start) or (self.fast and self.remaining))
        if len(waits) == 1 and not told.sending and not self.remaining:
            told.lone = (*divmod(waits[0][0], queues), len(waits[0][1].flits))
        begun = self._begin(choice)
        if begun:
            self.leaving = begun
            told.freed = self._account(begun[0])
        told.more = self.remaining > 0 and not self.fast
        told.lists = {n for n, units in self.lists.items() if units}
        told.lengths = [0] * self.cfg.outputs
        for n, unit in self.waiting():
            told.lengths[n // queues] += len(unit.flits)
        told.lengths = [min(n, self.cfg.length_cap_flits) for n in told.lengths]
        self.shown = self.leaving
        if self.leaving:
            flit, n, head, tail = self.leaving
            told.ends = tail and n + 1 == self.beats
            self.leaving = None if n + 1 == self.beats else (flit, n + 1, head, tail)

        # is freed
        if told.freed is None and self.drops and self.drops[0][0] <= self.cycle:
            told.freed = self.drops[0][1].pop(0)
            if not self.drops[0][1]:
                self.drops.popleft()

        # arrives
        busy = arrival is not None and arrival.first
        if arrival and arrival.first:
            self._arrive_first(arrival, told)
        if arrival and self.arriving:
            self.arriving.beats.append((arrival.data ^ arrival.flip, arrival.parity))
            self.arriving.text += arrival.data.to_bytes(self.size, "little")
            if arrival.last and self.judged:
                self._judge(self.judged, told)
                busy = True
        if not busy:
            self._sweep(told)
        if told.freed is not None:
            self.free.append(self.cycle + _AGAIN_CYCLES)
        if clear:
            self.skipping.clear()
            for unit in self.open.values():
                unit.stale = True
        self.cycle += 1
        return told
