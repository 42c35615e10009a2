"""Quick conversions give the text of Amaranth's own, and find the same loops."""

from collections import Counter

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.amaranth_internals import INTERNALS, CombinationalCycle, DriverConflict
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.emit.quick import quick_netlists
from rtl.switch.input.ingress import Ingress
from rtl.switch.scheduling.scheduler import Scheduler

SMALL = SwitchConfig(ports=4, link=LinkConfig(classes=1, shared_flits=4, window_flits=16))


class Loop(wiring.Component):
    """`kind`: what the loop goes through."""

    def __init__(self, kind: str):
        self.kind = kind
        super().__init__({"a": In(8), "y": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        b, c = Signal(8), Signal(8)
        m.d.comb += [self.y.eq(b), c.eq(b)]
        if self.kind == "none":
            m.d.comb += [b[4:].eq(self.a[4:] ^ self.a[:4]), b[:4].eq(self.a[:4] & c[4:])]
        elif self.kind == "sum":
            m.d.comb += b.eq(self.a + c)
        elif self.kind == "bits":
            m.d.comb += [b[1].eq(c[0] & self.a[0]), b[0].eq(c[1])]
        elif self.kind == "names":
            m.d.comb += b.eq(c)
        elif self.kind == "choice":
            m.d.comb += b.eq(self.a.bit_select(c[:3], 1))
        elif self.kind == "memory":
            m.submodules.memory = memory = Memory(shape=8, depth=8, init=[])
            port = memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(c[:3]), b.eq(port.data)]
        else:
            with m.If(c == 3):
                m.d.comb += b.eq(self.a)
        return m


@pytest.mark.parametrize("make", [lambda: Ingress(SMALL), lambda: Scheduler(SMALL)], ids=["ingress", "scheduler"])
def test_the_text_is_the_same(make) -> None:
    slow = rtlil.convert(make(), name="top", emit_src=False)
    with quick_netlists():
        quick = rtlil.convert(make(), name="top", emit_src=False)
    assert quick == slow


def test_without_fields_the_text_lacks_their_wires_and_nothing_else() -> None:
    whole = rtlil.convert(Ingress(SMALL), name="top", emit_src=False).splitlines()
    with quick_netlists(fields=False):
        short = rtlil.convert(Ingress(SMALL), name="top", emit_src=False).splitlines()
    rest = iter(whole)
    assert all(line in rest for line in short)  # in the same order
    left_out = Counter(whole) - Counter(short)
    fields = {line.split()[-1] for line in left_out if " wire " in line}
    assert fields and all("." in name or "[" in name for name in fields)
    for line in filter(str.strip, left_out):
        words = line.split()
        assert words[0] == "attribute" or words[-1] in fields or (words[0] == "connect" and words[1] in fields), line


@pytest.mark.parametrize("kind", ["sum", "bits", "names", "choice", "memory", "condition"])
def test_a_loop_is_found(kind: str) -> None:
    with pytest.raises(CombinationalCycle) as slow:
        rtlil.convert(Loop(kind), name="top", emit_src=False)
    with quick_netlists(), pytest.raises(CombinationalCycle) as quick:
        rtlil.convert(Loop(kind), name="top", emit_src=False)
    assert str(quick.value) == str(slow.value)


class TwoDrivers(wiring.Component):
    """Bit 5 of `y` is driven by two instances, after other signals, one of them without a bit."""

    def __init__(self):
        super().__init__({"a": In(8), "y": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        before, none = Signal(3), Signal(0)
        m.d.comb += [before.eq(self.a), none.eq(self.a)]
        m.submodules.first = Instance("first", i_a=before, o_y=self.y[4:6])
        m.submodules.second = Instance("second", i_a=none, o_y=self.y[5:])
        return m


def test_two_drivers_of_a_bit_are_named() -> None:
    with pytest.raises(DriverConflict, match="Bit 5 of signal") as slow:
        rtlil.convert(TwoDrivers(), name="top", emit_src=False)
    with quick_netlists(), pytest.raises(DriverConflict) as quick:
        rtlil.convert(TwoDrivers(), name="top", emit_src=False)
    assert str(quick.value) == str(slow.value)


def test_where_no_bit_comes_back_is_no_loop() -> None:
    with quick_netlists():
        rtlil.convert(Loop("none"), name="top", emit_src=False)


def test_amaranth_is_left_as_it_was() -> None:
    def its_own() -> list[object]:
        return [each.found() for each in INTERNALS]

    before = its_own()
    with pytest.raises(CombinationalCycle), quick_netlists(fields=False):
        rtlil.convert(Loop("sum"), name="top", emit_src=False)
    assert its_own() == before
