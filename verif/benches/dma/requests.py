"""Random requests to a core: legal ones whose effect does not depend on the order of classes, and bad ones."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address, core_id
from verif.golden.endpoint import Packet, Peer

__all__ = ["CORE", "Requests"]

CORE = core_id(server=2, chip=1, core=5)
"""Its number is another in each of fabric_config.ENDPOINT_MAPS but plain, where it is its low bits."""
_CLASSES = 8
_HBM_WINDOW = 1 << 16
_LENGTHS = (1, 8, 16, 56, 57, 60, 63, 64, 65, 448, 505, 511, 512)
_SIGNAL_LENGTHS = (57, 58, 60, 63, 121, 505, 511)


class Requests:
    """Every class has a part of HBM and of each partition; in an epoch a byte is written once. Additions have
    words of their own, which they share, and so have half of the writes that add. `number`: what packets call the core.
    """

    def __init__(self, cfg: Config, rng: np.random.Generator, number: int):
        self.cfg = cfg
        self.endpoint = number
        self.rng = rng
        self.number = 0
        self.tag = 0
        self.share = cfg.sbuf.partition_bytes // _CLASSES
        self.epoch()

    def epoch(self) -> None:
        """All that was sent has been done: every byte may be written again."""
        self.writes: list[list[tuple[int, bytes]]] = [[] for _ in range(_CLASSES)]
        self.hbm_next = [0] * _CLASSES
        self.sbuf_next = [[64] * self.cfg.partitions for _ in range(_CLASSES)]

    def before(self, class_: int) -> list[tuple[int, bytes]]:
        """Writes of the class so far in this epoch, which a signal announces."""
        return list(self.writes[class_])

    def done(self, class_: int, packet: Packet, golden: Peer) -> None:
        """`packet` was admitted, and has been done by `golden`."""
        at = packet.header["address"]
        byte = (at & (1 << 40) - 1) % PARTITION_STRIDE_BYTES
        shared = packet.add and byte - class_ * self.share < 64
        if packet.header["opcode"] == PacketOpcode.WRITE and not shared:
            self.writes[class_].append((at, golden.window(at, len(packet.payload)).tobytes()))

    def _room(self, class_: int, length: int, element: int = 1) -> int:
        """An address that this epoch has not written; in SBUF, if it has to be a multiple of an element."""
        if element > 1 or self.rng.integers(2):
            p = int(self.rng.integers(self.cfg.partitions))
            at = self.sbuf_next[class_][p] + int(self.rng.integers(20))
            at = -(-at // element) * element
            if at + length <= self.share:
                self.sbuf_next[class_][p] = at + length
                return address(Space.SBUF, p * PARTITION_STRIDE_BYTES + class_ * self.share + at, core_id=CORE)
        at = self.hbm_next[class_] + int(self.rng.integers(40))
        self.hbm_next[class_] = at + length
        return address(Space.HBM, (1 + class_) * _HBM_WINDOW + at, core_id=CORE)

    def _words(self, class_: int, length: int) -> int:
        """An address for additions, at the start of a part of SBUF or at the end of one of HBM."""
        if self.rng.integers(2) and length <= 64:
            at = 4 * int(self.rng.integers((64 - length) // 4 + 1))
            p = int(self.rng.integers(2))
            return address(Space.SBUF, p * PARTITION_STRIDE_BYTES + class_ * self.share + at, core_id=CORE)
        at = _HBM_WINDOW // 2 + 4 * int(self.rng.integers(16))
        return address(Space.HBM, (1 + class_) * _HBM_WINDOW + at, core_id=CORE)

    def _signal(self) -> dict[str, int]:
        self.number += 1
        index = int(self.rng.integers(self.cfg.issue.semaphores))
        return {"index": index, "update": int(self.rng.integers(1, 3)), "value": self.number}

    def _legal(self, class_: int, coverage: Any) -> Packet:
        rng = self.rng
        self.tag = (self.tag + 1) % 1024
        opcode = PacketOpcode(int(rng.choice(5, p=[0.45, 0.12, 0.2, 0.1, 0.13])))
        header = {"opcode": int(opcode), "tag": self.tag, "source": int(rng.integers(1 << 12))}
        signal = None
        if opcode == PacketOpcode.SIGNAL:
            signal = self._signal()
            coverage.hit("SIGNAL")
            coverage.when(any(a >> 40 & 15 == Space.HBM for a, _ in self.writes[class_]), "signal waits for HBM")
            header["address"] = address(Space.SEMAPHORES, 4 * signal["index"], core_id=CORE)
            return Packet({**header, "length_bytes": 0}, b"", signal)
        length = int(rng.choice(_LENGTHS) if rng.integers(2) else rng.integers(1, 513))
        if opcode in (PacketOpcode.WRITE, PacketOpcode.ADD) and rng.random() < 0.4:
            signal = self._signal()
            coverage.hit("signal with its write")
            if rng.random() < 0.4:
                length = int(rng.choice(_SIGNAL_LENGTHS))
            coverage.when(length % 64 > 56 and opcode == PacketOpcode.WRITE, "signal across two beats")
        coverage.when(length == 512, "longest packet")
        if opcode == PacketOpcode.ADD:
            length = 4 * -(-length // 4) if rng.integers(2) else 4 * int(rng.integers(1, 17))
            at = self._words(class_, length)
        elif opcode == PacketOpcode.FETCH_ADD:
            length = 4 * int(rng.integers(1, 3))
            at = self._words(class_, length)
        elif opcode == PacketOpcode.READ and self.writes[class_] and rng.random() < 0.8:
            at, data = self.writes[class_][-1 - int(rng.integers(min(3, len(self.writes[class_]))))]
            skip = int(rng.integers(len(data)))
            at, length = at + skip, int(rng.integers(1, len(data) - skip + 1))
            coverage.hit("read of what was just written")
        elif opcode == PacketOpcode.WRITE and rng.random() < 0.4:
            return self._adding(class_, header, length, signal, coverage)
        else:
            at = self._room(class_, length)
        coverage.hit(f"{opcode.name} {Space(at >> 40 & 15).name}")
        carries = opcode != PacketOpcode.READ
        return Packet({**header, "address": at, "length_bytes": length}, rng.bytes(length) if carries else b"", signal)

    def _adding(
        self, class_: int, header: dict[str, int], length: int, signal: dict[str, int] | None, coverage: Any
    ) -> Packet:
        """A write that adds."""
        add = DmaAdd(int(self.rng.integers(1, len(DmaAdd))))
        size = 2 if add == DmaAdd.BF16 else 4
        length = max(size, length - length % size)
        at = self._room(class_, length, size)
        if self.rng.integers(2) or at >> 40 & 15 == Space.HBM:
            length = 4 * int(self.rng.integers(1, 17))
            offset = 4 * int(self.rng.integers((64 - length) // 4 + 1))
            p = int(self.rng.integers(2))
            at = address(Space.SBUF, p * PARTITION_STRIDE_BYTES + class_ * self.share + offset, core_id=CORE)
        coverage.hit(f"WRITE adds {add.name}")
        fields = {**header, "address": at, "length_bytes": length, "flags": int(add) << 1}
        return Packet(fields, self.rng.bytes(length), signal)

    def _bad(self, packet: Packet) -> tuple[Packet, int]:
        """One thing wrong with it; beats to leave out."""
        rng, cfg = self.rng, self.cfg
        h = dict(packet.header)
        semaphores = cfg.issue.semaphores
        capacity = cfg.hbm.capacity_mib << 20
        opcode = h["opcode"]
        if packet.signal is not None and rng.integers(2):
            signals = ({"index": semaphores + 1}, {"update": 0}, {"update": 3}, {"reserved": 1})
            wrong = signals[int(rng.integers(len(signals)))]
            if wrong.get("index", 0) < 1 << 12:
                return Packet(h, packet.payload, {**packet.signal, **wrong}), 0
        if rng.random() < 0.25:
            return self._bad_flags(packet), 0
        if opcode == PacketOpcode.SIGNAL:
            return Packet({**h, "address": address(Space.HBM, 0, core_id=CORE)}, b"", packet.signal), 0
        if opcode != PacketOpcode.READ and rng.random() < 0.2:
            return packet, 1
        length = h["length_bytes"]
        places = [
            address(Space(int(rng.integers(2, 6))), 64, core_id=CORE),
            address(Space.HBM, capacity - length + 4, core_id=CORE),
            address(Space.HBM, (1 << 40) - 4, core_id=CORE),
            address(Space.SBUF, cfg.partitions * PARTITION_STRIDE_BYTES, core_id=CORE),
            address(Space.SBUF, cfg.sbuf.partition_bytes - length + 4, core_id=CORE),
            address(Space.HBM, 64, core_id=CORE ^ 1 << int(rng.integers(18))),
            h["address"] | 1 << 62,
        ]
        if opcode in (PacketOpcode.ADD, PacketOpcode.FETCH_ADD):
            places.append(h["address"] + 2)
        if opcode == PacketOpcode.FETCH_ADD and rng.integers(3) == 0:
            return Packet({**h, "length_bytes": 12}, rng.bytes(12)), 0
        if opcode == PacketOpcode.READ and rng.integers(3) == 0:
            return Packet({**h, "length_bytes": int(rng.choice((0, 513, 1000)))}), 0
        return Packet({**h, "address": places[int(rng.integers(len(places)))]}, packet.payload, packet.signal), 0

    def _bad_flags(self, packet: Packet) -> Packet:
        """A sum that is none, or a reserved flag."""
        rng = self.rng
        h = dict(packet.header)
        if h["opcode"] != PacketOpcode.WRITE or rng.integers(4) == 0:
            return Packet({**h, "flags": int(rng.choice([2, 4, 6, 8]))}, packet.payload, packet.signal)
        h["flags"] = 2 * int(rng.integers(1, 4))
        if rng.integers(4) == 0:
            return Packet({**h, "address": address(Space.HBM, 64, core_id=CORE)}, packet.payload, packet.signal)
        # one bit of its address or length, else aligned
        wrong = 1 if h["flags"] >> 1 == DmaAdd.BF16 else int(rng.integers(1, 3))
        h |= {"address": address(Space.SBUF, 64, core_id=CORE), "length_bytes": 64}
        h["address" if rng.integers(2) else "length_bytes"] += wrong
        return Packet(h, rng.bytes(h["length_bytes"]), packet.signal)

    def batch(self, count: int, coverage: Any) -> Iterator[tuple[int, Packet, int, int]]:
        """(class, packet, beats left out, endpoint), one by one: `done` is told of each before the next is made."""
        few = [int(c) for c in self.rng.integers(_CLASSES, size=int(self.rng.integers(1, 5)))]
        for _ in range(count):
            class_ = int(self.rng.choice(few))
            packet = self._legal(class_, coverage)
            cut, endpoint = 0, self.endpoint
            wrong = self.rng.random()
            if wrong < 0.1:
                packet, cut = self._bad(packet)
            elif wrong < 0.13:
                endpoint ^= 1 << int(self.rng.integers(12))
                coverage.hit("another endpoint")
            yield class_, packet, cut, endpoint
