"""What a core does with packets of other cores: the rule that admits them, and what they do and answer.

Packets are a header (fields of rtl.contract.link.PACKET_HEADER), its payload and its signal. Requests are executed in
the order of `execute`: an endpoint that keeps the order of its classes cannot be told from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Update
from rtl.contract.link import PACKET_BYTES_MAX, PACKET_HEADER, SIGNAL, PacketFlag, PacketOpcode
from rtl.contract.memmap import ADDRESS, PARTITION_STRIDE_BYTES, CoreId, Space, core_place
from verif.golden.dma import added

__all__ = ["BEAT_BYTES", "Packet", "Peer", "from_beats"]

BEAT_BYTES = 64
_ANSWERED = (PacketOpcode.READ, PacketOpcode.FETCH_ADD)
_CARRY = (PacketOpcode.WRITE, PacketOpcode.ADD, PacketOpcode.FETCH_ADD, PacketOpcode.READ_RESPONSE)


@dataclass(frozen=True)
class Packet:
    """One packet. `signal`: fields of link.SIGNAL, or None."""

    header: Mapping[str, int]
    payload: bytes = b""
    signal: Mapping[str, int] | None = None

    @property
    def add(self) -> DmaAdd:
        """What its flags say of its payload."""
        return DmaAdd(self.header.get("flags", 0) >> 1 & 3)

    @property
    def body(self) -> bytes:
        """What follows the header."""
        return self.payload + (b"" if self.signal is None else SIGNAL.pack(self.signal).to_bytes(8, "little"))

    def beats(self) -> list[int]:
        """The data of its beats of 64 bytes."""
        flags = 0 if self.signal is None else PacketFlag.SIGNAL
        body = self.body
        parts = [body[at : at + BEAT_BYTES] for at in range(0, len(body), BEAT_BYTES)]
        first = PACKET_HEADER.pack({**self.header, "flags": self.header.get("flags", 0) | flags})
        return [first, *(int.from_bytes(part, "little") for part in parts)]


def from_beats(beats: list[int]) -> Packet:
    """The packet of these beats. AssertionError if they are not what its header says."""
    header = PACKET_HEADER.unpack(beats[0])
    size = header["length_bytes"] if header["opcode"] in _CARRY else 0
    flagged = header["flags"] & PacketFlag.SIGNAL
    length = size + (8 if flagged else 0)
    assert len(beats) == 1 + -(-length // BEAT_BYTES), f"{len(beats)} beats for {header}"
    body = b"".join(beat.to_bytes(BEAT_BYTES, "little") for beat in beats[1:])
    assert not any(body[length:]), "bytes behind a packet must be 0"
    signal = SIGNAL.unpack(int.from_bytes(body[size:length], "little")) if flagged else None
    return Packet(header, body[:size], signal)


@dataclass
class Peer:
    """A core as others see it: its memories, the signals it got, in order, and what it refused."""

    cfg: Config
    core_id: int
    hbm: NDArray[np.uint8]
    sbuf: NDArray[np.uint8]
    signals: list[tuple[int, int, int]] = field(default_factory=list)
    refused: list[tuple[int, int]] = field(default_factory=list)
    foreign: int = 0

    @property
    def number(self) -> int | None:
        """What packets call this core; None if they have no number for it, and all are for another."""
        numbers, place = self.cfg.fabric.endpoint_map, core_place(self.core_id)
        return numbers.encode(place) if numbers.has(place) else None

    def elsewhere(self, packet: Packet, endpoint: int | None = None) -> bool:
        """Whether a packet is for another core. `endpoint`: what the header of its flits says, if not this one."""
        there = packet.header["address"] >> CoreId.LSB & (1 << CoreId.BITS) - 1
        return self.number is None or there != self.core_id or endpoint not in (None, self.number)

    def admits(self, packet: Packet) -> bool:
        """Whether a request to this core is executed."""
        header = packet.header
        place = ADDRESS.unpack(header["address"])
        length = header["length_bytes"]
        opcode = header["opcode"]
        if place["zero"] or header.get("flags", 0) & 8:
            return False
        if packet.add != DmaAdd.COPY:
            size = 2 if packet.add == DmaAdd.BF16 else 4
            whole = place["offset"] % size == length % size == 0
            if not self.cfg.sbuf.adders or opcode != PacketOpcode.WRITE or place["space"] != Space.SBUF or not whole:
                return False
        if packet.signal is not None:
            s = packet.signal
            if (
                s["index"] >= self.cfg.issue.semaphores
                or s["update"] not in (Update.ADD, Update.SET)
                or s.get("reserved")
            ):
                return False
        if opcode == PacketOpcode.SIGNAL:
            return packet.signal is not None and length == 0 and place["space"] == Space.SEMAPHORES
        lengths: range | tuple[int, ...] = range(1, PACKET_BYTES_MAX + 1)
        if opcode == PacketOpcode.ADD:
            lengths = range(4, PACKET_BYTES_MAX + 1, 4)
        elif opcode == PacketOpcode.FETCH_ADD:
            lengths = (4, 8)
        elif opcode not in (PacketOpcode.WRITE, PacketOpcode.READ):
            return False
        if opcode == PacketOpcode.READ and packet.signal is not None:
            return False
        if length not in lengths or (opcode in (PacketOpcode.ADD, PacketOpcode.FETCH_ADD) and place["offset"] % 4):
            return False
        if place["space"] == Space.HBM:
            return place["offset"] + length <= self.cfg.hbm.capacity_mib << 20
        partition, byte = divmod(place["offset"], PARTITION_STRIDE_BYTES)
        inside = partition < self.cfg.partitions and byte + length <= self.cfg.sbuf.partition_bytes
        return place["space"] == Space.SBUF and inside

    def window(self, address: int, length: int) -> NDArray[np.uint8]:
        """The bytes at an address, as a view."""
        place = ADDRESS.unpack(address)
        if place["space"] == Space.HBM:
            return self.hbm[place["offset"] : place["offset"] + length]
        partition, byte = divmod(place["offset"], PARTITION_STRIDE_BYTES)
        return self.sbuf[partition, byte : byte + length]

    def refuse(self, packet: Packet, endpoint: int | None = None) -> Packet | None:
        """Count a request that is not executed; the error response, if it asks for an answer."""
        header = packet.header
        self.refused.append((header["address"], header["source"]))
        self.foreign += self.elsewhere(packet, endpoint)
        return self._answer(header, None) if header["opcode"] in _ANSWERED else None

    def execute(self, packet: Packet, endpoint: int | None = None) -> Packet | None:
        """Do what a request asks; its response, if it has one. `endpoint`: see elsewhere."""
        header = packet.header
        opcode, length, address = header["opcode"], header["length_bytes"], header["address"]
        if self.elsewhere(packet, endpoint) or not self.admits(packet):
            return self.refuse(packet, endpoint)
        before = b""
        if opcode != PacketOpcode.SIGNAL:
            here = self.window(address, length)
            before = here.tobytes()
            if opcode == PacketOpcode.WRITE:
                here[:] = added(here, np.frombuffer(packet.payload, np.uint8), packet.add)
            elif opcode != PacketOpcode.READ:
                word = np.dtype("<u8" if opcode == PacketOpcode.FETCH_ADD and length == 8 else "<u4")
                total = np.frombuffer(before, word) + np.frombuffer(packet.payload, word)
                here[:] = np.frombuffer(total.tobytes(), np.uint8)
        if packet.signal is not None:
            s = packet.signal
            self.signals.append((s["index"], s["update"], s["value"]))
        return self._answer(header, before) if opcode in _ANSWERED else None

    def _answer(self, header: Mapping[str, int], data: bytes | None) -> Packet:
        opcode = PacketOpcode.ERROR_RESPONSE if data is None else PacketOpcode.READ_RESPONSE
        fields = {
            "opcode": int(opcode),
            "length_bytes": len(data or b""),
            "tag": header["tag"],
            "source": self.number or 0,
            "address": header["address"],
        }
        return Packet(fields, data or b"")
