"""A lane of BN_STATS, BN_AGGR and RECIPROCAL: three adders, a multiplier, a reciprocal, and where their results go."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.multiply_comb import Fp32MultiplyComb
from rtl.numeric.fp32.reciprocal import Reciprocal
from rtl.numeric.fp32.view import Fp32
from rtl.vector.bn_steps import BN_STEP, PARTS, Divide, Give, Multiply, Shift, Spread, Total

__all__ = ["SHARED", "BnLane"]

SHARED = ("step", "count")
"""Ports that are the same for all lanes."""


class BnLane(wiring.Component):
    """Does what `step` says. Every operation takes one cycle (a reciprocal Reciprocal.LATENCY), `out` none.

    `count` is an FP32 number that all lanes share. Data registers are not reset; `clear`: sums begin with +0.
    """

    step: In(BN_STEP)
    x: In(32)
    count: In(32)
    out: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.step
        totals = Array([Signal(32, name=f"total{i}", reset_less=True) for i in range(PARTS)])
        spreads = Array([Signal(32, name=f"spread{i}", reset_less=True) for i in range(PARTS)])
        came = [Signal(32, name=f"came{i}", reset_less=True) for i in range(3)]
        last_count = Signal(32, reset_less=True)
        origin = Signal(32, reset_less=True)
        apart = Signal(32, reset_less=True)
        square = Signal(32, reset_less=True)
        product = Signal(32, reset_less=True)
        share = Signal(32, reset_less=True)

        for i in range(3):
            with m.If(step.store[i]):
                m.d.sync += came[i].eq(self.x)
        with m.If(step.advance):
            m.d.sync += last_count.eq(came[0])
        with m.If(step.clear):
            m.d.sync += origin.eq(0)
            m.d.sync += [value.eq(0) for value in (*totals, *spreads)]
        with m.If(step.settle):
            m.d.sync += totals[0].eq(totals[1])

        m.submodules.shifter = shifter = Fp32AddComb()
        m.d.comb += [shifter.a.eq(origin), shifter.b.eq(product)]
        with m.Switch(step.shift):
            with m.Case(Shift.FIRST, Shift.APART):
                taken_off = Mux(step.shift == Shift.FIRST, self.x, origin)
                m.d.comb += [
                    shifter.a.eq(self.x),
                    shifter.b.eq(Mux(fault("element 0 is not taken off"), 0, taken_off)),
                    shifter.subtract.eq(1),
                ]
            with m.Case(Shift.BETWEEN):
                m.d.comb += [shifter.a.eq(came[1]), shifter.b.eq(origin), shifter.subtract.eq(1)]
        with m.If((step.shift != Shift.NONE) & (step.shift != Shift.MOVE)):
            m.d.sync += apart.eq(shifter.out)
        with m.If(step.shift == Shift.MOVE):
            m.d.sync += origin.eq(shifter.out)
        with m.If(step.shift == Shift.FIRST):
            m.d.sync += origin.eq(self.x)

        m.submodules.adder = adder = Fp32AddComb()
        m.d.comb += [adder.a.eq(totals[step.to]), adder.b.eq(apart)]
        with m.Switch(step.total):
            with m.Case(Total.JOIN):
                m.d.comb += adder.b.eq(totals[step.other])
            with m.Case(Total.COUNT):
                m.d.comb += [adder.a.eq(totals[0]), adder.b.eq(came[0])]
        with m.If((step.total == Total.ADD) | (step.total == Total.JOIN)):
            m.d.sync += totals[step.to].eq(adder.out)
        with m.If(step.total == Total.COUNT):
            m.d.sync += totals[1].eq(adder.out)

        m.submodules.spreader = spreader = Fp32AddComb()
        place = Signal(3)
        m.d.comb += [place.eq(step.to), spreader.a.eq(spreads[place]), spreader.b.eq(product)]
        with m.Switch(step.spread):
            with m.Case(Spread.ADD):
                m.d.comb += [place.eq(step.square_to), spreader.b.eq(square)]
            with m.Case(Spread.JOIN):
                m.d.comb += spreader.b.eq(spreads[step.other])
            with m.Case(Spread.LESS):
                m.d.comb += spreader.subtract.eq(1)
            with m.Case(Spread.CAME):
                m.d.comb += [place.eq(0), spreader.b.eq(came[2])]
            with m.Case(Spread.BETWEEN):
                m.d.comb += place.eq(0)
        with m.If(step.spread != Spread.NONE):
            m.d.sync += spreads[place].eq(spreader.out)

        m.submodules.divider = divider = Reciprocal()
        m.d.comb += [divider.start.eq(step.divide != Divide.NONE), divider.x.eq(self.count)]
        with m.Switch(step.divide):
            with m.Case(Divide.TOTAL):
                m.d.comb += divider.x.eq(totals[1])
            with m.Case(Divide.CAME):
                m.d.comb += divider.x.eq(came[0])

        m.submodules.multiplier = multiplier = Fp32MultiplyComb()
        factors = {
            Multiply.SQUARE: (apart, apart),
            Multiply.MEAN: (totals[step.to], divider.out),
            Multiply.CORRECT: (totals[step.to], product),
            Multiply.SHARE: (last_count, divider.out),
            Multiply.MOVE: (apart, share),
            Multiply.MASS: (totals[0], share),
            Multiply.BETWEEN: (square, product),
            Multiply.VARIANCE: (spreads[0], divider.out),
        }
        empty = Signal()
        result = Signal(32)
        m.d.comb += [
            empty.eq(Fp32(totals[1]).is_zero & ~fault("the share of nothing is a NaN")),
            result.eq(multiplier.out),
        ]
        with m.Switch(step.multiply):
            for which, (a, b) in factors.items():
                with m.Case(which):
                    m.d.comb += [multiplier.a.eq(a), multiplier.b.eq(b)]
                    target = {Multiply.SQUARE: square, Multiply.SHARE: share}.get(which, product)
                    if which in (Multiply.SHARE, Multiply.VARIANCE):
                        m.d.comb += result.eq(Mux(empty, 0, multiplier.out))
                    m.d.sync += target.eq(result)

        below = Fp32(spreads[step.to]).sign & ~fault("a spread below zero stays")  # its NaN is positive
        gives = {
            Give.COUNT: self.count,
            Give.APART: apart,
            Give.SPREAD: Mux(below, 0, spreads[step.to]),
            Give.ORIGIN: origin,
            Give.PRODUCT: product,
            Give.INVERSE: divider.out,
        }
        with m.Switch(step.give):
            for which, value in gives.items():
                with m.Case(which):
                    m.d.comb += self.out.eq(value)
        return m
