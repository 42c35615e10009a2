"""What an output of a switch does, a cycle or a flit at a time: docs/switch-output.md in plain Python.

Queues are numbered class * 2 + kind; sets of outputs, inputs and queues are Python sets, masks are integers.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from rtl.contract.link import (
    DLP_AT,
    DLP_BYTES,
    FLIT_BYTES,
    FLIT_HEADER,
    FLIT_HEADER_BYTES,
    NO_HEADER,
    UNIT_FLITS_MAX,
    PacketOpcode,
)
from rtl.contract.link_config import LinkConfig

__all__ = ["Arrival", "Began", "Bypass", "Crossbar", "Egress", "OutputBuffer", "Sent"]

_MARGIN = 1  # flits of the window that stay free


@dataclass
class _Granted:
    """A unit that may send up to `left` more flits."""

    queue: int
    doomed: bool
    left: int = UNIT_FLITS_MAX


@dataclass(frozen=True, slots=True)
class Arrival:
    """What becomes of a flit: stored with `header`, charged to `account`; or dropped."""

    stored: bool
    account: int = 0
    header: int = 0


class Egress:
    """Units that were granted and have not come whole."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.units: deque[_Granted] = deque()

    def grant(self, queue: int, doomed: bool = False) -> None:
        """A unit of this queue may begin."""
        self.units.append(_Granted(queue, doomed))

    @property
    def due(self) -> int:
        """Flits that may still come."""
        return sum(u.left for u in self.units)

    def ready(self, free: Sequence[int], in_flight: int, may: bool) -> set[int]:
        """Queues of which a unit may begin, after all that was granted. `may`: the link is up and takes flits."""
        cfg, due = self.cfg, self.due
        if not may or in_flight + due + UNIT_FLITS_MAX + _MARGIN > cfg.window_flits:
            return set()
        found = set()
        newest = self.units[-1].queue if self.units else None
        for queue in range(cfg.queues):
            own, shared = free[queue], free[cfg.queues + queue % 2]
            by_shared = shared - due >= UNIT_FLITS_MAX
            by_both = not due and own + shared >= UNIT_FLITS_MAX
            by_own = queue != newest and own >= UNIT_FLITS_MAX
            if by_shared or by_both or by_own:
                found.add(queue)
        return found

    def arrive(self, flit_header: int, head: int, tail: int, free: Sequence[int], alive: bool) -> Arrival:
        """A flit of the oldest unit."""
        unit = self.units[0]
        unit.left -= 1
        if tail:
            self.units.popleft()
        if not alive or unit.doomed:
            return Arrival(False)
        kind, class_ = unit.queue % 2, unit.queue // 2
        shared = self.cfg.queues + kind
        dedicated = int(free[shared] == 0)
        changed = {"vc": class_, "class_": class_, "kind": kind, "dedicated": dedicated, "head": head, "tail": tail}
        header = FLIT_HEADER.pack(FLIT_HEADER.unpack(flit_header) | changed)
        return Arrival(True, unit.queue if dedicated else shared, header)


@dataclass(frozen=True, slots=True)
class Sent:
    """A flit on the wire, without codes; `spoil`: they must be wrong. `index` of a payload flit."""

    data: bytes
    spoil: bool = False
    index: int = -1
    void: bool = False


@dataclass
class _Row:
    data: bytes
    header: int
    wrong: bool
    void: bool = False


class OutputBuffer:
    """Payload flits by index, and what they look like on the wire."""

    def __init__(self) -> None:
        self.rows: dict[int, _Row] = {}

    def put(self, index: int, header: int, flit: bytes, parity: Sequence[int]) -> None:
        """A flit [256] with the parity of its bytes [256] as it came; `header` is that of the next hop."""
        wrong = any(byte.bit_count() % 2 != bit for byte, bit in zip(flit[:DLP_AT], parity, strict=False))
        data = header.to_bytes(FLIT_HEADER_BYTES, "little") + flit[FLIT_HEADER_BYTES:DLP_AT]
        self.rows[index] = _Row(data, header, wrong)

    def payload(self, index: int, dlp: int) -> Sent:
        """The flit at `index` is sent."""
        row = self.rows[index]
        if not row.void:
            return Sent(self._whole(row.data, dlp), row.wrong, index)
        header = FLIT_HEADER.pack(
            FLIT_HEADER.unpack(row.header) | {"zero": 0, "offset": NO_HEADER, "head": 1, "tail": 1}
        )
        data = header.to_bytes(FLIT_HEADER_BYTES, "little") + bytes([PacketOpcode.END])
        return Sent(self._whole(data, dlp), False, index, True)

    def other(self, head: int, dlp: int) -> Sent:
        """A NOP, or a control flit that begins with `head`."""
        return Sent(self._whole(head.to_bytes(16, "little"), dlp))

    def left(self, sent: Sent) -> None:
        """The last beat of a flit has left."""
        if sent.spoil:
            self.rows[sent.index].void = True

    @staticmethod
    def _whole(data: bytes, dlp: int) -> bytes:
        return (data.ljust(DLP_AT, b"\0") + dlp.to_bytes(DLP_BYTES, "big")).ljust(FLIT_BYTES, b"\0")


class Crossbar:
    """Which input each output listens to; None: to nobody."""

    def __init__(self, outputs: int):
        self.listens: list[int | None] = [None] * outputs

    def step(self, tunes: dict[int, int], mutes: set[int]) -> None:
        """What holds from the next cycle on; who is tuned is not muted."""
        for output in mutes - set(tunes):
            self.listens[output] = None
        for output, source in tunes.items():
            self.listens[output] = source


@dataclass(frozen=True, slots=True)
class Began:
    """What the bypass says in a cycle: units that begin, by input (output, queue), and what it blocks and mutes."""

    starts: dict[int, tuple[int, int]]
    busy_inputs: set[int]
    busy_outputs: set[int]
    blocked_inputs: set[int]
    blocked_outputs: set[int]
    mutes: set[int]


@dataclass
class Bypass:
    """Units under way without the scheduler, by input: where to."""

    enabled: bool = True
    busy: dict[int, int] = field(default_factory=dict)
    late: set[tuple[int, int]] = field(default_factory=set)  # began in this slot after the scheduler had looked
    ended: set[int] = field(default_factory=set)  # outputs whose unit's last beat was read in the last cycle

    def cycle(
        self,
        slot: bool,
        lone: set[int],
        lists: Sequence[set[tuple[int, int]]],
        ready: set[tuple[int, int]],
        sends: set[int],
        takes: set[int],
        ends: set[int],
    ) -> Began:
        """One cycle; `lists`: by input, (output, queue) of which a unit waits."""
        before, muted = dict(self.busy), self.ended
        starts = {}
        for source in sorted(lone - sends - set(before)) if self.enabled else ():
            for output, queue in lists[source]:
                others = any(o == output for k, waiting in enumerate(lists) if k != source for o, _ in waiting)
                taken = output in takes or output in before.values()
                if (output, queue) in ready and not others and not taken:
                    starts[source] = (output, queue)
        begun = {source: output for source, (output, _) in starts.items()}
        under_way = before | begun
        self.busy = {k: o for k, o in under_way.items() if k not in ends}
        self.ended = {o for k, o in before.items() if k in ends}
        self.late = set() if slot else self.late | set(begun.items())
        return Began(
            starts,
            set(before),
            set(before.values()),
            set(self.busy) | {k for k, _ in self.late},
            set(self.busy.values()) | {o for _, o in self.late},
            muted,
        )
