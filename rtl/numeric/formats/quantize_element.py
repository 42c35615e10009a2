"""One element of an MX block: divided by the block's power of two and rounded once."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import FORMATS, MX_EMAX

__all__ = ["FRACTION_BITS", "SHARED", "QuantizeElement"]

FRACTION_BITS = 10  # of FP16; BF16 has fewer
SHARED = ("hold", "half", "dst")
"""Ports that are the same for all elements."""

_NOTHING = FRACTION_BITS + 2  # a shift that leaves less than a half of the significand


class QuantizeElement(wiring.Component):
    """`out` is `x` (BF16, or FP16 with `half`) over 2^(scale - 127), in format `dst`; 0 with `special`.

    `lowest`: scale plus the exponent of the smallest normal number of `dst`, the same for all elements of a block.
    Nearest even, subnormals on both sides kept, at most the largest number; E2M1 in the low 4 bits.
    Timing: registered, unless `hold`; the register has no reset.
    """

    hold: In(1)
    half: In(1)
    dst: In(4)
    x: In(16)
    lowest: In(signed(10))
    special: In(1)
    out: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fraction = Signal(FRACTION_BITS)
        field = Signal(8)  # of FP32: biased by 127
        empty = Signal()  # the exponent field of x
        with m.If(self.half):
            m.d.comb += [fraction.eq(self.x[:10]), field.eq(self.x[10:15] + 112), empty.eq(~self.x[10:15].any())]
        with m.Else():
            m.d.comb += [fraction.eq(self.x[:7] << 3), field.eq(self.x[7:15]), empty.eq(~self.x[7:15].any())]

        # normalised: significand has its leading 1 on top, or is 0
        significand = Signal(FRACTION_BITS + 1)
        exponent = Signal(signed(10))
        m.d.comb += [significand.eq(Cat(fraction, 1)), exponent.eq(field)]
        with m.If(empty):
            m.d.comb += significand.eq(
                Mux(fault("subnormal numbers that come in are taken for normal ones"), Cat(fraction, 1), 0)
            )
            for leading in range(FRACTION_BITS):
                with m.If(fraction[leading] & ~fault("subnormal numbers that come in are taken for normal ones")):
                    zeros = FRACTION_BITS - leading
                    m.d.comb += [
                        significand.eq(fraction[: leading + 1] << zeros),
                        exponent.eq(field + (1 - zeros)),
                    ]

        # the last place of the result is at bit `shift` of the significand
        above = Signal(signed(11))  # exponent of the quotient over that of the smallest normal number
        normal = Signal()
        drop = Signal(4)
        shift = Signal(4)
        base = Signal(6)  # exponent field less one: the hidden bit adds it
        m.d.comb += [above.eq(exponent - self.lowest), normal.eq((above >= 0) & significand.any())]
        with m.Switch(self.dst):
            for name in MX_EMAX:
                with m.Case(FORMATS[name].code):
                    m.d.comb += drop.eq(FRACTION_BITS - FORMATS[name].mantissa)
        with m.If(normal):
            m.d.comb += [shift.eq(drop), base.eq(above)]
        with m.Elif(above + _NOTHING < drop):
            m.d.comb += shift.eq(_NOTHING)
        with m.Elif(above < 0):
            m.d.comb += shift.eq(drop - above)

        wide = Signal(FRACTION_BITS + 2)
        shifted = Signal(FRACTION_BITS + 2)  # bit 0 is the half
        lost = Signal()
        up = Signal()
        rounded = Signal(5)
        m.d.comb += [
            wide.eq(Cat(Const(0, 1), significand)),
            shifted.eq(wide >> shift),
            lost.eq((shifted << shift)[: len(wide)] != wide),
            up.eq(shifted[0] & (lost | shifted[1] | fault("quantisation rounds ties up instead of to even"))),
            rounded.eq(shifted[1:] + up),
        ]
        flushed = ~normal & fault("results of quantisation below the normal range become zero")
        out = Signal(8, reset_less=True)
        code = Signal(8)
        m.d.comb += self.out.eq(out)
        with m.If(~self.hold):
            m.d.sync += out.eq(Mux(self.special, 0, code))
        sign = self.x[15] & (significand.any() | ~fault("zeros lose their sign in quantisation"))
        with m.Switch(self.dst):
            for name in MX_EMAX:
                fmt = FORMATS[name]
                bits = fmt.exponent + fmt.mantissa
                largest = (1 << bits) - 1 - {"e4m3fn": 1, "e5m2": 4, "e2m1": 0}[name]
                magnitude = Signal(9, name=f"magnitude_{name}")
                low = Signal(bits, name=f"low_{name}")
                with m.Case(fmt.code):
                    m.d.comb += [
                        magnitude.eq((base << fmt.mantissa) + rounded),
                        low.eq(Mux(flushed, 0, magnitude)),
                        code.eq(Cat(low, sign)),
                    ]
                    with m.If(magnitude > largest):
                        m.d.comb += low.eq(
                            largest + fault("what is too large to quantise becomes the code above the largest number")
                        )
        return m
