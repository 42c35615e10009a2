"""A top with one more input that chooses the planted fault of the unit inside."""

from collections.abc import Callable

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.base.amaranth_internals import counts_as_used

__all__ = ["PLANT_BITS", "PlantTop"]

PLANT_BITS = 8


class PlantTop(wiring.Component):
    """The unit made by `make(plant)`, all its ports, and the input `plant` (0: no fault)."""

    def __init__(self, make: Callable[[Value], wiring.Component]):
        self._chosen = Signal(PLANT_BITS, name="plant_chosen")
        self._unit = make(self._chosen)
        counts_as_used(self._unit)  # the top is what must be used
        super().__init__({**dict(self._unit.signature.members), "plant": In(PLANT_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = self._unit
        m.d.comb += self._chosen.eq(self.plant)
        outer = self.signature.flatten(self)
        inner = {path: value for path, _, value in self._unit.signature.flatten(self._unit)}
        for path, member, port in outer:
            if path == ("plant",):
                continue
            ours = Value.cast(port)
            theirs = Value.cast(inner[path])
            if member.flow == In:
                if not isinstance(theirs, Const):
                    m.d.comb += theirs.eq(ours)
            elif not isinstance(ours, Const):
                m.d.comb += ours.eq(theirs)
        return m
