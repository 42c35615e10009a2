"""Units for the benches of a switch: flits with packets of every kind in them, sound or not."""

from dataclasses import dataclass, field

import numpy as np

from rtl.contract.link import (
    FLIT_BYTES,
    FLIT_HEADER,
    FLIT_HEADER_BYTES,
    FLIT_PAYLOAD_BYTES,
    PACKET_BYTES_MAX,
    UNIT_FLITS_MAX,
    PacketOpcode,
)
from verif.benches.link.packets import make_packet

__all__ = ["FILLS", "MALFORMED", "SentUnit", "malformed", "parity_of", "random_unit", "unit_of"]

_BODY = FLIT_PAYLOAD_BYTES - FLIT_HEADER_BYTES
_ASKING = (PacketOpcode.READ, PacketOpcode.FETCH_ADD)
_TELLING = (PacketOpcode.WRITE, PacketOpcode.ADD, PacketOpcode.SIGNAL)

FILLS = ("no read", "read at the end", "read cut short", "read behind END", "read behind zeros", "read behind nonsense")
"""What `random_unit` can put into a unit."""
MALFORMED = ("no head", "no tail", "head in the middle", "5 flits and more", "two endpoints")
"""What `malformed` can do to a unit."""


def parity_of(text: bytes) -> int:
    """The bit of each byte that travels with it inside a switch: 1 if the byte has an odd number of ones."""
    return sum((b.bit_count() & 1) << n for n, b in enumerate(text))


@dataclass(eq=False, slots=True)
class SentUnit:
    """A unit on its way through a crossbar: `sent` of its flits have begun; `ours`: for the unit under test."""

    flits: list[bytes]
    ours: bool = False
    sent: int = 0
    wrong: dict[int, int] = field(default_factory=dict)  # by flit: the byte of it that is not as its parity says

    @property
    def sound(self) -> bool:
        """All bytes of its payload are."""
        return all(byte >= FLIT_PAYLOAD_BYTES for byte in self.wrong.values())


def _packet(rng: np.random.Generator, opcode: int, longest: int) -> bytes:
    """A packet, filled up to a whole word."""
    length = int(rng.integers(longest + 1)) if rng.integers(4) else int(rng.integers(min(longest, 24) + 1))
    text = make_packet(rng, opcode, length, bool(rng.integers(3) == 0) or opcode == PacketOpcode.SIGNAL).data
    return text + bytes(-len(text) % 4)


def unit_of(rng: np.random.Generator, words: bytes, fields: dict[str, int], flits: int) -> list[bytes]:
    """The flits that carry `words`, filled with zeros; what stands in DLP and codes is random."""
    out = []
    for n in range(flits):
        header = FLIT_HEADER.pack(
            fields
            | {"head": int(n == 0), "tail": int(n == flits - 1), "dedicated": int(rng.integers(2))}
            | {"vc": fields["class_"], "offset": int(rng.integers(64))}
        )
        body = words[n * _BODY : (n + 1) * _BODY].ljust(_BODY, b"\0")
        flit = header.to_bytes(FLIT_HEADER_BYTES, "little") + body
        out.append(flit + rng.bytes(FLIT_BYTES - len(flit)))
    return out


def random_unit(rng: np.random.Generator, fields: dict[str, int], fill: str, flits: int = 0) -> list[bytes]:
    """A unit with fields endpoint, class_ and kind, of a kind of FILLS, of so many flits (0: any number)."""
    flits = flits or int(rng.integers(1, UNIT_FLITS_MAX + 1))
    room = flits * _BODY
    if fields["kind"]:
        text = b"".join(_packet(rng, PacketOpcode.READ_RESPONSE, 200) for _ in range(4))
        return unit_of(rng, text[:room], fields, flits)
    asks = int(rng.choice(_ASKING))
    last = make_packet(rng, asks, int(rng.integers(9)), bool(rng.integers(2))).data
    last += bytes(-len(last) % 4)
    room -= len(last)
    words = b""
    while True:  # whole packets, some of them long
        left = room - len(words) - 24
        if left < 0 or (rng.integers(8) == 0 and flits == 1):
            break
        words += _packet(rng, int(rng.choice(_TELLING)), min(left, PACKET_BYTES_MAX))
    if fill == "read at the end":
        return unit_of(rng, words + last, fields, flits)
    if fill == "read cut short":  # fewer words than it needs are left
        stuffing = b""
        while room + len(last) - len(words) - len(stuffing) >= len(last):
            need = room + 4 - len(words) - len(stuffing)
            stuffing += make_packet(rng, PacketOpcode.WRITE, max(0, min(need - 16, PACKET_BYTES_MAX))).data
            stuffing += bytes(-len(stuffing) % 4)
        return unit_of(rng, (words + stuffing + last)[: flits * _BODY], fields, flits)
    behind = {
        "no read": b"",
        "read behind END": bytes([PacketOpcode.END, 0, 0, 0]),
        "read behind zeros": bytes(16),
        "read behind nonsense": bytes([int(rng.integers(5, 15)), 0, 0, 0]) + rng.bytes(12),
    }[fill]
    if fill == "no read":
        return unit_of(rng, words, fields, flits)
    # the packets make room for what stands between them and the read
    words = b"" if len(words) + len(behind) + len(last) > flits * _BODY else words
    if not words and flits > 1:
        words = _packet(rng, PacketOpcode.WRITE, 100)
    return unit_of(rng, words + behind + last, fields, flits)


def _header(flit: bytes, **fields: int) -> bytes:
    old = FLIT_HEADER.unpack(int.from_bytes(flit[:FLIT_HEADER_BYTES], "little"))
    return FLIT_HEADER.pack(old | fields).to_bytes(FLIT_HEADER_BYTES, "little") + flit[FLIT_HEADER_BYTES:]


def malformed(rng: np.random.Generator, flits: list[bytes], how: str) -> list[bytes]:
    """The flits of a unit after what `how` of MALFORMED does to them."""
    first = flits[0]
    middle = _header(flits[-1], head=0, tail=0)
    if how == "no head":
        return [_header(first, head=0), *flits[1:]]
    if how == "no tail":
        return [*flits[:-1], _header(flits[-1], tail=0)]
    if how == "head in the middle":
        return [_header(first, tail=0), _header(flits[-1], head=1, tail=1)]
    if how == "two endpoints":
        other = FLIT_HEADER.unpack(int.from_bytes(first[:FLIT_HEADER_BYTES], "little"))["endpoint"] ^ 1
        return [
            _header(first, tail=0),
            *[_header(middle, endpoint=other)] * int(rng.integers(2)),
            _header(flits[-1], head=0, tail=1, endpoint=other),
        ]
    more = int(rng.integers(UNIT_FLITS_MAX - 1, UNIT_FLITS_MAX + 4))
    return [_header(first, tail=0), *[middle] * more, _header(middle, tail=int(rng.integers(2)))]
