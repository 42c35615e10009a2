"""Planted faults: 0 in the product, one signal for each name in a build for benches, in parts that are placed too."""

import re

import pytest
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from rtl.base.fault import UnknownFaultError, fault, fault_number, planting, plants_faults, with_fault
from rtl.base.placed import Placed, Repeated, faults_in
from rtl.emit.plant_top import PlantTop
from rtl.emit.verilog import emit
from sim.toolchain import activate

NUMBERS = {"the model counts backwards": 3, "the model forgets a bit": 5}


class Part(wiring.Component):
    """y = x + 1."""

    x: In(4)
    y: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.y.eq(self.x + ~fault("a part adds nothing"))
        return m


class Whole(wiring.Component):
    """y = x + 2; number: as a model in C++ would be told."""

    x: In(4)
    y: Out(4)
    number: Out(8)

    def __init__(self, part: type = Part):
        self.part = part
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = self.part()
        m.submodules.second = second = self.part()
        m.d.comb += [
            first.x.eq(self.x),
            second.x.eq(first.y),
            self.y.eq(second.y ^ fault("the whole turns its lowest bit")),
            self.number.eq(fault_number(NUMBERS)),
        ]
        return m


def placed(**options: object) -> Placed:
    return Placed("a_part", Part, clocked=False, **options)


def verilog(component: wiring.Component, planted: bool) -> str:
    activate()
    return emit(component, "top", planted=planted).text


def test_the_product_has_no_faults() -> None:
    value = fault("it never happens")
    assert isinstance(value, Const) and (value.value, len(value)) == (0, 1)
    assert not plants_faults()
    assert "plant" not in (text := verilog(Whole(lambda: placed(faults=True)), False)) and "fault" not in text


def test_a_name_is_one_signal() -> None:
    with planting() as faults:
        assert plants_faults()
        assert fault("it happens often") is fault("it happens often")
        fault("and another one")
    assert faults.names == ("and another one", "it happens often")


def test_the_top_chooses() -> None:
    top = PlantTop(Whole())
    seen: list[tuple[int, int]] = []

    async def plants(ctx: object) -> None:
        for number in range(7):
            ctx.set(top.plant, number)  # type: ignore[attr-defined]
            ctx.set(top.x, 4)  # type: ignore[attr-defined]
            seen.append((ctx.get(top.y), ctx.get(top.number)))  # type: ignore[attr-defined]

    simulator = Simulator(top)
    simulator.add_testbench(plants)
    simulator.run()
    names = ("a part adds nothing", "the model counts backwards", "the model forgets a bit")
    assert top.names == (*names, "the whole turns its lowest bit")
    assert seen == [(6, 0), (4, 0), (6, 3), (6, 5), (7, 0), (6, 0), (6, 0)]


def test_a_placed_part_has_an_input_for_its_faults() -> None:
    emitted = emit(Whole(lambda: placed(faults=True)), "top", planted=True)
    assert emitted.faults[0] == "a part adds nothing" and len(emitted.faults) == 4
    assert len(re.findall(r"\.faults\(", emitted.own_text)) == 2
    assert re.search(r"module a_part\([^)]*\bfaults\b", emitted.placed_text)


def test_a_placed_part_may_have_none() -> None:
    emitted = emit(Whole(lambda: placed(faults=False)), "top", planted=True)
    assert "a part adds nothing" not in emitted.faults
    assert "fault" not in emitted.placed_text


def test_a_placed_part_has_the_faults_that_are_named() -> None:
    emitted = emit(Whole(lambda: placed(faults=["a part adds nothing"])), "top", planted=True)
    assert emitted.faults[0] == "a part adds nothing"
    with pytest.raises(UnknownFaultError, match="has no fault 'the part explodes'"):
        emit(Whole(lambda: placed(faults=["the part explodes"])), "top", planted=True)


def test_lanes_have_their_faults_in_common() -> None:
    class Lane(wiring.Component):
        x: In(4)
        y: Out(4)

        def elaborate(self, platform: object) -> Module:
            m = Module()
            kept = Signal(4)
            m.d.sync += kept.eq(self.x + ~fault("a lane adds nothing"))
            m.d.comb += self.y.eq(kept)
            return m

    class Lanes(wiring.Component):
        x: In(12)
        y: Out(12)

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.submodules.lanes = lanes = Repeated("three_lanes", Lane, 3, shared=())
            m.d.comb += [lanes.x.eq(self.x), self.y.eq(lanes.y)]
            return m

    assert emit(Lanes(), "top", planted=True).faults == ("a lane adds nothing",)
    assert "input [0:0] faults" in (text := verilog(Lanes(), True)) and "three_lanes" in text
    assert "fault" not in verilog(Lanes(), False)
    assert faults_in(Lanes) == ("a lane adds nothing",)


def test_a_fault_that_always_holds() -> None:
    with with_fault("it happens often"):
        assert fault("it happens often").value == 1 and fault("another").value == 0  # type: ignore[attr-defined]
    with with_fault(""):
        assert not plants_faults()
    with (
        pytest.raises(UnknownFaultError, match="no unit has the fault 'it is odd'; there are: it happens often"),
        with_fault("it is odd"),
    ):
        fault("it happens often")
