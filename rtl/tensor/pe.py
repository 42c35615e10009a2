"""Processing element: a working and a shadow weight, and the arithmetic of all modes."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.numeric.pe.pe_mac import PeMac
from rtl.tensor.lanes import (
    NUMBERS,
    OTHERS,
    RAW_BITS,
    RAW_WORD,
    moving_lane,
    slot_of,
    used_bits,
    weight_bits,
    weight_lane,
)

__all__ = ["PE"]


class PE(wiring.Component):
    """south = RN32(west * weight + north), or north where the beat is not used; dot products as PeMac. Of a sparse
    beat's numbers it is the one in the slot that came with the weight.

    Timing: `west` and `north` of cycle t give `east` in cycle t + 1 and `south` in t + 2. A weight that
    arrives in cycle t becomes the shadow weight from t + 1 on; the shadow weight it replaces goes east in
    t + 1. A beat with `swap` in cycle t uses the shadow weight of cycle t, and so do later ones. With
    `shift` in cycle t `north_raw` becomes the shadow weight, and the one before is at `south_raw` in t + 2.
    Reset: weights are +0; data on their way are not reset, their valid bits are.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        tensor = cfg.tensor
        ports = {
            "west": In(moving_lane(tensor)),
            "east": Out(moving_lane(tensor)),
            "west_weight": In(weight_lane(tensor)),
            "east_weight": Out(weight_lane(tensor)),
            "north": In(32),
            "south": Out(32),
            "north_raw": In(RAW_WORD),
            "south_raw": Out(RAW_WORD),
        }
        if tensor.sparsity:
            ports |= {"west_others": In(OTHERS), "east_others": Out(OTHERS)}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tensor = self.cfg.tensor
        m.submodules.mac = mac = PeMac(mx=tensor.mx, nvfp4=tensor.nvfp4)
        shadow = Signal(weight_bits(tensor))
        raw = Signal()
        working = Signal(used_bits(tensor))
        chosen = Signal(used_bits(tensor))
        moving = Signal(moving_lane(tensor))
        leaving = Signal(weight_bits(tensor), reset_less=True)
        leaving_raw = Signal(reset_less=True)
        leaves = Signal()
        shifts = Signal()
        sinking = Signal(RAW_WORD, reset_less=True)

        swap = self.west.swap & (self.west.use | ~fault("a swap is ignored in a beat that is not used"))
        m.d.comb += [
            chosen.eq(Mux(swap, shadow, working)),
            mac.a.eq(self.west.operand),
            Value.cast(mac.b).eq(Mux(fault("a swap takes effect one beat late"), working, chosen)),
            mac.acc.eq(self.north),
            mac.enable.eq(self.west.use),
            self.south.eq(mac.out),
            self.east.eq(moving),
            self.east_weight.bits.eq(leaving),
            self.east_weight.raw.eq(leaving_raw),
            self.east_weight.valid.eq(leaves),
            self.east_weight.shift.eq(shifts),
            self.south_raw.eq(sinking),
        ]
        if tensor.mx:
            m.d.comb += mac.dot.eq(self.west.dot)
        if tensor.nvfp4:
            m.d.comb += mac.scale_e4m3.eq(self.west.scale_e4m3)
        if tensor.sparsity:
            slot = Mux(fault("the slot is that of the shadow weight"), slot_of(shadow), slot_of(chosen))
            self._choose(m, mac, Mux(fault("the slot of a sparse weight is ignored"), 0, slot))
        m.d.sync += [
            moving.eq(self.west),
            working.eq(chosen),
            leaves.eq(self.west_weight.valid),
            shifts.eq(self.west_weight.shift),
        ]
        with m.If(self.west_weight.valid):
            m.d.sync += [
                shadow.eq(self.west_weight.bits),
                raw.eq(self.west_weight.raw),
                leaving.eq(
                    Mux(
                        fault("the weight that arrives goes east, not the one it replaces"),
                        self.west_weight.bits,
                        shadow,
                    )
                ),
                leaving_raw.eq(raw),
            ]
            with m.If(fault("a load goes straight into the working weight")):
                m.d.sync += working.eq(self.west_weight.bits)
        with m.Elif(self.west_weight.shift):
            m.d.sync += [
                shadow.eq(self.north_raw.bits),
                raw.eq(self.north_raw.raw),
                leaving.eq(
                    Mux(fault("the weight that enters shifts out, not the one before"), self.north_raw.bits, shadow)
                ),
                leaving_raw.eq(raw | fault("a weight that shifts out was raw, whatever it was")),
            ]
            with m.If(fault("a shift takes the working weight too")):
                m.d.sync += working.eq(self.north_raw.bits)
        with m.If(shifts):
            m.d.sync += sinking.eq(Cat(leaving[:RAW_BITS], leaving_raw))
        return m

    def _choose(self, m: Module, mac: PeMac, slot: Value) -> None:
        """The number of a sparse beat that meets the weight; the numbers go east."""
        others = Signal(OTHERS, reset_less=True)
        m.d.comb += self.east_others.eq(others)
        with m.If(self.west.sparse):
            m.d.sync += others.eq(self.west_others)
            with m.Switch(slot):
                for n in range(1, NUMBERS):
                    with m.Case(n):
                        m.d.comb += mac.a.operand.eq(self.west_others[n - 1])
