"""Packets to flits and back, and whose turn it is: the rules of docs/framing.md in plain Python.

A flit is its 236 payload bytes here. Outside truth: tests/unit/test_golden_framing.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rtl.contract.link import (
    FLIT_HEADER,
    FLIT_HEADER_BYTES,
    FLIT_PAYLOAD_BYTES,
    NO_HEADER,
    PACKET_BYTES_MAX,
    PACKET_HEADER,
    PACKET_HEADER_BYTES,
    PAYLOAD_OPCODES,
    RESPONSE_OPCODES,
    SIGNAL_BYTES,
    UNIT_FLITS_MAX,
    WORD_BYTES,
    PacketFlag,
    PacketOpcode,
)
from rtl.contract.link_config import LinkConfig

__all__ = [
    "FLIT_WORDS",
    "Packet",
    "Turns",
    "Units",
    "beats_needed",
    "body_length",
    "flits_needed",
    "flits_of",
    "grouped",
    "header_of",
    "unpack",
]

FLIT_WORDS = (FLIT_PAYLOAD_BYTES - FLIT_HEADER_BYTES) // WORD_BYTES
_UNIT_WORDS = UNIT_FLITS_MAX * FLIT_WORDS
_HEADER_WORDS = PACKET_HEADER_BYTES // WORD_BYTES


@dataclass(frozen=True, slots=True)
class Packet:
    """`data`: header and all that follows it."""

    class_: int
    endpoint: int
    data: bytes

    def __str__(self) -> str:
        """Short, for messages."""
        name = self.header["opcode"]
        return f"class {self.class_} to {self.endpoint} opcode {name}, {len(self.data)} bytes {self.data[:8].hex()}..."

    @property
    def header(self) -> dict[str, int]:
        """Fields of its header."""
        return PACKET_HEADER.unpack(int.from_bytes(self.data[:PACKET_HEADER_BYTES], "little"))

    @property
    def kind(self) -> int:
        """0 request, 1 response."""
        return int(self.header["opcode"] in RESPONSE_OPCODES)

    @property
    def queue(self) -> int:
        """class * 2 + kind."""
        return 2 * self.class_ + self.kind

    @property
    def words(self) -> int:
        """Words that it takes in a unit."""
        return -(-len(self.data) // WORD_BYTES)


def body_length(header: dict[str, int]) -> int:
    """Bytes that follow a packet header."""
    payload = header["length_bytes"] if header["opcode"] in PAYLOAD_OPCODES else 0
    return payload + (SIGNAL_BYTES if header["flags"] & PacketFlag.SIGNAL else 0)


def flits_needed(packets: Iterable[Packet]) -> int:
    """Flits of the unit that they make."""
    return -(-sum(p.words for p in packets) // FLIT_WORDS)


def beats_needed(packets: Iterable[Packet], cfg: LinkConfig) -> int:
    """Beats that they take at a packet port."""
    return sum(-(-len(p.data) // cfg.beat_bytes) for p in packets)


def grouped(packets: Iterable[Packet], cfg: LinkConfig | None = None) -> list[list[Packet]]:
    """Packets of one queue, all there before any may go: the units that a link's sender makes of them; without a
    configuration, units with as many packets as fit."""
    units: list[list[Packet]] = []
    for packet in packets:
        last = units[-1] if units else []
        more = [*last, packet]
        joins = bool(last) and last[0].endpoint == packet.endpoint and sum(p.words for p in more) <= _UNIT_WORDS
        if cfg is not None and joins:
            ahead = sum(flits_needed(u) for u in units[:-1])
            in_time = beats_needed(more, cfg) <= flits_needed(more) * cfg.flit_cycles
            joins = in_time and ahead > flits_needed([packet])
        if joins:
            last.append(packet)
        else:
            units.append([packet])
    return units


def flits_of(packets: Sequence[Packet], dedicated: Sequence[int] = ()) -> list[bytes]:
    """The flits of one unit; `dedicated`: that bit of each, 0 if not given."""
    first = packets[0]
    words = b""
    begins: list[int] = []
    for packet in packets:
        begins.append(len(words) // WORD_BYTES)
        words += packet.data + bytes(-len(packet.data) % WORD_BYTES)
    count = -(-len(words) // (WORD_BYTES * FLIT_WORDS))
    room = count * FLIT_WORDS * WORD_BYTES - len(words)
    if room >= PACKET_HEADER_BYTES:
        words += bytes([PacketOpcode.END])
    words = words.ljust(count * FLIT_WORDS * WORD_BYTES, b"\0")
    out = []
    for n in range(count):
        here = [b - n * FLIT_WORDS for b in begins if 0 <= b - n * FLIT_WORDS < FLIT_WORDS]
        header = FLIT_HEADER.pack(
            endpoint=first.endpoint,
            class_=first.class_,
            vc=first.class_,
            kind=first.kind,
            dedicated=dedicated[n] if n < len(dedicated) else 0,
            head=int(n == 0),
            tail=int(n == count - 1),
            offset=min(here, default=NO_HEADER),
        )
        part = words[n * FLIT_WORDS * WORD_BYTES : (n + 1) * FLIT_WORDS * WORD_BYTES]
        out.append(header.to_bytes(FLIT_HEADER_BYTES, "little") + part)
    return out


def header_of(flit: bytes) -> dict[str, int]:
    """Fields of a flit's header."""
    return FLIT_HEADER.unpack(int.from_bytes(flit[:FLIT_HEADER_BYTES], "little"))


