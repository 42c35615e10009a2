"""A clock slower than the root clock by a ratio of two whole numbers."""

from math import gcd
from typing import Self

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from rtl.base.fault import fault

__all__ = ["ClockRatio"]


class ClockRatio(wiring.Component):
    """`tick` is 1 in exactly `num` of any `den` cycles in a row, as evenly as whole cycles allow.

    The ratio is reduced. Tick k (from 0) is in cycle ceil(k * den / num) after reset.
    """

    tick: Out(1)

    def __init__(self, num: int, den: int):
        if not 1 <= num <= den:
            raise ValueError(f"a clock ratio must be above 0 and at most 1, not {num}/{den}")
        self.num = num // gcd(num, den)
        self.den = den // gcd(num, den)
        # counts in steps of num modulo den, ticks where it begins a new round; seen by proofs too
        self.phase = Signal(range(2 * self.den))
        super().__init__()

    @classmethod
    def of_mhz(cls, part: int, whole: int) -> Self:
        """The ratio of two clocks in MHz."""
        return cls(part, whole)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase = self.phase
        m.d.comb += self.tick.eq(phase < self.num)
        with m.If(fault("a clock ratio ticks once too early in a round")):
            m.d.comb += self.tick.eq(phase <= self.num)
        after = phase + self.num
        wrapped = Mux(fault("a clock ratio drops the remainder at each tick"), 0, after - self.den)
        m.d.sync += phase.eq(Mux(after >= self.den, wrapped, after))
        return m
