"""Golden lanes of a link: flits to words of lanes and back, markers, maps. Bit by bit, for tests."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract import lanes as c
from rtl.contract.link import FLIT_BYTES

__all__ = ["LaneReader", "LaneWriter", "keystream", "lane_map", "marker", "open_marker"]

Words = NDArray[np.uint64]


def keystream(seed: int, count: int) -> NDArray[np.uint8]:
    """The first `count` bytes that the scrambler adds after starting with `seed`."""
    state = [seed >> k & 1 for k in range(c.SCRAMBLER_BITS)]
    found = np.zeros(8 * count, np.uint8)
    for at in range(8 * count):
        out = state[-1]
        found[at] = out
        state = [0, *state[:-1]]
        for tap in c.SCRAMBLER_TAPS:
            state[tap] ^= out
    return np.packbits(found, bitorder="little")


@cache
def _keys(physical: int, words: int) -> Words:
    return keystream(c.scrambler_seed(physical), 8 * words).view("<u8")


def _key(physical: int, at: int, count: int = 1) -> Words:
    """Words `at` to `at` + `count` of what a lane adds."""
    return _keys(physical, max(256, 1 << (at + count).bit_length()))[at : at + count]


def lane_map(mask: int, lanes: int, physical: int) -> list[int]:
    """Physical lanes in use, by logical lane: the first good ones, as many as may be. mask 0: all are good."""
    good = [p for p in range(physical) if not mask or mask >> p & 1]
    return good[: max(w for w in c.WIDTHS if w <= min(lanes, len(good)))]


def _check(value: int) -> int:
    rest = 0
    for bit in reversed(range(56)):
        top = rest >> 7 ^ value >> bit & 1
        rest = (rest << 1 & 0xFF) ^ (c.MARKER_CHECK_POLYNOMIAL if top else 0)
    return rest


def marker(**fields: int) -> int:
    """A marker from its fields; sync and check are added."""
    word = c.MARKER.pack(sync=c.MARKER_SYNC, **fields)
    return word | _check(word) << c.MARKER.offset("check")


def open_marker(word: int, physical: int) -> dict[str, int] | None:
    """The fields of a word if it is a marker of that lane."""
    fields = c.MARKER.unpack(word)
    own = fields["sync"] == c.MARKER_SYNC and fields["physical"] == physical
    return fields if own and fields["check"] == _check(word & (1 << 56) - 1) else None


class LaneWriter:
    """One end that sends: `markers` and `flit` give words [cycles, physical lanes]."""

    def __init__(self, lanes: int, physical: int):
        self.lanes, self.physical = lanes, physical
        self.version = self.toggle = self.at = 0
        self.map = lane_map(0, lanes, physical)

    def obey(self, mask: int) -> None:
        """Take the map that `mask` asks for; the caller sends a marker next."""
        self.map = lane_map(mask, self.lanes, self.physical)
        self.version = (self.version + 1) % c.VERSIONS

    def marker(self, more: int = 0, mask: int = 0, here: int = 0) -> Words:
        """One marker time; the scrambler starts again."""
        said: dict[str, Any] = dict(mask=mask, version=self.version, more=more, here=here, toggle=self.toggle)
        said["width"] = len(self.map).bit_length() - 1
        place = {p: logical for logical, p in enumerate(self.map)}
        words = [marker(physical=p, logical=place.get(p, c.NO_LANE), **said) for p in range(self.physical)]
        self.toggle ^= 1
        self.at = 0
        return np.array([words], np.uint64)

    def flit(self, flit: NDArray[np.uint8]) -> Words:
        """256 bytes, byte i on logical lane i mod w; lanes without data send the scrambler alone."""
        width = len(self.map)
        count = FLIT_BYTES // (8 * width)
        words = np.zeros((count, self.physical), np.uint64)
        for logical, p in enumerate(self.map):
            words[:, p] = np.ascontiguousarray(flit[logical::width]).view("<u8")
        for p in range(self.physical):
            words[:, p] ^= _key(p, self.at, count)
        self.at += count
        return words


class LaneReader:
    """One end that hears everything well: `word` takes the words of a cycle, `flits` and `markers` collect."""

    def __init__(self, lanes: int, physical: int):
        self.lanes, self.physical = lanes, physical
        self.map: list[int] = []
        self.flits: list[bytes] = []
        self.since: list[int] = []
        """Flits before each marker, since the one before."""
        self.markers: list[dict[str, int]] = []
        self._rows: list[list[int]] = []
        self._at = self._count = 0

    def word(self, words: list[int]) -> None:
        """The words of one cycle, by physical lane. AssertionError if markers do not agree."""
        shown = [open_marker(w, p) for p, w in enumerate(words)]
        if shown[0] is not None and not self._rows:
            self._follow([s for s in shown if s is not None])
            return
        assert self.map, "a word before the first marker"
        width = len(self.map)
        row = [words[p] ^ int(_key(p, self._at)[0]) for p in range(self.physical)]
        idle = [p for p in range(self.physical) if p not in self.map and row[p]]
        assert not idle, f"lane {idle} is not in use and carries {row}"
        self._rows.append([row[p] for p in self.map])
        self._at += 1
        if len(self._rows) == FLIT_BYTES // (8 * width):
            lanes = np.array(self._rows, "<u8").T.copy().view(np.uint8).reshape(width, -1)
            self.flits.append(lanes.T.tobytes())
            self._count += 1
            self._rows = []

    def _follow(self, shown: list[dict[str, int]]) -> None:
        assert len(shown) == self.physical, "a marker on some lanes only"
        alike = [{k: v for k, v in s.items() if k not in ("physical", "logical", "check")} for s in shown]
        assert all(s == alike[0] for s in alike), f"markers differ: {alike}"
        width = 1 << alike[0]["width"]
        carried = {s["logical"]: s["physical"] for s in shown if s["logical"] != c.NO_LANE}
        assert sorted(carried) == list(range(width)), f"{width} lanes in use, but {carried}"
        self.map = [carried[logical] for logical in range(width)]
        self.since.append(self._count)
        self.markers.append(alike[0])
        self._at = self._count = 0
