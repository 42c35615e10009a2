"""PortDevice: two ports on RTL with everything between them in a test's hands."""

import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from rtl.contract.link import (
    DLP,
    FLIT_HEADER,
    FLIT_INFO_BYTES,
    PACKET_HEADER,
    PAYLOAD_OPCODES,
    PacketFlag,
    PacketOpcode,
    Usage,
)
from sim.errors import PlexusError
from sim.link import PortDevice
from verif.checks.coverage import Coverage
from verif.checks.link_placed import DELAY_FLITS, cells, placed
from verif.checks.port_pair import SMALL, Pair, packet, restarts, saturate, traffic
from verif.golden.flit import encode

KINDS = [o for o in PacketOpcode if o != PacketOpcode.END]
SIZES = ["no payload", "part of a word", "payload of one flit", "payload of several flits", "longest payload"]
DELIVERED = Coverage(
    "port.device",
    [f"{o.name}{' with a signal' * s}" for o in KINDS for s in (0, 1)] + SIZES + [f"class {n}" for n in range(8)],
)


def note(pair: Pair) -> None:
    """What kinds of packets have arrived at either end."""
    for got in pair.got:
        for (class_, _), packets in got.items():
            DELIVERED.hit(f"class {class_}", len(packets))
            for header in (PACKET_HEADER.unpack(int.from_bytes(p[:16], "little")) for p in packets):
                opcode, size = PacketOpcode(header["opcode"]), header["length_bytes"]
                DELIVERED.hit(opcode.name + " with a signal" * bool(header["flags"] & PacketFlag.SIGNAL))
                size = size if opcode in PAYLOAD_OPCODES else 0
                DELIVERED.when(size == 0, SIZES[0])
                DELIVERED.when(size % 4, SIZES[1])
                DELIVERED.when(0 < size <= 200, SIZES[2])
                DELIVERED.when(size > 256, SIZES[3])
                DELIVERED.when(size == 512, SIZES[4])


FAULTS = (
    "the window is one flit too wide",
    "a credit is not returned to the sender",
    "the decoder swaps groups 1 and 2 of the FEC",
    "the epoch is ignored: every gap is a nak",
    "the session of the partner is not compared",
    "a flit that was accepted before is accepted again",
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with PortDevice("x8", seed=1) as a, PortDevice("x8", seed=2) as b:
        yield Pair((a, b))


@contextmanager
def planted_pair(fault: str) -> Iterator[Pair]:
    with PortDevice(SMALL, seed=1, plant=fault) as a, PortDevice(SMALL, seed=2, plant=fault) as b:
        yield Pair((a, b))


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
    note(pair)
    DELIVERED.require_all()


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
    with planted_pair("") as pair:
        abuse(pair)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_noticed(fault: str) -> None:
    with planted_pair(fault) as pair, pytest.raises(AssertionError):
        abuse(pair)


@pytest.mark.parametrize("seed", [1, 7])
def test_an_end_that_is_replaced_is_a_new_session(pair: Pair, seed: int) -> None:
    """Power-up of one end alone: what the other had sent is delivered, or reported."""
    pair.up()
    saturate(pair, 60, 400)
    with PortDevice("x8", seed=seed) as again:
        old = pair.ends[0].status()["session"]
        pair.ends = (again, pair.ends[1])
        pair.run(400)
        pair.up()
        pair.run(400)
        assert again.status()["session"] != old
        missing = sum(map(len, pair.sent[1].values())) - sum(map(len, pair.got[0].values()))
        # beside what is reported, the dead end had a few flits that it had accepted
        assert 0 < missing * 104 <= 58 * (pair.ends[1].status()["unresolved"] + 8), missing
        pair.sent, pair.got = [{}, {}], [{}, {}]
        saturate(pair, 60, 400)
        pair.drain(800)
        sent = pair.sent[0][0, 0]
        assert pair.got[1][0, 0][-len(sent) :] == sent


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


def test_what_makes_no_device_is_said_in_a_sentence() -> None:
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ("x8", {"form": "foo"}, "a codec's form is structural or native, not 'foo'"),
        (None, {}, "a link is a LinkConfig, the name of one or fields of one, not None"),
        (3, {}, "a link is a LinkConfig"),
        ({"name": None}, {}, "there is no link None"),
        ({"lanes": 3}, {}, "link.lanes must be 1, 2, 4, 8 or 16, not 3"),
        ({"lanes": "8"}, {}, "link.lanes must be a whole number, not '8'"),
        ({"weights": 3}, {}, "link.weights must be whole numbers, not 3"),
        ({"shared_flits": 2048}, {}, "link.shared_flits must be from -1 to 2047, not 2048"),
        ("x8", {"seed": "1"}, "the seed must be a whole number of at least 0, not '1'"),
    ]
    for config, options, says in wrong:
        with pytest.raises(PlexusError, match=says):
            PortDevice(config, **options)


