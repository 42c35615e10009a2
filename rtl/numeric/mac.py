"""Fused multiply-add: the arithmetic of a processing element."""

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import passed_on, planted
from rtl.numeric.align import ADDEND, EXCESS, AlignAdd
from rtl.numeric.operand import EXPONENT_BIAS, EXPONENT_SPECIAL, OPERAND
from rtl.numeric.round import NormaliseRound

__all__ = ["Mac"]


class Mac(wiring.Component):
    """out = RN32(a * b + acc) with one rounding; with `enable` = 0, out = acc unchanged.

    a, b: operands of up to 12 significant bits; acc, out: FP32 codes.
    Timing: one result a cycle; inputs of cycle t give `out` in cycle t + LATENCY. First cycle: the
    exact 24-bit product; second: align, add, normalise, round. Data registers are not reset.
    """

    LATENCY = 2
    FAULTS = {
        1: "bits shifted out by alignment are forgotten",
        2: "a difference of zero has a sign",
        3: "ties are rounded up, not to even",
        4: "a subnormal result becomes zero",
        5: "infinity times zero is infinity",
        6: "an unused element adds its product",
    }

    a: In(OPERAND)
    b: In(OPERAND)
    acc: In(32)
    enable: In(1)
    out: Out(32)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        assert EXCESS == 2 * EXPONENT_BIAS + 22 - 150  # else the product's exponent needs an adder
        m = Module()
        m.submodules.align = align = AlignAdd(passed_on(self.plant, 1, 2))
        m.submodules.round = last = NormaliseRound(passed_on(self.plant, 3, 4))

        product = Signal(ADDEND)
        a_special = Signal()
        b_special = Signal()
        a_nan = Signal()
        b_nan = Signal()
        zero = Signal()
        m.d.comb += [
            a_special.eq(self.a.exponent == EXPONENT_SPECIAL),
            b_special.eq(self.b.exponent == EXPONENT_SPECIAL),
            a_nan.eq(a_special & self.a.significand[-2]),
            b_nan.eq(b_special & self.b.significand[-2]),
            zero.eq(~(self.a.significand[-1] & self.b.significand[-1])),
            product.significand.eq(self.a.significand * self.b.significand),
            # A significand counts in units of 2^-11, so that EXCESS is all that lies between the exponents.
            product.exponent.eq(Mux(zero, 0, self.a.exponent + self.b.exponent)),
            product.sign.eq(self.a.sign ^ self.b.sign),
            product.infinity.eq(a_special | b_special),
            product.nan.eq(a_nan | b_nan | ((a_special | b_special) & zero & ~planted(self.plant, 5))),
        ]

        multiplied = Signal(ADDEND, reset_less=True)
        waiting = Signal(32, reset_less=True)
        used = Signal(reset_less=True)
        result = Signal(32, reset_less=True)
        m.d.sync += [
            multiplied.eq(product),
            waiting.eq(self.acc),
            used.eq(self.enable | planted(self.plant, 6)),
        ]
        m.d.comb += [
            align.addend.eq(multiplied),
            align.acc.eq(waiting),
            last.sum.eq(align.sum),
        ]
        m.d.sync += result.eq(Mux(used, last.out, waiting))
        m.d.comb += self.out.eq(result)
        return m
