"""Packets for the benches of the port: made at random, cut into beats, put together again."""

import numpy as np

from rtl.contract.link import (
    PACKET_HEADER,
    PACKET_HEADER_BYTES,
    PAYLOAD_OPCODES,
    RESPONSE_OPCODES,
    PacketFlag,
    PacketOpcode,
)
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from verif.agents.opened import opened
from verif.golden.framing import Packet, body_length

__all__ = ["OPCODES", "Assembler", "beats_of", "dma_beats_of", "make_packet", "random_packet"]

OPCODES = tuple(o for o in PacketOpcode if o != PacketOpcode.END)


def make_packet(
    rng: np.random.Generator, opcode: int, length: int, signal: bool = False, class_: int = 0, endpoint: int = 1
) -> Packet:
    """A packet of random contents."""
    fields = {
        "opcode": opcode,
        "flags": int(PacketFlag.SIGNAL) if signal else 0,
        "length_bytes": length,
        "tag": int(rng.integers(1 << 10)),
        "source": int(rng.integers(1, 1 << 12)),  # not 0: a header of zeros would be no packet
        "address": int(rng.integers(1 << 63)),
        "reserved": int(rng.integers(1 << 24)),
    }
    body = rng.integers(0, 256, body_length(fields), dtype=np.uint8).tobytes()
    return Packet(class_, endpoint, PACKET_HEADER.pack(fields).to_bytes(PACKET_HEADER_BYTES, "little") + body)


def random_packet(rng: np.random.Generator, classes: int, endpoints: int = 2, kind: int | None = None) -> Packet:
    """Any opcode, class, endpoint and length; often short, now and then of the longest lengths."""
    opcodes = [o for o in OPCODES if kind is None or (o in RESPONSE_OPCODES) == bool(kind)]
    opcode = int(rng.choice([int(o) for o in opcodes for _ in range(3 if o in PAYLOAD_OPCODES else 1)]))
    length = int(rng.choice([rng.integers(513), rng.integers(80), rng.integers(500, 513), 64 * rng.integers(9)]))
    signal = bool(rng.integers(4) == 0) or opcode == PacketOpcode.SIGNAL
    class_ = int(rng.integers(classes))
    return make_packet(rng, opcode, length, signal, class_, 1 + int(rng.integers(endpoints)))


def _beats(packet: Packet, parts: list[bytes], size: int, rng: np.random.Generator | None) -> list[int]:
    """Beats of `size` bytes of data with these parts in them."""
    words = []
    for n, part in enumerate(parts):
        rest = bytes(size - len(part)) if rng is None else rng.bytes(size - len(part))
        word = int.from_bytes(part + rest, "little")
        for bits, value in ((12, packet.endpoint), (3, packet.class_), (1, n == len(parts) - 1), (1, n == 0)):
            word = word << bits | int(value)
        words.append(word)
    return words


def beats_of(packet: Packet, cfg: LinkConfig, rng: np.random.Generator | None = None) -> list[int]:
    """Its beats as packet_layout; with `rng` what stands behind the end in a beat is random, else 0."""
    size = cfg.beat_bytes
    return _beats(packet, [packet.data[at : at + size] for at in range(0, len(packet.data), size)], size, rng)


def dma_beats_of(packet: Packet, rng: np.random.Generator | None = None) -> list[int]:
    """Its beats as PACKET_BEAT: the header alone, then 64 bytes a beat."""
    header, body = packet.data[:PACKET_HEADER_BYTES], packet.data[PACKET_HEADER_BYTES:]
    beats = _beats(packet, [header], 64, None)  # behind a header stand zeros
    if not body:
        return beats
    rest = _beats(packet, [body[at : at + 64] for at in range(0, len(body), 64)], 64, rng)
    return [beats[0] & ~2, rest[0] & ~1, *rest[1:]]


class Assembler:
    """Beats of a stream -> `packets`; AssertionError for beats that make none."""

    def __init__(self, cfg: LinkConfig) -> None:
        self.opened = opened(packet_layout(cfg))
        self.size = cfg.beat_bytes
        self.packets: list[Packet] = []
        self._data = b""
        self._left = -1  # bytes of the packet under way, -1 between packets

    def beat(self, word: int) -> None:
        """The next beat."""
        beat = self.opened(word)
        data = int(beat.data).to_bytes(self.size, "little")
        assert bool(beat.first) == (self._left < 0), "first stands at the wrong beat"
        if beat.first:
            header = PACKET_HEADER.unpack(int.from_bytes(data[:PACKET_HEADER_BYTES], "little"))
            self._left = PACKET_HEADER_BYTES + body_length(header)
            self._data = b""
        now = min(self._left, self.size)
        self._data += data[:now]
        self._left -= now
        assert not any(data[now:]), "bytes behind the end of a packet are not 0"
        assert bool(beat.last) == (self._left == 0), "last stands at the wrong beat"
        if beat.last:
            self.packets.append(Packet(int(beat.class_), int(beat.endpoint), self._data))
            self._left = -1
