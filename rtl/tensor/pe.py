"""Processing element: a working and a shadow weight, and one fused multiply-add."""

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import passed_on, planted
from rtl.numeric.mac import Mac
from rtl.numeric.operand import OPERAND
from rtl.tensor.lanes import MOVING_LANE, WEIGHT_LANE

__all__ = ["PE"]


class PE(wiring.Component):
    """south = RN32(west * weight + north), or north where the beat is not used.

    Timing: `west` and `north` of cycle t give `east` in cycle t + 1 and `south` in t + 2. A weight that
    arrives in cycle t becomes the shadow weight from t + 1 on; the shadow weight it replaces goes east in
    t + 1. A beat with `swap` in cycle t uses the shadow weight of cycle t, and so do later ones.
    Reset: weights are +0; data on their way are not reset, their valid bits are.
    """

    FAULTS = {
        1: "swap takes effect one beat late",
        2: "the weight that arrives goes east, not the one it replaces",
        3: "a load goes straight into the working weight",
        4: "swap is ignored in a beat that is not used",
        5: "an unused beat adds its product",
    }

    west: In(MOVING_LANE)
    east: Out(MOVING_LANE)
    west_weight: In(WEIGHT_LANE)
    east_weight: Out(WEIGHT_LANE)
    north: In(32)
    south: Out(32)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.mac = mac = Mac(passed_on(self.plant, 0, 0, 0, 0, 0, 5))
        shadow = Signal(OPERAND)
        working = Signal(OPERAND)
        chosen = Signal(OPERAND)
        moving = Signal(MOVING_LANE)
        leaving = Signal(OPERAND, reset_less=True)
        leaves = Signal()

        swap = self.west.swap & (self.west.use | ~planted(self.plant, 4))
        m.d.comb += [
            chosen.eq(Mux(swap, shadow, working)),
            mac.a.eq(self.west.operand),
            mac.b.eq(Mux(planted(self.plant, 1), working, chosen)),
            mac.acc.eq(self.north),
            mac.enable.eq(self.west.use),
            self.south.eq(mac.out),
            self.east.eq(moving),
            self.east_weight.operand.eq(leaving),
            self.east_weight.valid.eq(leaves),
        ]
        m.d.sync += [
            moving.eq(self.west),
            working.eq(chosen),
            leaves.eq(self.west_weight.valid),
        ]
        with m.If(self.west_weight.valid):
            m.d.sync += [
                shadow.eq(self.west_weight.operand),
                leaving.eq(Mux(planted(self.plant, 2), self.west_weight.operand, shadow)),
            ]
            with m.If(planted(self.plant, 3)):
                m.d.sync += working.eq(self.west_weight.operand)
        return m
