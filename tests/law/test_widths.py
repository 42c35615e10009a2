"""What one unit hands to another arrives whole: nothing is narrowed in silence."""

from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import named
from rtl.contract.link_config import LINKS
from rtl.contract.switch_config import SWITCHES
from sim.build import make_component
from sim.build.tops import top
from verif.checks.widths import silent_narrowings

TOPS: dict[str, tuple[str, AnyConfig, dict[str, Any]]] = {
    "core": ("core", named("tiny"), {"link": True}),
    "link": ("port_lanes", LINKS["x8"], {}),
    "switch": ("switch", SWITCHES["sw4"], {}),
}


@pytest.mark.parametrize("name", TOPS)
def test_units_hand_on_every_bit(name: str) -> None:
    which, cfg, options = TOPS[name]
    assert not (found := silent_narrowings(make_component(top(which), cfg, options))), "\n".join(found)


class _Counts(wiring.Component):
    """Bytes of a mover, added up."""

    bytes: In(12)
    total: Out(48)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.total.eq(self.total + self.bytes)
        return m


class _Moves(wiring.Component):
    """A mover that says more than its counter takes: rows of 4,096 bytes vanish."""

    moved: In(19)
    total: Out(48)

    def __init__(self, explicit: bool):
        self.explicit = explicit
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counts = counts = _Counts()
        m.d.comb += [counts.bytes.eq(self.moved[:12] if self.explicit else self.moved), self.total.eq(counts.total)]
        return m


def test_a_narrow_counter_is_noticed() -> None:
    (found,) = silent_narrowings(_Moves(explicit=False))
    assert "_Counts.bytes takes 12 of the 19 bits of _Moves.moved" in found


def test_an_explicit_slice_is_no_silence() -> None:
    assert silent_narrowings(_Moves(explicit=True)) == []
