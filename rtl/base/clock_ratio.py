"""A clock slower than the root clock by a ratio of two whole numbers."""

from math import gcd
from typing import Self

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["ClockRatio"]


class ClockRatio(wiring.Component):
    """`tick` is 1 in exactly `num` of any `den` cycles in a row, as evenly as whole cycles allow.

    The ratio is reduced. Tick k (from 0) is in cycle ceil(k * den / num) after reset. With `bits`, inputs of that width
    say it, `ticks` of `cycles`, reduced too; they stand still from reset on.
    """

    def __init__(self, num: int, den: int, bits: int = 0):
        if not 1 <= num <= den:
            raise ValueError(f"a clock ratio must be above 0 and at most 1, not {num}/{den}")
        self.num = num // gcd(num, den)
        self.den = den // gcd(num, den)
        self.bits = bits
        # counts in steps of num modulo den, ticks where it begins a new round; seen by proofs too
        self.phase = Signal(bits + 1 if bits else range(2 * self.den))
        chosen = {"ticks": In(bits, init=self.num), "cycles": In(bits, init=self.den)} if bits else {}
        super().__init__({"tick": Out(1), **chosen})

    @classmethod
    def of_mhz(cls, part: int, whole: int, bits: int = 0) -> Self:
        """The ratio of two clocks in MHz."""
        return cls(part, whole, bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase = self.phase
        num: ValueLike = self.ticks if self.bits else self.num
        den: ValueLike = self.cycles if self.bits else self.den
        m.d.comb += self.tick.eq(phase < num)
        with m.If(fault("a clock ratio ticks once too early in a round")):
            m.d.comb += self.tick.eq(phase <= num)
        after = phase + num
        wrapped = Mux(fault("a clock ratio drops the remainder at each tick"), 0, after - den)
        m.d.sync += phase.eq(Mux(after >= den, wrapped, after))
        return m
