"""When a gated clock runs: while there is work, and a little longer."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Wake"]


class Wake(wiring.Component):
    """`enable` while `active` and for `linger_cycles` after it.

    The extra cycles let pulses that leave the gated domain fall again, so that the root domain, which
    goes on, does not see them twice.
    """

    active: In(1)
    enable: Out(1)

    def __init__(self, linger_cycles: int = 4):
        if linger_cycles < 1:
            raise ValueError(f"linger_cycles must be at least 1, not {linger_cycles}")
        self.linger_cycles = linger_cycles
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(range(self.linger_cycles + 1))
        m.d.comb += self.enable.eq(self.active | (left != 0))
        with m.If(self.active):
            m.d.sync += left.eq(self.linger_cycles)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return m
