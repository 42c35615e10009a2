"""Markers: the words in clear that carry borders, map and masks."""

from amaranth.hdl import Cat, Const, Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.layouts import layout
from rtl.base.xor_map import XorMap
from rtl.contract.lanes import MARKER, MARKER_CHECK_POLYNOMIAL, MARKER_SYNC
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import lanes_layout, physical_lanes

__all__ = ["COMMON", "MARKER_LAYOUT", "MarkerReader", "MarkerWriter"]

MARKER_LAYOUT = layout(MARKER)

_ALIKE = ("mask", "version", "width", "more", "here", "toggle")
COMMON = data.StructLayout({name: MARKER_LAYOUT.members[name] for name in _ALIKE})
"""What the markers of all lanes say alike."""

_CHECKED = MARKER.offset("check")


def _check_of_bit(bit: int) -> int:
    """Check of a marker in which only `bit` is 1."""
    rest = 1
    for _ in range(bit + 8):
        rest = rest << 1 ^ (0x100 | MARKER_CHECK_POLYNOMIAL if rest & 0x80 else 0)
    return rest


def _check() -> XorMap:
    """CRC of the bits 0 to 55."""
    weights = [_check_of_bit(at) for at in range(_CHECKED)]
    masks = [sum((w >> k & 1) << at for at, w in enumerate(weights)) for k in range(8)]
    # not computed in the cycles of data, which are nearly all: a simulator notices
    return XorMap(_CHECKED, masks, gated=True)


class MarkerWriter(wiring.Component):
    """A marker for each physical lane. Timing: combinational."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.lanes = physical_lanes(cfg)
        super().__init__(
            {
                "en": In(1),
                "logical": In(data.ArrayLayout(unsigned(5), self.lanes)),
                "common": In(COMMON),
                "words": Out(lanes_layout(cfg)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for lane in range(self.lanes):
            m.submodules[f"check{lane}"] = check = _check()
            c = self.common
            fields = [MARKER_SYNC, lane, self.logical[lane], c.mask, c.version, c.width, c.more, c.here, c.toggle]
            values = [Const(f, w.width) if isinstance(f, int) else f for f, w in zip(fields, MARKER.fields)]
            m.d.comb += [check.en.eq(self.en), check.i.eq(Cat(values))]
            with m.If(self.en):
                m.d.comb += self.words[lane].eq(Cat(check.i, check.o))
        return m


class MarkerReader(wiring.Component):
    """Which lanes show a marker of their own (`ok`), what it says. Timing: combinational."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.lanes = physical_lanes(cfg)
        super().__init__({"words": In(lanes_layout(cfg)), "ok": Out(self.lanes)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for lane in range(self.lanes):
            m.submodules[f"check{lane}"] = check = _check()
            word = self.words[lane]
            start = MARKER_SYNC | lane << MARKER.offset("physical")
            m.d.comb += [
                check.en.eq(word[: MARKER.offset("logical")] == start),
                check.i.eq(word[:_CHECKED]),
                self.ok[lane].eq(check.en & (check.o == word[_CHECKED:])),
            ]
        return m
