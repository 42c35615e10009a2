"""PortDevice: two ports on RTL with everything between them in a test's hands."""

import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from rtl.contract.link import PACKET_HEADER, PacketFlag, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.port.link_layer import LinkLayer
from sim.errors import PlexusError
from sim.link import PortDevice

SMALL = LinkConfig(name="narrow_window", window_flits=15, sequence_numbers=32)
"""A window that is full, and numbers that wrap, all the time."""

Channel = Callable[[int, int, bytes], bytes | None]
"""(flit time, sending end, flit) to what the other end receives."""


def packet(opcode: PacketOpcode, number: int, *, source: int = 0, payload: int = 0, signal: bool = False) -> bytes:
    """A packet whose bytes follow from its number."""
    carries = opcode in (PacketOpcode.WRITE, PacketOpcode.ADD, PacketOpcode.FETCH_ADD, PacketOpcode.READ_RESPONSE)
    header = PACKET_HEADER.pack(
        opcode=opcode,
        flags=PacketFlag.SIGNAL if signal else 0,
        length_bytes=payload,
        tag=number % 1024,
        source=source,
        address=number,
    )
    body = random.Random(number).randbytes((payload if carries else 0) + (8 if signal else 0))
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
    return int(p[0] & 15 in (PacketOpcode.READ_RESPONSE, PacketOpcode.ERROR_RESPONSE))


@pytest.fixture
def pair() -> Iterator[Pair]:
    with PortDevice("x8", seed=1) as a, PortDevice("x8", seed=2) as b:
        yield Pair((a, b))


@contextmanager
def planted_pair(fault: int) -> Iterator[Pair]:
    with PortDevice(SMALL, seed=1, plant=fault) as a, PortDevice(SMALL, seed=2, plant=fault) as b:
        yield Pair((a, b))


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


def test_packets_of_every_kind(pair: Pair) -> None:
    pair.up()
    traffic(pair, 1, 600)
    pair.drain()
    assert pair.whole()
    assert sum(map(len, pair.got[0].values())) > 300
    for end in pair.ends:
        status = end.status()
        quiet = ("malformed", "replay", "bad_packet", "bad_unit", "unresolved", "retrained", "corrected", "down")
        assert all(status[k] == 0 for k in quiet), status
        assert status["refused"] == pair.delay  # nothing was on the wires yet


@pytest.mark.parametrize("rate", [1e-2, 1e-1])
def test_refused_flits(pair: Pair, rate: float) -> None:
    rng = random.Random(7)
    pair.channel = lambda time, end, flit: None if rng.random() < rate else flit
    pair.up()
    traffic(pair, 2, 800)
    pair.drain()
    assert pair.whole()
    assert all(end.status()["replay"] > 0 and end.status()["spurious"] == 0 for end in pair.ends)


def test_damaged_bytes_are_corrected(pair: Pair) -> None:
    rng = random.Random(5)

    def burst(time: int, end: int, flit: bytes) -> bytes:
        damaged = bytearray(flit)
        first = rng.randrange(240)
        for k in range(rng.randrange(1, 3) if first % 8 < 8 else 1):
            damaged[first + 8 * k if first + 8 * k < 256 else first] ^= rng.randrange(1, 256)
        return bytes(damaged)

    pair.channel = burst
    pair.up()
    traffic(pair, 3, 300)
    pair.drain()
    assert pair.whole()
    assert all(end.status()["refused"] == 3 and end.status()["corrected"] > 300 for end in pair.ends)


def saturate(pair: Pair, times: int, payload: int) -> None:
    """Writes of one size in class 0, both ways, as fast as they are taken."""
    for _ in range(times):
        for end in (0, 1):
            while pair.send(end, 0, packet(PacketOpcode.WRITE, pair.time * 64 + end, payload=payload)):
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


@pytest.mark.parametrize("payload", [8, 400, 512])
def test_one_end_restarts(pair: Pair, payload: int) -> None:
    restarts(pair, payload)


