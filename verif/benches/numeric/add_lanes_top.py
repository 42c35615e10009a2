"""Both forms of a row of adders on the same inputs, compared in hardware on every cycle."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.numeric.fp32.add_lanes import Fp32AddLanes

__all__ = ["AddLanesTop", "LANES"]

LANES = 16


class AddLanesTop(wiring.Component):
    """`compared` counts rows of sums, `mismatches` those that differ."""

    valid: In(1)
    a: In(32 * LANES)
    b: In(32 * LANES)
    rounding: In(2)
    random: In(32)
    out: Out(32 * LANES)
    compared: Out(32)
    mismatches: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.structural = structural = Fp32AddLanes(LANES)
        m.submodules.native = native = Fp32AddLanes(LANES, "native")
        for form in (structural, native):
            m.d.comb += [form.valid.eq(self.valid), form.a.eq(self.a), form.b.eq(self.b)]
            m.d.comb += [form.rounding.eq(self.rounding), form.random.eq(self.random)]
        due: Signal | object = self.valid
        for stage in range(Fp32AddLanes.LATENCY):
            late = Signal(name=f"due{stage}")
            m.d.sync += late.eq(due)
            due = late
        with m.If(due):
            m.d.sync += [
                self.compared.eq(self.compared + 1),
                self.mismatches.eq(self.mismatches + (structural.out != native.out)),
            ]
        m.d.comb += self.out.eq(native.out)
        return m
