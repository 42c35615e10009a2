"""Registers of the root clock and of two gated clocks that exchange data at every edge."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.fault import fault

__all__ = ["GateTop"]


class GateTop(wiring.Component):
    """At each edge root' = 5 root + a + 3 b + 1; where enable[0], a' = 3 a + root + b; where enable[1],
    b' = 7 b + (root ^ a). All 16 bits, all from the values before the edge. `edges` counts enable[0] in 8 bits."""

    def __init__(self):
        super().__init__({"enable": In(2), "root": Out(16), "a": Out(16), "b": Out(16), "edges": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.gate_a = gate_a = ClockGate()
        m.submodules.gate_b = gate_b = ClockGate()
        gated_domain(m, "domain_a", gate_a)
        gated_domain(m, "domain_b", gate_b)
        late = Signal()
        counts = Signal()
        m.d.sync += late.eq(self.enable[0])
        m.d.comb += [
            gate_a.enable.eq(self.enable[0] | fault("the first gate ignores its enable")),
            gate_b.enable.eq(self.enable[1]),
            counts.eq(self.enable[0]),
        ]
        with m.If(fault("the second clock has the enable of the first")):
            m.d.comb += gate_b.enable.eq(self.enable[0])
        with m.If(fault("a register of the root clock hears the enable a cycle late")):
            m.d.comb += counts.eq(late)
        m.d.sync += [self.root.eq(5 * self.root + self.a + 3 * self.b + 1), self.edges.eq(self.edges + counts)]
        m.d.domain_a += self.a.eq(3 * self.a + self.root + self.b)
        m.d.domain_b += self.b.eq(7 * self.b + (self.root ^ self.a))
        return m