def abuse(pair: Pair) -> None:
    """Bursts, refused flits, an outage longer than the window; then repeats; then restarts: all must come through."""
    rng = random.Random(3)
    outages = range(400, 455), range(700, 755)

    def damage(time: int, end: int, flit: bytes) -> bytes | None:
        if rng.random() < 0.02 or any(time in outage for outage in outages):
            return None
        damaged = bytearray(flit)
        at = rng.randrange(232)
        for k in range(rng.randrange(4)):
            damaged[at + 8 * k] ^= rng.randrange(1, 256)
        return bytes(damaged)

    old: list[deque[bytes]] = [deque(maxlen=4), deque(maxlen=4)]  # not older: numbers wrap at 32

    def repeat(time: int, end: int, flit: bytes) -> bytes:
        old[end].append(flit)
        return rng.choice(old[end]) if rng.random() < 0.05 else flit

    pair.channel = damage
    pair.up()
    traffic(pair, 4, 250)
    saturate(pair, 600, 400)
    pair.drain(1200)
    assert pair.whole()
    status = [end.status() for end in pair.ends]
    assert all(s["spurious"] == s["credit_overrun"] == s["retrained"] == 0 for s in status), status
    assert all(s["refused"] < 220 and s["up"] for s in status), status
    pair.channel = repeat
    traffic(pair, 5, 600)
    pair.drain(1200)
    assert pair.whole()
    pair.channel = lambda time, end, flit: flit
    for payload in (400, 512):
        restarts(pair, payload)


def test_abuse() -> None:
    """The same as for planted faults, with none."""
    with planted_pair(0) as pair:
        abuse(pair)


@pytest.mark.parametrize("fault", sorted(LinkLayer.FAULTS))
def test_planted_faults_are_noticed(fault: int) -> None:
    with planted_pair(fault) as pair, pytest.raises(AssertionError):
        abuse(pair)


def test_nothing_is_lost_when_the_link_goes_down_suddenly(pair: Pair) -> None:
    """An outage of any length keeps the sessions, so replay covers it."""
    pair.up()
    for outage in (1, 40, 300, 1700):
        traffic(pair, outage, 50)
        from_, to = pair.time, pair.time + outage
        pair.channel = lambda time, end, flit, a=from_, b=to: None if a <= time < b else flit
        traffic(pair, outage + 1, outage + 50)
    pair.drain(20_000)
    assert pair.whole(), [end.status() for end in pair.ends]


def test_a_slow_receiver_holds_requests_and_lets_responses_pass(pair: Pair) -> None:
    pair.up()
    pair.ends[1].hold(requests=True)
    for n in range(2000):
        pair.send(0, 0, packet(PacketOpcode.WRITE, n, payload=512))
        if n % 16 == 0:
            pair.send(0, 0, packet(PacketOpcode.READ_RESPONSE, n, payload=64))
        pair.run(1)
    assert (0, 0) not in pair.got[1]
    assert pair.got[1][0, 1] == pair.sent[0][0, 1][: len(pair.got[1][0, 1])] and len(pair.got[1][0, 1]) > 100
    assert pair.ends[0].status()["credit_overrun"] == pair.ends[1].status()["credit_overrun"] == 0
    pair.ends[1].hold()
    pair.drain()
    assert pair.whole()


def test_what_a_caller_gets_wrong_is_said_in_a_sentence(pair: Pair) -> None:
    end = pair.ends[0]
    with pytest.raises(PlexusError, match="a flit has 256 bytes, not 255"):
        end.step(bytes(255))
    with pytest.raises(PlexusError, match="the class must be from 0 to 7, not 8"):
        end.send(8, bytes(16))
    with pytest.raises(PlexusError, match="a packet has 16 to 536 bytes, not 15"):
        end.send(0, bytes(15))
    with pytest.raises(PlexusError, match="the packet's header states 20 bytes with it, not 19"):
        end.send(0, packet(PacketOpcode.ADD, 1, payload=4)[:-1])
    with pytest.raises(PlexusError, match="there is no link 'x3'"):
        PortDevice("x3")
    with pytest.raises(PlexusError, match="a link has no field 'lines'"):
        PortDevice({"lines": 8})


def test_malformed_packets_are_counted_and_not_sent(pair: Pair) -> None:
    pair.up()
    good = packet(PacketOpcode.WRITE, 5, payload=64)
    long = PACKET_HEADER.pack(opcode=PacketOpcode.READ, length_bytes=513).to_bytes(16, "little")
    for bad in (b"\x07" + good[1:], b"\x0e" + bytes(15), b"\x0f" + bytes(15), b"\x22" + bytes(15), long):
        while not pair.ends[0].send(0, bad):
            pair.run(1)
        pair.run(4)
    pair.run(30)
    assert pair.ends[0].status()["bad_packet"] == 5
    assert pair.got[1] == {}
    while not pair.send(0, 0, good):
        pair.run(1)
    pair.drain(200)
    assert pair.got[1] == {(0, 0): [good]}
