"""The golden framing against bytes worked out by hand, there and back, and against the figures of its page."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.contract.link import PACKET_HEADER, PAYLOAD_OPCODES, PacketOpcode
from rtl.contract.link_config import LINKS, LinkConfig
from verif.checks.framing_efficiency import table
from verif.golden.framing import Packet, Turns, Units, flits_of, grouped, header_of, unpack

ROOT = Path(__file__).resolve().parents[2]


def packet(opcode: int, length: int, signal: bool, fill: int, class_: int = 2, endpoint: int = 5) -> Packet:
    header = PACKET_HEADER.pack(
        opcode=opcode, flags=int(signal), length_bytes=length, tag=1, source=3, address=0x1122334455667788
    )
    size = (length if opcode in PAYLOAD_OPCODES else 0) + 8 * signal
    return Packet(class_, endpoint, header.to_bytes(16, "little") + bytes([fill]) * size)


def test_the_example_of_the_page() -> None:
    """A write of 200 bytes and one of 6 with a signal: fields and bytes worked out by hand."""
    first, second = packet(PacketOpcode.WRITE, 200, False, 0xAA), packet(PacketOpcode.WRITE, 6, True, 0xBB)
    assert first.data[:16].hex() == "00c80430008877665544332211000000"
    assert second.data[:16].hex() == "10060430008877665544332211000000"
    flits = flits_of([first, second], [0, 1])
    assert [len(f) for f in flits] == [236, 236]
    # endpoint 5 << 20, class 2 << 17, vc 2 << 14, head 1 << 11, offset 0 << 4
    assert flits[0][:4] == (0x00548800).to_bytes(4, "little")
    # the same with dedicated 1 << 12, tail 1 << 10, offset 63 << 4
    assert flits[1][:4] == (0x005497F0).to_bytes(4, "little")
    assert flits[0][4:] == first.data + second.data[:16]  # 54 words and 4
    assert flits[1][4:] == second.data[16:] + b"\0\0" + b"\x0f" + bytes(232 - 17)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 3, 4]), st.integers(0, 512), st.booleans(), st.integers(1, 255)),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_there_and_back(many: list[tuple[int, int, bool, int]], responses: bool) -> None:
    if responses:
        many = [(5 + (op > 2), length, signal, fill) for op, length, signal, fill in many]
    packets = [packet(*one) for one in many]
    back: list[Packet] = []
    receiver = Units()
    for unit in grouped(packets):
        flits = flits_of(unit)
        assert 1 <= len(flits) <= 4
        assert [receiver.arrive(f) for f in flits] == [[]] * (len(flits) - 1) + [flits]
        found, bad = unpack(flits)
        assert not bad
        back += found
    assert back == packets
    assert receiver.bad == 0


def test_which_packets_wait_in_one_unit() -> None:
    """x8, worked out by hand: two units of a flit first; then 4 packets of 8 bytes, which take 4 beats, to a flit."""
    x8, x16 = LINKS["x8"], LINKS["x16"]

    def sizes(lengths: list[int], cfg: LinkConfig) -> list[int]:
        return [len(unit) for unit in grouped([packet(0, n, False, 1) for n in lengths], cfg)]

    assert sizes([8] * 11, x8) == [1, 1, 4, 4, 1]
    assert sizes([8] * 7, x16) == [1, 1, 2, 2, 1]
    assert sizes([448] * 6, x8) == [1, 1, 2, 2]  # two flits each: more than two must be ahead
    assert sizes([512, 512, 512, 8, 8], x8) == [1, 1, 3]  # 132 words, 6 and 6: 3 flits, 9 + 1 + 1 beats
    assert sizes([8, 8, 8, 500], x8) == [1, 1, 1, 1]  # it would take 3 flits, 2 are ahead
    assert [len(unit) for unit in grouped([packet(0, 8, False, 1)] * 40)] == [38, 2]


def test_what_is_no_unit() -> None:
    one, two = flits_of([packet(0, 200, False, 1), packet(0, 6, True, 2)])
    whole = flits_of([packet(0, 8, False, 3)])
    for flits, bad in (
        ([two], 1),  # no head
        ([two, *whole], 1),
        ([one, *whole], 1),  # no tail
        ([one, one, two], 1),
        ([one, *[two[:1] + bytes([two[1] & ~4]) + two[2:]] * 3, two], 1),  # five flits
    ):
        units = Units()
        came = [u for f in flits for u in [units.arrive(f)] if u]
        assert units.bad == bad
        assert came == ([whole] if whole[0] in flits else [[one, two]] if flits[-2:] == [one, two] else [])


@pytest.mark.parametrize(
    ("at", "value"),
    [(4, 0x07), (4, 0x80), (6, 0x07), (0, 0x10), (4, 0x05)],
    ids=["opcode", "flag", "length", "offset", "kind"],
)
def test_what_is_no_packet(at: int, value: int) -> None:
    flit = bytearray(flits_of([packet(0, 6, True, 0xBB)])[0])
    flit[at] |= value
    assert unpack([bytes(flit)]) == ([], True)


def test_turns_of_two_classes() -> None:
    """Weights 3 and 1, units of one flit: A B A A, and again."""
    turns = Turns(LinkConfig(classes=2, weights=(3, 1, 1, 1, 1, 1, 1, 1)))
    order = []
    while len(order) < 8:
        queue = turns.choose(0b0101)
        turns.step(0b0101, 1 if queue is not None else 0)
        if queue is not None:
            order.append("AB"[queue // 2])
    assert "".join(order[:4]).count("A") == 3
    assert "".join(order[4:]).count("A") == 3


def test_headers_are_those_of_the_contract() -> None:
    header = header_of(flits_of([packet(PacketOpcode.READ_RESPONSE, 4, False, 9, 7, 0xABC)])[0])
    assert header == {
        "zero": 0,
        "offset": 0,
        "tail": 1,
        "head": 1,
        "dedicated": 0,
        "kind": 1,
        "vc": 7,
        "class_": 7,
        "endpoint": 0xABC,
    }


def test_figures_of_the_page() -> None:
    page = (ROOT / "docs" / "framing.md").read_text()
    for line in table():
        assert line in page, f"docs/framing.md does not have: {line}"