def _sound(header: dict[str, int], kind: int, room: int) -> bool:
    """A packet of this kind may begin where `room` bytes of the unit are left."""
    opcodes = {int(o) for o in PacketOpcode if o != PacketOpcode.END}
    return (
        header["opcode"] in opcodes
        and header["flags"] < 8  # a signal, two bits of a sum
        and header["length_bytes"] <= PACKET_BYTES_MAX
        and int(header["opcode"] in RESPONSE_OPCODES) == kind
        and PACKET_HEADER_BYTES + body_length(header) <= room
    )


def unpack(flits: Sequence[bytes]) -> tuple[list[Packet], bool]:
    """The packets of a unit up to the first that cannot be, and whether there was one."""
    headers = [header_of(f) for f in flits]
    kind, class_, endpoint = (headers[0][n] for n in ("kind", "class_", "endpoint"))
    words = b"".join(f[FLIT_HEADER_BYTES:] for f in flits)
    total = len(words) // WORD_BYTES
    packets: list[Packet] = []
    marked: set[int] = set()  # flits in which a packet header began
    at = 0

    def unmarked(until: int) -> bool:
        """No flit before `until` names a header where none began."""
        return all(headers[n]["offset"] == NO_HEADER for n in range(until) if n not in marked)

    while True:
        here = at // FLIT_WORDS
        text = words[at * WORD_BYTES : at * WORD_BYTES + PACKET_HEADER_BYTES]
        if total - at < _HEADER_WORDS or text[0] & 0xF == PacketOpcode.END or not any(text):
            return packets, not unmarked(min(here + 1, len(flits)))
        header = PACKET_HEADER.unpack(int.from_bytes(text, "little"))
        named = here in marked or headers[here]["offset"] == at - here * FLIT_WORDS
        if not (unmarked(here) and named and _sound(header, kind, (total - at) * WORD_BYTES)):
            return packets, True
        marked.add(here)
        size = PACKET_HEADER_BYTES + body_length(header)
        packets.append(Packet(class_, endpoint, words[at * WORD_BYTES : at * WORD_BYTES + size]))
        at += -(-size // WORD_BYTES)


@dataclass
class Units:
    """What a receiver makes of the flits that arrive: whole units, and how many were none."""

    bad: int = 0
    _open: dict[int, list[bytes]] = field(default_factory=dict)
    _dropping: set[int] = field(default_factory=set)

    def arrive(self, flit: bytes) -> list[bytes]:
        """The unit that this flit completes, or nothing."""
        header = header_of(flit)
        queue = 2 * header["class_"] + header["kind"]
        before = self._open.pop(queue, [])
        if header["head"]:
            self.bad += bool(before)
            unit = [flit]
        elif not before:
            self.bad += queue not in self._dropping
            return self._drop(queue, header)
        elif header_of(before[0])["endpoint"] != header["endpoint"]:
            self.bad += 1
            return self._drop(queue, header)
        else:
            unit = [*before, flit]
        if not header["tail"] and len(unit) == UNIT_FLITS_MAX:
            self.bad += 1
            return self._drop(queue, header)
        self._dropping.discard(queue)
        if header["tail"]:
            return unit
        self._open[queue] = unit
        return []

    def _drop(self, queue: int, header: dict[str, int]) -> list[bytes]:
        """Until the tail or the next head."""
        (self._dropping.discard if header["tail"] else self._dropping.add)(queue)
        return []

    def clear(self) -> None:
        """A new session: units that are not complete are none."""
        self.bad += len(self._open)
        self._open.clear()
        self._dropping.clear()


class Turns:
    """The scheduler: `choose` says whose unit may go, `step` that it goes."""

    WINDOW = 64  # flits in which the strict class has its cap

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.deficit = list(cfg.weights[: cfg.classes])
        self.last_kind = [0] * cfg.classes
        self.last_class = cfg.classes - 1
        self.window = 0
        self.spent = 0

    def _asking(self, eligible: int) -> list[int]:
        return [c for c in range(self.cfg.classes) if eligible >> (2 * c) & 3]

    def _others(self, eligible: int) -> list[int]:
        return [c for c in self._asking(eligible) if c != self.cfg.strict_class]

    def _strict(self, eligible: int) -> bool:
        """The strict class goes now."""
        asks = self.cfg.strict_class in self._asking(eligible)
        return asks and (self.spent < self.cfg.strict_cap or not self._others(eligible))

    def rounds(self, class_: int) -> int:
        """How often its deficit must be raised by its weight until it is above 0."""
        return max(0, -(-(1 - self.deficit[class_]) // self.cfg.weights[class_]))

    def choose(self, eligible: int) -> int | None:
        """The queue to serve; None if nothing can go."""
        n = self.cfg.classes
        if self._strict(eligible):
            class_ = self.cfg.strict_class
        else:
            others = self._others(eligible)
            if not others:
                return None
            least = min(map(self.rounds, others))
            may = [c for c in others if self.rounds(c) == least]
            class_ = min(may, key=lambda c: (c - self.last_class - 1) % n)
        pair = eligible >> (2 * class_) & 3
        kind = 1 - self.last_kind[class_] if pair == 3 else pair >> 1
        return 2 * class_ + kind

    def step(self, eligible: int, taken: int = 0) -> None:
        """A cycle in which the queue chosen sends `taken` flits, 0 if it does not."""
        queue = self.choose(eligible)
        strict = self._strict(eligible)
        others = self._others(eligible)
        if queue is None or not taken:
            return
        class_, self.last_kind[queue // 2] = queue // 2, queue % 2
        if not strict:
            weights = self.cfg.weights
            if rounds := self.rounds(class_):
                self.deficit = [min(d + rounds * weights[c], weights[c]) for c, d in enumerate(self.deficit)]
            self.deficit[class_] -= taken
            self.last_class = class_
        elif others:
            self.spent += taken
        self.window += taken
        if self.window >= self.WINDOW:
            self.window -= self.WINDOW
            self.spent = max(self.spent - self.cfg.strict_cap, 0)
