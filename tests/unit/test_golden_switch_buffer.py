"""The golden buffer of a switch's input against cycles and bytes worked out by hand, and against the golden framing."""

import numpy as np
import pytest

from rtl.contract.link import FLIT_BYTES, FLIT_HEADER, PACKET_HEADER, PAYLOAD_OPCODES, PacketOpcode
from rtl.contract.switch_config import SwitchConfig
from verif.golden.framing import Packet, flits_of, unpack
from verif.golden.switch_buffer import Arrival, Choice, SwitchBuffer, Told
from verif.golden.switch_routes import RouteTable, asks_for_answer

CFG = SwitchConfig(ports=4)
ASKING = (PacketOpcode.READ, PacketOpcode.FETCH_ADD)


def packet(opcode: int, length: int, signal: bool = False) -> Packet:
    header = PACKET_HEADER.pack(opcode=opcode, flags=int(signal), length_bytes=length, tag=1, source=3, address=0x1122)
    size = (length if opcode in PAYLOAD_OPCODES else 0) + 8 * signal
    return Packet(2, 5, header.to_bytes(16, "little") + bytes([0xA2]) * size)


def words(flits: list[bytes]) -> bytes:
    return b"".join(f[4:236] for f in flits)


def test_reads_by_hand() -> None:
    """Opcode 2 in the low four bits of the first byte, length above the flags: a read of 64 bytes is 02 40 00 ..."""
    read = bytes.fromhex("0240") + bytes(14)
    write = bytes.fromhex("0004") + bytes(13) + b"\x01"  # 4 bytes
    end = b"\x0f" + bytes(15)
    full = 232
    for text, expected in (
        (read, True),
        (write + b"\x02\0\0\0" + read, True),  # the payload is not taken for a header
        (write + b"\x02\0\0\0" + end + read, False),
        (bytes(16) + read, False),
        (b"\x07" + bytes(15) + read, False),  # no opcode
        (b"\x20" + bytes(14) + b"\x01" + read, True),  # a sum: passed on, whatever its destination makes of it
        (b"\x80" + bytes(14) + b"\x01" + read, False),  # no flag
        (b"\x05" + bytes(15) + read, False),  # a response among requests
        (b"\x00\xfc" + bytes(13) + b"\x01" + read, False),  # longer than the unit
        (b"\x13\x08" + bytes(14) + bytes(16), True),  # fetch-add of 8 with a signal
    ):
        assert asks_for_answer(text.ljust(full, b"\0")) == expected, text.hex()


@pytest.mark.parametrize("seed", range(4))
def test_reads_as_the_framing_sees_them(seed: int) -> None:
    """Random units, some damaged: the same verdict as unpacking them, if no offset is wrong."""
    rng = np.random.default_rng(seed)
    verdicts = set()
    for _ in range(200):
        packets, room = [], int(rng.integers(1, 5)) * 58
        while room > 8:
            p = packet(int(rng.choice([0, 0, 1, 2, 3, 4])), int(rng.integers(0, 200)), bool(rng.integers(2)))
            if p.words <= room and (p.header["opcode"] not in ASKING or rng.integers(6) == 0):
                packets.append(p)
                room -= p.words
            elif rng.integers(3) == 0:
                break
        if not packets:
            continue
        flits = flits_of(packets)
        expected = any(p.header["opcode"] in ASKING for p in unpack(flits)[0])
        assert asks_for_answer(words(flits)) == expected
        verdicts.add(expected)
    assert verdicts == {True, False}


def arrivals(output: int, refused: bool = False, head: int = 1, tail: int = 1) -> list[Arrival]:
    """A flit of class 1, kind 0."""
    header = FLIT_HEADER.pack(endpoint=9, class_=1, head=head, tail=tail)
    text = header.to_bytes(4, "little") + bytes(FLIT_BYTES - 4)
    size = CFG.link.beat_bytes
    return [
        Arrival(
            n == 0,
            n == CFG.link.beats - 1,
            int.from_bytes(text[n * size : (n + 1) * size], "little"),
            n,
            output,
            refused,
        )
        for n in range(CFG.link.beats)
    ]


def walk(buffer: SwitchBuffer, beats: list[Arrival], choices: dict[int, Choice], cycles: int) -> list[Told]:
    """Beats from cycle 0 on; what was told in each cycle."""
    return [buffer.step(beats[c] if c < len(beats) else None, choices.get(c, Choice()), False) for c in range(cycles)]


def test_cycles_of_a_unit_of_one_flit() -> None:
    """Told in the cycle after its first beat, begun at once, out in the cycle after that."""
    number = 3 * CFG.link.queues + 2  # output 3, class 1, kind 0
    told = walk(SwitchBuffer(CFG), arrivals(3), {1: Choice(now=True, output=3, queue=2)}, 8)
    assert [bool(t.lone) for t in told] == [False, True] + [False] * 6
    assert [t.lists for t in walk(SwitchBuffer(CFG), arrivals(3), {}, 3)] == [set(), {number}, {number}]
    assert [t.beat.parity if t.beat else None for t in told] == [None, None, 0, 1, 2, 3, None, None]
    assert [c for c, t in enumerate(told) if t.freed is not None] == [1]
    assert [c for c, t in enumerate(told) if t.ends] == [4]


def test_cycles_of_a_unit_of_two_flits() -> None:
    """Held over a slot: `more` with the first flit, none with the second; two lengths while it waits."""
    beats = arrivals(0, tail=0) + arrivals(2, head=0)
    go, hold = Choice(slot=True, start=True, first=True, output=0, queue=2), Choice(slot=True, start=True)
    told = walk(SwitchBuffer(CFG), beats, {8: go, 12: hold}, 18)
    assert [t.lengths[0] for t in told] == [0] * 5 + [2] * 3 + [0] * 10
    assert [c for c, t in enumerate(told) if t.more] == [8, 9, 10, 11]
    out = [t.beat for t in told if t.beat]
    assert [(b.head, b.tail) for b in out] == [(True, False)] * 4 + [(False, True)] * 4
    assert [c for c, t in enumerate(told) if t.freed is not None] == [8, 12]


def test_a_refused_unit_without_a_read_is_dropped_with_its_last_beat() -> None:
    told = walk(SwitchBuffer(CFG), arrivals(1, refused=True), {}, 8)
    assert [c for c, t in enumerate(told) if t.dropped_unit] == [3]
    assert [c for c, t in enumerate(told) if t.freed is not None] == [5]
    assert not any(t.lists or t.bad_unit for t in told)


def test_routes() -> None:
    table = RouteTable(CFG)
    assert table.look_up(3, 31, 31) == (3, "")
    assert table.look_up(4, 31, 31) == (None, "hole")
    assert table.look_up(3, 31 - 8, 31 - 8) == (3, "foreign")
    assert table.look_up(3, 31, 31 - 8) == (3, "dead")
    table.write(4095, 2, True)
    table.write(0, 4, True)
    assert table.look_up(4095, 31, 31) == (2, "")
    assert table.look_up(0, 31, 31) == (None, "hole")
