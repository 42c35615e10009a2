"""Array ports of what is placed by Instance."""

import re

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Placed, Repeated
from rtl.emit.verilog import emit
from sim.toolchain import activate


class Part(wiring.Component):
    """Streams by number, signals by number, and an array of one."""

    i: In(stream.Signature(3)).array(2)
    alone: In(4).array(1)
    o: Out(4).array(2)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n in range(2):
            m.d.comb += [self.o[n].eq(self.i[n].payload + self.alone[0] + n), self.i[n].ready.eq(self.i[n].valid)]
        return m


class Whole(wiring.Component):
    """Two of them."""

    i: In(16)
    o: Out(18)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parts = [Placed("a_part", Part, clocked=False) for _ in range(2)]
        m.submodules += parts
        for part in parts:
            m.d.comb += [Cat(s.payload for s in part.i).eq(self.i), part.alone[0].eq(self.i[12:])]
            m.d.comb += Cat(s.valid for s in part.i).eq(self.i[6:])
        outs = (Cat(*part.o, *(s.ready for s in part.i)) for part in parts)
        m.d.comb += self.o.eq(Cat(outs))
        return m


def test_pins_of_an_array_are_named_by_number() -> None:
    activate()
    emitted = emit(Whole(), "top")
    names = {f"i__{n}__{pin}" for n in range(2) for pin in ("payload", "valid", "ready")} | {"alone__0", "o__0", "o__1"}
    (header,) = re.findall(r"module a_part\(([^)]*)\)", emitted.placed_text)
    assert set(re.split(r",\s*", header)) == names
    instances = re.findall(r"^ +a_part \S+ +\((.*?)^ +\);", emitted.own_text, re.M | re.S)
    assert [set(re.findall(r"\.(\w+) *\(", pins)) for pins in instances] == [names, names]


def test_a_lane_has_no_array() -> None:
    with pytest.raises(ValueError, match="port i of a lane of lanes is no single signal"):
        Repeated("lanes", Part, 2, shared=())
