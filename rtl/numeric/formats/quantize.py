"""MX quantisation of one block: the scale that 32 numbers share, and the numbers divided by it."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.placed import Repeated
from rtl.contract.formats import FORMATS, MX_BLOCK, MX_EMAX, MX_SCALE_NAN
from rtl.numeric.formats.quantize_element import FRACTION_BITS, SHARED, QuantizeElement

__all__ = ["Quantize"]

_LEAST = {name: 1 - FORMATS[name].bias for name in MX_EMAX}
"""Exponent of the smallest normal number."""


class Quantize(wiring.Component):
    """`elements` (8 bits each) and `scale` of the 32 codes in `x`, LATENCY cycles later. A block a cycle.

    `blocks`: so many, side by side. `src`: BF16 or FP16, `fmt`: E4M3FN, E5M2 or E2M1 (formats.Format.code), `rule`:
    isa.ScaleRule. `hold`: all registers keep what they have. Rules: docs/numerics.md; source: OCP MX 1.0, section 6.3.
    """

    LATENCY = 2

    def __init__(self, blocks: int = 1):
        self.blocks = blocks
        super().__init__(
            {
                "x": In(16 * MX_BLOCK * blocks),
                "src": In(4),
                "fmt": In(4),
                "rule": In(1),
                "hold": In(1),
                "elements": Out(8 * MX_BLOCK * blocks),
                "scale": Out(8 * blocks),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        half = Signal()
        fmt = Signal.like(self.fmt)
        rule = Signal()
        x = Signal.like(self.x, reset_less=True)
        below = Signal(4)  # exponent of the scale below that of the largest number
        least = Signal(signed(5))
        with m.If(~self.hold):
            m.d.sync += [
                x.eq(self.x),
                half.eq(self.src == FORMATS["fp16"].code),
                fmt.eq(self.fmt),
                rule.eq(self.rule & ~fault("the rule of quantisation is always the default")),
            ]
        with m.Switch(fmt):
            for name, most in MX_EMAX.items():
                with m.Case(FORMATS[name].code):
                    m.d.comb += [below.eq(most - rule), least.eq(_LEAST[name])]

        count = MX_BLOCK * self.blocks
        lanes = Repeated(f"plexus_quantize_elements_{count}", QuantizeElement, count, shared=SHARED)
        m.submodules.lanes = lanes
        m.d.comb += [
            lanes.hold.eq(self.hold),
            lanes.half.eq(half),
            lanes.dst.eq(fmt),
            lanes.x.eq(x),
            self.elements.eq(lanes.out),
        ]
        width = 16 * MX_BLOCK
        lowest: list[Value] = []
        special: list[Value] = []
        for b in range(self.blocks):
            largest = Signal(15, name=f"largest{b}")
            scale = Signal(8, name=f"scale{b}")
            now = Signal(8, name=f"now{b}")
            with m.If(~self.hold):
                m.d.sync += [largest.eq(self._largest(m, self.x[width * b : width * (b + 1)], b)), scale.eq(now)]
            m.d.comb += self.scale[8 * b : 8 * b + 8].eq(scale)
            exact = Signal(signed(9), name=f"exact{b}")
            clamped = Signal(8, name=f"clamped{b}")
            low = Signal(signed(10), name=f"lowest{b}")
            poisoned = Signal(name=f"special{b}")
            m.d.comb += [
                exact.eq(self._exponent(m, largest, half, b) - below),
                clamped.eq(Mux(exact < 0, 0, exact)),
                low.eq(Mux(fault("the scale divided by is not the clamped one"), exact, clamped) + least),
                poisoned.eq(
                    (largest >= Mux(half, 0x7C00, 0x7F80)) & ~fault("infinities and NaNs count as large numbers")
                ),
                now.eq(Mux(poisoned, MX_SCALE_NAN, clamped)),
            ]
            with m.If(fault("a block of zeros has a scale other than 0") & ~largest.any()):
                m.d.comb += now.eq(127)
            lowest += [low.as_unsigned()] * MX_BLOCK
            special += [poisoned & ~fault("elements of a block with a NaN are not zero")] * MX_BLOCK
        m.d.comb += [lanes.lowest.eq(Cat(lowest)), lanes.special.eq(Cat(special))]
        return m

    def _exponent(self, m: Module, largest: Value, half: Value, block: int) -> Value:
        """floor(log2 largest) + 127, of FP16 in full; 0 for numbers below the normal ones of FP32 and for zero."""
        field = Signal(8, name=f"field{block}")
        m.d.comb += field.eq(largest[7:])
        with m.If(half):
            m.d.comb += field.eq(largest[10:] + 112)
            with m.If(~largest[10:].any() & ~fault("the largest number counts as normal although it is subnormal")):
                m.d.comb += field.eq(0)
                for leading in range(FRACTION_BITS):
                    with m.If(largest[leading]):
                        m.d.comb += field.eq(103 + leading)
        return field

    def _largest(self, m: Module, x: Value, block: int) -> Value:
        """The largest magnitude: codes of one format grow with it. A tree of comparisons."""
        level: list[Value] = [x[16 * n : 16 * n + 15] for n in range(MX_BLOCK)]
        level[-1] = Mux(fault("the last number is not looked at for the largest"), 0, level[-1])
        while len(level) > 1:
            following: list[Value] = []
            for pair in range(len(level) // 2):
                a, b = level[2 * pair], level[2 * pair + 1]
                larger = Signal(15, name=f"larger{block}_{len(level) // 2}_{pair}")
                m.d.comb += larger.eq(Mux(a > b, a, b))
                following.append(larger)
            level = following
        return level[0]