def test_a_closed_device_says_so(pair: Pair) -> None:
    end = pair.ends[0]
    end.close()
    end.close()
    good = packet(PacketOpcode.WRITE, 5, payload=64)
    calls: list[Callable[[], object]] = [end.take, end.status, end.restart, end.disable, end.hold]
    for call in (*calls, lambda: end.step(None), lambda: end.send(0, good)):
        with pytest.raises(PlexusError, match="the port is closed"):
            call()


@pytest.mark.parametrize("time", [0, 1, 2, 3, 40, 200])
def test_a_restart_is_one_session(pair: Pair, time: int) -> None:
    pair.run(time)
    end = pair.ends[0]
    before = end.status()
    end.restart()
    pair.run(8)
    after = end.status()
    assert after["session"] == before["session"] + 1 and after["down"] == before["down"] + 1
    pair.up()
    assert end.status()["session"] == after["session"]


def stray_vcs(pair: Pair) -> int:
    """Some payload flits of end 0 come on a VC that is not their class's, and name its account: how many."""
    turned: list[int] = []

    def stray(time: int, end: int, flit: bytes) -> bytes:
        header = FLIT_HEADER.unpack(int.from_bytes(flit[:4], "little"))
        payload = DLP.unpack(int.from_bytes(flit[236:242], "big"))["usage"] == Usage.PAYLOAD
        if end or not payload or not 100 <= pair.time < 140 or time % 8:
            return flit
        turned.append(time)
        header |= {"vc": (header["vc"] + 3) % 8, "dedicated": 1}
        info = FLIT_HEADER.pack(header).to_bytes(4, "little") + flit[4:FLIT_INFO_BYTES]
        return encode(np.frombuffer(info, np.uint8)[None])[0].tobytes()

    pair.up()
    pair.time = 0
    pair.channel = stray
    saturate(pair, 400, 400)
    pair.drain(600)
    return len(turned)


def test_a_flit_on_a_foreign_vc_is_refused_and_moves_no_credit(pair: Pair) -> None:
    turned = stray_vcs(pair)
    status = pair.ends[1].status()
    assert turned > 2 and status["malformed"] == turned, (turned, status)
    assert status["credit_overrun"] == status["down"] == status["bad_unit"] == 0
    assert pair.whole()
    # every credit is where it was: with requests held back, as many flits come in as class 0 can reach
    pair.ends[1].hold(requests=True)
    before = sum(map(len, pair.sent[0].values()))
    saturate(pair, 400, 208)  # a packet is a flit, and a unit of one flit is taken out and waits
    queued = pair.ends[0].cfg.send_beats // 4
    most = sum(map(len, pair.sent[0].values())) - before
    reach = pair.ends[0].cfg.reach_flits
    assert reach <= most <= reach + queued + 8, (most, reach)
    pair.ends[1].hold()
    pair.drain(1200)
    assert pair.whole()


def test_malformed_packets_are_counted_and_not_sent(pair: Pair) -> None:
    pair.up()
    good = packet(PacketOpcode.WRITE, 5, payload=64)
    long = PACKET_HEADER.pack(opcode=PacketOpcode.READ, length_bytes=513).to_bytes(16, "little")
    for bad in (b"\x07" + good[1:], b"\x0e" + bytes(15), b"\x0f" + bytes(15), b"\x82" + bytes(15), long):
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


def test_a_refused_flit_in_every_state_of_the_protocol() -> None:
    """Isolated ones, as at very low error rates; `make soak` has more of them."""
    with PortDevice(SMALL, seed=1) as a, PortDevice(SMALL, seed=2) as b:
        seen = placed(Pair((a, b), delay=DELAY_FLITS), count=120, seed=1)
    assert sum(seen.values()) == 120
    assert all(seen[cell] >= 5 for cell in cells()), seen


def test_a_restart_at_any_time() -> None:
    rng = random.Random(11)
    for time in [0, 1, 2, 3, 33, 34, 1500, *(rng.randrange(1500) for _ in range(13))]:
        with PortDevice("x8", seed=time) as a, PortDevice("x8", seed=9) as b:
            pair = Pair((a, b))
            pair.run(time // 2)
            saturate(pair, time - time // 2, 400)
            pair.ends[time % 2].restart()
            saturate(pair, 40, 400)
            pair.up()
            pair.drain(600)
            for end in (0, 1):
                missing = sum(map(len, pair.sent[end].values())) - sum(map(len, pair.got[1 - end].values()))
                assert missing * 104 <= 58 * pair.ends[end].status()["unresolved"], (time, end, missing)
                for queue, sent in pair.sent[end].items():
                    left = iter(sent)
                    assert all(p in left for p in pair.got[1 - end].get(queue, [])), (time, end)
