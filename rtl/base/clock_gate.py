"""A clock that runs only in enabled cycles."""

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import needs_source

__all__ = ["ClockGate", "gated_domain"]


class ClockGate(wiring.Component):
    """`gated` has the rising edge of the clock that ends a cycle with `enable`, and no other.

    `enable` must come from registers of the clock (or from logic behind them). Registers on both sides
    may exchange data: at a shared edge each sees the other as before the edge. The gate
    is open during reset. It is a cell placed by Instance: Amaranth's own simulator cannot see inside it.
    """

    enable: In(1)
    gated: Out(1)

    def elaborate(self, platform: object) -> Module:
        needs_source("plexus_clock_gate.sv")
        m = Module()
        m.submodules.gate = Instance(
            "plexus_clock_gate",
            i_clk=ClockSignal(),
            i_enable=self.enable | ResetSignal(),
            o_gated=self.gated,
        )
        return m


def gated_domain(m: Module, name: str, gate: ClockGate) -> ClockDomain:
    """Add the clock domain `name` to `m`, clocked by `gate` and reset with "sync".

    `gate` must be a submodule of `m`. Use DomainRenamer(name) for what runs in it.
    """
    domain = ClockDomain(name)
    m.domains += domain
    m.d.comb += [
        ClockSignal(name).eq(gate.gated),
        ResetSignal(name).eq(ResetSignal("sync")),
    ]
    return domain
