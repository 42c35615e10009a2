"""A switch has no combinational loop, neither in its ports nor through scheduler, bypass, inputs and outputs.

Amaranth refuses a loop inside what it converts in one piece; these tests look through the pieces.
"""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from rtl.base.placed import Placed
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.bypass import Bypass
from rtl.switch.switch import Switch
from verif.checks.loops import loops


def four(lanes: int) -> SwitchConfig:
    """Four ports with few queues: loops do not depend on their number."""
    return SwitchConfig(ports=4, link=LinkConfig(classes=2, shared_flits=8, window_flits=16, lanes=lanes))


class Starts(wiring.Component):
    """A bypass with units at all its inputs."""

    def __init__(self) -> None:
        super().__init__({"lone": wiring.In(5), "ready": wiring.In(10), "starts": wiring.Out(5)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bypass = bypass = Bypass(SwitchConfig(ports=4, link=LinkConfig(classes=1)))
        m.d.comb += [
            bypass.ready.eq(self.ready),
            bypass.lone.eq(self.lone),
            *(bypass.lists[k].eq(1 << 2 * k) for k in range(4)),
            self.starts.eq(bypass.starts),
        ]
        return m


class Tangled(wiring.Component):
    """An input is not alone if its unit begins: a loop, through a module that Amaranth does not look into."""

    def __init__(self) -> None:
        super().__init__({"ready": wiring.In(10), "starts": wiring.Out(5)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.placed = placed = Placed("tangled_starts", Starts)
        m.d.comb += [placed.ready.eq(self.ready), placed.lone.eq(~placed.starts), self.starts.eq(placed.starts)]
        return m


def test_a_loop_is_found() -> None:
    assert loops(Tangled())


@pytest.mark.parametrize(("lanes", "form"), [(8, "structural"), (16, "native")])
def test_no_loop_in_a_switch(lanes: int, form: str) -> None:
    assert loops(Switch(four(lanes), form)) == []
