"""Two ports on RTL with everything between them in a check's hands."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rtl.contract.link import PACKET_HEADER, PAYLOAD_OPCODES, RESPONSE_OPCODES, PacketFlag, PacketOpcode
from rtl.contract.link_config import LinkConfig
from sim.link import PortDevice

__all__ = ["SMALL", "Channel", "Pair", "packet", "restarts", "saturate", "traffic"]

SMALL = LinkConfig(name="narrow_window", window_flits=15, sequence_numbers=32)
"""A window that is full, and numbers that wrap, all the time."""

Channel = Callable[[int, int, bytes], bytes | None]
"""(flit time, sending end, flit) to what the other end receives."""


def packet(opcode: PacketOpcode, number: int, *, source: int = 0, payload: int = 0, signal: bool = False) -> bytes:
    """A packet whose bytes follow from its number."""
    header = PACKET_HEADER.pack(
        opcode=opcode,
        flags=PacketFlag.SIGNAL if signal else 0,
        length_bytes=payload,
        tag=number % 1024,
        source=source,
        address=number,
    )
    body = random.Random(number).randbytes((payload if opcode in PAYLOAD_OPCODES else 0) + (8 if signal else 0))
    return header.to_bytes(16, "little") + body


@dataclass(repr=False)
class Pair:
    """Two devices, a channel of `delay` flit times each way, and what each end has sent and taken by (class, kind)."""

    ends: tuple[PortDevice, PortDevice]
    delay: int = 3
    channel: Channel = lambda time, end, flit: flit
    time: int = 0
    wires: list[deque[bytes | None]] = field(default_factory=list)
    sent: list[dict[tuple[int, int], list[bytes]]] = field(default_factory=lambda: [{}, {}])
    got: list[dict[tuple[int, int], list[bytes]]] = field(default_factory=lambda: [{}, {}])

    def __post_init__(self) -> None:
        self.wires = [deque([None] * self.delay) for _ in self.ends]

    def run(self, times: int) -> None:
        for _ in range(times):
            arrived = [self.wires[1].popleft(), self.wires[0].popleft()]
            for n, end in enumerate(self.ends):
                self.wires[n].append(self.channel(self.time, n, end.step(arrived[n])))
                for cls, p in end.take():
                    self.got[n].setdefault((cls, _kind(p)), []).append(p)
            self.time += 1

    def send(self, end: int, cls: int, p: bytes) -> bool:
        if not self.ends[end].send(cls, p):
            return False
        self.sent[end].setdefault((cls, _kind(p)), []).append(p)
        return True

    def up(self) -> None:
        for _ in range(100):
            if all(end.status()["up"] for end in self.ends):
                return
            self.run(20)
        raise AssertionError([end.status() for end in self.ends])

    def whole(self) -> bool:
        return self.got[0] == self.sent[1] and self.got[1] == self.sent[0]

    def drain(self, times: int = 4000) -> None:
        for _ in range(times // 20):
            self.run(20)
            if self.whole():
                return


def _kind(p: bytes) -> int:
    return int(p[0] & 15 in RESPONSE_OPCODES)


def traffic(pair: Pair, seed: int, times: int, classes: int = 8) -> None:
    """Packets of every kind at random, as fast as they are taken."""
    rng = random.Random(seed)
    for _ in range(times):
        for end in (0, 1):
            for _ in range(rng.randrange(4)):
                opcode = rng.choice([o for o in PacketOpcode if o != PacketOpcode.END])
                size = rng.choice([0, 1, 3, 4, 15, 16, 60, 64, 216, 217, 512, rng.randrange(513)])
                p = packet(opcode, rng.randrange(1, 1 << 30), payload=size, signal=rng.random() < 0.3)
                pair.send(end, rng.randrange(classes), p)
        pair.run(1)


def saturate(pair: Pair, times: int, payload: int, opcode: PacketOpcode = PacketOpcode.WRITE) -> None:
    """Packets of one kind and size in class 0, both ways, as fast as they are taken."""
    for _ in range(times):
        for end in (0, 1):
            while pair.send(end, 0, packet(opcode, pair.time * 64 + end, payload=payload)):
                pass
        pair.run(1)


def restarts(pair: Pair, payload: int) -> None:
    """What is sent before a restart and does not arrive is covered by flits reported as unresolved."""
    words = 4 + payload // 4
    reported = [end.status()["unresolved"] for end in pair.ends]
    missing = [sum(map(len, s.values())) - sum(map(len, g.values())) for s, g in zip(pair.sent, pair.got[::-1])]
    for k in range(8):
        pair.up()
        saturate(pair, 90 + 7 * k, payload)
        pair.ends[k % 2].restart()
        saturate(pair, 30, payload)
    pair.up()
    pair.drain(600)
    for end in (0, 1):
        for queue, sent in pair.sent[end].items():
            left = iter(sent)
            got = pair.got[1 - end].get(queue, [])
            assert all(p in left for p in got), f"end {end}, queue {queue}: out of order, twice or altered"
        lost = sum(map(len, pair.sent[end].values())) - sum(map(len, pair.got[1 - end].values())) - missing[end]
        flits = pair.ends[end].status()["unresolved"] - reported[end]
        assert 0 < flits and lost * words <= 58 * flits, f"end {end}: {lost} packets, {flits} flits unresolved"
