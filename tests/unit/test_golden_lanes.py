"""Golden lanes against outside truth: the public bytes of the scrambler, maps by hand, markers bit by bit."""

import numpy as np
import pytest

from rtl.contract.lanes import MARKER, NO_LANE, WIDTHS
from verif.golden.lanes import LaneReader, LaneWriter, keystream, lane_map, marker, open_marker


def test_scrambler_gives_the_public_bytes() -> None:
    """What the first two generations of PCI Express add to zeros after the seed ffff."""
    assert keystream(0xFFFF, 16).tobytes().hex() == "ff17c014b2e70282726e28a6be6dbf8d"


def test_scrambler_is_of_full_period() -> None:
    once = keystream(1, 65535 // 8 * 2 + 2)
    bits = np.unpackbits(once, bitorder="little")
    assert np.array_equal(bits[:64], bits[65535 : 65535 + 64])
    assert not any(np.array_equal(bits[:64], bits[k : k + 64]) for k in range(1, 65535))


@pytest.mark.parametrize(
    ("lanes", "physical", "mask", "expected"),
    [
        (8, 10, 0, [0, 1, 2, 3, 4, 5, 6, 7]),
        (8, 10, 0b1111111111, [0, 1, 2, 3, 4, 5, 6, 7]),
        (8, 10, 0b1111110111, [0, 1, 2, 4, 5, 6, 7, 8]),
        (8, 10, 0b1111010101, [0, 2, 4, 6]),
        (8, 8, 0b01111111, [0, 1, 2, 3]),
        (4, 5, 0b10100, [2, 4]),
        (16, 18, 1 << 17, [17]),
        (1, 2, 0b10, [1]),
    ],
)
def test_map(lanes: int, physical: int, mask: int, expected: list[int]) -> None:
    assert lane_map(mask, lanes, physical) == expected


def test_marker_bit_by_bit() -> None:
    fields = dict(physical=3, logical=2, mask=0x3F7, version=5, width=3, more=1, here=1, toggle=0)
    low = 0x1ACF | 3 << 16 | 2 << 21 | 0x3F7 << 26 | 5 << 44 | 3 << 50 | 1 << 53 | 1 << 54
    division = low << 8
    for bit in reversed(range(8, 64)):
        if division >> bit & 1:
            division ^= 0x107 << bit - 8
    assert marker(**fields) == low | division << 56
    assert open_marker(marker(**fields), 3) is not None
    assert open_marker(marker(**fields), 4) is None, "a marker of another lane"


def test_every_wrong_byte_of_a_marker_is_seen() -> None:
    word = marker(physical=1, logical=NO_LANE, mask=1, version=63)
    wrong = [word ^ value << 8 * at for at in range(8) for value in range(1, 256)]
    assert all(open_marker(w, 1) is None for w in wrong)
    assert MARKER.width == 64


@pytest.mark.parametrize("lanes", WIDTHS)
def test_reader_reads_what_the_writer_writes(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    writer, reader = LaneWriter(lanes, lanes + 2), LaneReader(lanes, lanes + 2)
    flits = [rng.integers(0, 256, 256, np.uint8) for _ in range(12)]
    for k, flit in enumerate(flits):
        if k % 4 == 0:
            writer.obey(int(rng.integers(1 << lanes + 2)))
            for row in writer.marker(mask=k):
                reader.word(row.tolist())
        for row in writer.flit(flit):
            reader.word(row.tolist())
    assert reader.flits == [f.tobytes() for f in flits]
    assert [m["mask"] for m in reader.markers] == [0, 4, 8]
    assert reader.since == [0, 4, 4]
