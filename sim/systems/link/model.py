"""What credits and the window let a saturated link carry: a model of one direction, a link cycle a step.

Both ends do the same, so one end that hears itself is enough. It follows docs/framing.md (units, credits before a unit
starts), docs/link-rules.md (window, which account is told) and the latencies below; nothing in it is measured in the
run that it predicts.
"""

from collections import deque
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from rtl.contract.link import DEDICATED_FLITS, MARKER_INTERVAL_FLITS, PACKET_HEADER_BYTES, UNIT_FLITS_MAX, WORD_BYTES
from rtl.contract.link_config import COVERS_WINDOW, LinkConfig

__all__ = ["line_share", "what_limits"]

_FLIT_WORDS = 58
_SEND = 2  # cycles from a slot to the flit's first beat at the lanes: retry buffer, encoder
_LANES = 4  # from a beat at the lanes' sender to the beat of the receiver, beside the time of its words
_JUDGE = 3  # from the last beat to the verdict
_WARM_TRIPS = 6
_TRIPS = 20
_LEAST_FLITS = 1500
_FLITS = 8000  # markers among them: with few credits much depends on where the round of accounts stands
_NEARLY_ALL = 0.995


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a sender packs when packets wait: flits, and beats of its packets."""

    flits: int
    beats: int


def _unit_of(cfg: LinkConfig, packet_bytes: int) -> _Unit:
    """Units of packets that all have so many bytes of payload (docs/framing.md, which packets share a unit)."""
    words = -(-(PACKET_HEADER_BYTES + packet_bytes) // WORD_BYTES)
    beats = -(-words * WORD_BYTES // cfg.beat_bytes)
    most = 1
    for count in range(1, _FLIT_WORDS * UNIT_FLITS_MAX // words + 1):
        flits = -(-count * words // _FLIT_WORDS)
        if count > 1 and count * beats > flits * cfg.flit_cycles:
            break
        most = count
    return _Unit(-(-most * words // _FLIT_WORDS), most * beats)


def line_share(cfg: LinkConfig, *, delay_flits: int, packet_bytes: int, classes: int, responses: bool) -> float:
    """Share of the flit times in which a saturated sender may send a payload flit, without errors: at most 1."""
    way = delay_flits + 4
    if 2 * way + 12 + 4 * UNIT_FLITS_MAX < min(cfg.window_flits, cfg.shared_flits):
        return 1.0
    unit = _unit_of(cfg, packet_bytes)
    queues = [2 * c + kind for c in range(classes) for kind in range(2 if responses else 1)]
    end = _End(cfg, delay_flits, unit, queues)
    warm = _WARM_TRIPS * (2 * way + 12)
    end.run((warm + _LEAST_FLITS) * cfg.flit_cycles)
    if end.sent[-_LEAST_FLITS:] == list(range(end.slots - _LEAST_FLITS, end.slots)):
        return 1.0
    end.run(max(warm + _FLITS, warm + _TRIPS * (2 * way + 12)) * cfg.flit_cycles)
    sent = [slot for slot in end.sent if slot >= warm]
    # from the first of the long pauses to the last one: whole periods
    gaps = [after - before for before, after in pairwise(sent)]
    longest = max(gaps, default=1)
    starts = [n for n, gap in enumerate(gaps) if 2 * gap > longest]
    if longest > 1 and 2 * (starts[-1] - starts[0]) > len(gaps):
        gaps = gaps[starts[0] : starts[-1]]
    return len(gaps) / max(1, sum(gaps))


def what_limits(cfg: LinkConfig, share: float, **traffic: Any) -> str:
    """What holds a link at this share of its line: `line`, `credits` or `window`. traffic: as for line_share."""
    if share >= _NEARLY_ALL:
        return "line"
    enough = replace(cfg, shared_flits=COVERS_WINDOW)
    if enough.shared_flits <= cfg.shared_flits or share >= _NEARLY_ALL * line_share(enough, **traffic):
        return "window"
    return "credits"


class _End:
    """One end that hears what it sends."""

    def __init__(self, cfg: LinkConfig, delay_flits: int, unit: _Unit, queues: list[int]):
        self.cfg, self.unit, self.queues = cfg, unit, queues
        flit = cfg.flit_cycles
        self.way = delay_flits * flit + _SEND + _LANES + flit - 1 + _JUDGE
        self.now = self.slots = 0
        self.next_slot = 0
        self.sent: list[int] = []  # flit times in which a payload flit was sent
        # sender
        self.free = [0] * cfg.accounts
        self.used = [0] * cfg.accounts
        self.next = self.fresh = 0  # flits stored, flits sent
        self.acked = 0
        self.stored: deque[int] = deque()  # cycles from which stored flits may be sent
        self.accounts: deque[tuple[int, bool]] = deque()  # of stored flits: account, tail
        self.left = self.queue = 0  # flits of the unit under way, its queue
        self.ready = 0  # from which cycle a unit may be taken
        self.first = 0  # from which cycle a flit may begin to be stored
        self.deficits = list(cfg.weights)
        self.class_ = -1  # that went last
        self.kind_last = [0] * cfg.classes
        # receiver
        self.ack = 0
        self.size = [DEDICATED_FLITS] * cfg.queues + [cfg.shared_flits] * 2
        self.count = list(self.size)
        self.changed = 0
        self.turn = self.round = 0
        self.favour = False
        self.open: dict[int, list[int]] = {}
        self.units: dict[int, deque[tuple[int, list[int]]]] = {0: deque(), 1: deque()}
        self.reads = [0, 0]  # from which cycle a unit of a kind may be taken from the pool
        self.freed: deque[tuple[int, int]] = deque()
        self.wire: deque[tuple[int, int, int, int, int, bool]] = deque()

    def run(self, until: int) -> None:
        """To this cycle."""
        flit = self.cfg.flit_cycles
        while self.now < until:
            self._hear()
            self._read()
            if self.now == self.next_slot:
                self._slot()
                self.next_slot += flit + (self.slots % MARKER_INTERVAL_FLITS == 0)
            self._frame()
            self.now += 1

    def _hear(self) -> None:
        """Effects of the flit whose verdict was in the cycle before."""
        while self.wire and self.wire[0][0] < self.now:
            verdict, ack, told, count, account, tail = self.wire.popleft()
            self.acked = ack
            self.free[told] = count - self.used[told]
            if account < 0:
                continue
            self.ack += 1
            queue = account >> 8
            self.open.setdefault(queue, []).append(account & 255)
            if tail:
                done = verdict + self.cfg.beats - 1
                self.units[queue & 1].append((done + 1, self.open.pop(queue)))

    def _read(self) -> None:
        """Whole units leave the pool; what was freed in the cycle before is counted."""
        beats = self.cfg.beats
        for kind in (0, 1):
            waiting = self.units[kind]
            while waiting and max(waiting[0][0], self.reads[kind]) <= self.now:
                _, accounts = waiting.popleft()
                rows = beats * len(accounts)
                pace = max(1.0, self.unit.beats / rows)
                for n, account in enumerate(accounts):
                    row = beats * (n + 1)
                    self.freed.append((self.now + max(row, round(pace * row - 5 * (pace - 1))), account))
                self.reads[kind] = self.now + max(rows, round(pace * rows - 5 * (pace - 1)))
        while self.freed and self.freed[0][0] < self.now:
            _, account = self.freed.popleft()
            self.count[account] += 1
            self.changed |= 1 << account

    def _slot(self) -> None:
        """A flit starts: payload if one is stored; it tells an account and what has been accepted."""
        account, tail = -1, False
        self.slots += 1
        if self.stored and self.stored[0] <= self.now:
            self.stored.popleft()
            account, tail = self.accounts.popleft()
            self.fresh += 1
            self.sent.append(self.slots)
        self.wire.append((self.now + self.way, self.ack, self.turn, self.count[self.turn], account, tail))
        accounts = self.cfg.accounts
        self.changed &= ~(1 << self.turn)
        if self.changed and not self.favour:
            later = self.changed & -(2 << self.turn)
            first = later or self.changed
            self.turn, self.favour = (first & -first).bit_length() - 1, True
        else:
            self.round = (self.round + 1) % accounts
            self.turn, self.favour = self.round, False

    def _frame(self) -> None:
        """A unit is taken when its credits are there; its flits are stored one behind the other."""
        cfg = self.cfg
        if not self.left and self.now >= self.ready:
            able = [q for q in self.queues if self.free[q] + self.free[cfg.queues + (q & 1)] >= self.unit.flits]
            if able:
                self.queue, self.left = self._turn(able), self.unit.flits
                self.first = max(self.first, self.now + 2)
        if self.left and self.now >= self.first:
            if self.next - self.acked < cfg.window_flits and self.next - self.fresh < 2:
                shared = cfg.queues + (self.queue & 1)
                account = shared if self.free[shared] > 0 else self.queue
                self.free[account] -= 1
                self.used[account] += 1
                self.left -= 1
                self.next += 1
                self.stored.append(self.now + cfg.beats)
                self.accounts.append((self.queue << 8 | account, self.left == 0))
                self.first = self.now + cfg.beats
                if not self.left:
                    self.ready = self.now + cfg.beats - 2

    def _turn(self, able: list[int]) -> int:
        """The queue that goes next (docs/framing.md, whose turn it is), without a strict class."""
        weights, deficits = self.cfg.weights, self.deficits
        asking = {q >> 1 for q in able}
        rounds = min(max(0, -(deficits[c] - 1) // weights[c]) for c in asking)
        may = [c for c in asking if deficits[c] + rounds * weights[c] > 0]
        class_ = min(may, key=lambda c: (c <= self.class_, c))
        if rounds:
            self.deficits = deficits = [min(d + rounds * w, w) for d, w in zip(deficits, weights, strict=True)]
        deficits[class_] -= self.unit.flits
        self.class_ = class_
        kinds = [q & 1 for q in able if q >> 1 == class_]
        kind = 1 - self.kind_last[class_] if len(kinds) == 2 else kinds[0]
        self.kind_last[class_] = kind
        return 2 * class_ + kind
