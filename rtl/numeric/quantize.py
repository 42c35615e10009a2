"""MX quantisation of one block: the scale that 32 numbers share, and the numbers divided by it."""

from amaranth.hdl import Module, Mux, Signal, Value, ValueLike, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import passed_on, planted
from rtl.contract.formats import FORMATS, MX_BLOCK, MX_EMAX, MX_SCALE_NAN
from rtl.numeric.quantize_element import FRACTION_BITS, QuantizeElement

__all__ = ["Quantize"]

_LEAST = {name: 1 - FORMATS[name].bias for name in MX_EMAX}
"""Exponent of the smallest normal number."""


class Quantize(wiring.Component):
    """`elements` (8 bits each) and `scale` of the 32 codes in `x`, LATENCY cycles later. A block a cycle.

    `src`: BF16 or FP16, `fmt`: E4M3FN, E5M2 or E2M1 (formats.Format.code), `rule`: isa.ScaleRule. `enable`: without it
    all registers keep their values. Rules: docs/numerics.md; source: OCP MX 1.0, section 6.3.
    """

    LATENCY = 2

    FAULTS = {
        **QuantizeElement.FAULTS,
        6: "the scale divided by is not the clamped one",
        7: "infinities and NaNs count as large numbers",
        8: "a block of zeros has a scale other than 0",
        9: "the rule is always the default",
        10: "the last number is not looked at for the largest",
        11: "elements of a block with a NaN are not zero",
        12: "the largest number counts as normal although it is subnormal",
    }

    x: In(16 * MX_BLOCK)
    src: In(4)
    fmt: In(4)
    rule: In(1)
    enable: In(1, init=1)
    elements: Out(8 * MX_BLOCK)
    scale: Out(8)

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plant = self.plant
        largest = Signal(15)
        half = Signal()
        fmt = Signal.like(self.fmt)
        rule = Signal()
        x = Signal.like(self.x, reset_less=True)
        with m.If(self.enable):
            m.d.sync += [
                x.eq(self.x),
                largest.eq(self._largest(m)),
                half.eq(self.src == FORMATS["fp16"].code),
                fmt.eq(self.fmt),
                rule.eq(self.rule & ~planted(plant, 9)),
            ]

        field = Signal(8)  # floor(log2 largest) + 127; 0: below that of FP32's normal numbers
        m.d.comb += field.eq(largest[7:])
        with m.If(half):
            m.d.comb += field.eq(largest[10:] + 112)
            with m.If(~largest[10:].any() & ~planted(plant, 12)):
                m.d.comb += field.eq(0)
                for leading in range(FRACTION_BITS):
                    with m.If(largest[leading]):
                        m.d.comb += field.eq(103 + leading)

        below = Signal(4)  # exponent of the scale below that of the largest number
        least = Signal(signed(5))
        with m.Switch(fmt):
            for name, most in MX_EMAX.items():
                with m.Case(FORMATS[name].code):
                    m.d.comb += [below.eq(most - rule), least.eq(_LEAST[name])]
        exact = Signal(signed(9))
        scale = Signal(8)
        lowest = Signal(signed(10))
        special = Signal()
        m.d.comb += [
            exact.eq(field - below),
            scale.eq(Mux(exact < 0, 0, exact)),
            lowest.eq(Mux(planted(plant, 6), exact, scale) + least),
            special.eq((largest >= Mux(half, 0x7C00, 0x7F80)) & ~planted(plant, 7)),
        ]
        with m.If(planted(plant, 8) & ~largest.any()):
            m.d.comb += scale.eq(127)

        elements: list[Value] = []
        for n in range(MX_BLOCK):
            m.submodules[f"element{n}"] = element = QuantizeElement(passed_on(plant, *QuantizeElement.FAULTS))
            m.d.comb += [
                element.x.eq(x[16 * n : 16 * n + 16]),
                element.half.eq(half),
                element.dst.eq(fmt),
                element.lowest.eq(lowest),
            ]
            elements.append(element.out)
        with m.If(self.enable):
            for n, element in enumerate(elements):
                held = special & ~planted(plant, 11)
                m.d.sync += self.elements[8 * n : 8 * n + 8].eq(Mux(held, 0, element))
            m.d.sync += self.scale.eq(Mux(special, MX_SCALE_NAN, scale))
        return m

    def _largest(self, m: Module) -> Value:
        """The largest magnitude: codes of one format grow with it. A tree of comparisons."""
        level: list[Value] = [self.x[16 * n : 16 * n + 15] for n in range(MX_BLOCK)]
        level[-1] = Mux(planted(self.plant, 10), 0, level[-1])
        while len(level) > 1:
            following: list[Value] = []
            for pair in range(len(level) // 2):
                a, b = level[2 * pair], level[2 * pair + 1]
                larger = Signal(15, name=f"larger{len(level) // 2}_{pair}")
                m.d.comb += larger.eq(Mux(a > b, a, b))
                following.append(larger)
            level = following
        return level[0]
