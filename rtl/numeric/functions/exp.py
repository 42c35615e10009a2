"""The exp unit: range reduction by log2(e), a table of 2^(i/128), a parabola between its entries."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.exp_table import (
    C1,
    C1_BITS,
    C2,
    C2_BITS,
    INDEX_BITS,
    LOG2E,
    LOG2E_BITS,
    POWER_BITS,
    REST_BITS,
    T_BITS,
    TABLE,
)
from rtl.contract.formats import CANONICAL_NAN_FP32, INFINITY_FP32
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.view import Fp32

__all__ = ["Exp"]

LARGE_FIELD = 134  # exponent field of 128: beyond it exp is 0 or infinity
_SPECIAL = data.StructLayout({"large": 1, "nan": 1, "minus": 1})
_WHOLE_BITS = 9  # of floor(d * log2(e)), with sign: |d| is below 128
_DROPPED = POWER_BITS - 23  # bits of a power below the last place of a normal result


class Exp(wiring.Component):
    """out = exp(RN32(x - m)), FP32 codes, at most 0.53 ulp from the truth; docs/exp.md has the analysis.

    Gradual underflow, overflow to infinity, exp(-inf) = +0, canonical NaN.
    Timing: one result a cycle; inputs of cycle t give `out` in cycle t + LATENCY: difference; product with
    log2(e); power of two of the fraction; rounding. Data registers are not reset.
    """

    LATENCY = 4

    x: In(32)
    m: In(32)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.difference = difference = Fp32AddComb()
        d = Signal(32, reset_less=True)
        m.d.comb += [
            difference.a.eq(self.x),
            difference.b.eq(self.m),
            difference.subtract.eq(~fault("exp adds m instead of subtracting it")),
        ]
        m.d.sync += d.eq(difference.out)

        special = Signal(_SPECIAL, reset_less=True)
        whole = Signal(signed(_WHOLE_BITS), reset_less=True)
        fraction = Signal(T_BITS, reset_less=True)
        self._scale(m, d, special, whole, fraction)

        special_next = Signal(_SPECIAL, reset_less=True)
        whole_next = Signal(signed(_WHOLE_BITS), reset_less=True)
        power = Signal(POWER_BITS + 1, reset_less=True)
        m.d.sync += [special_next.eq(special), whole_next.eq(whole), power.eq(self._power(m, fraction))]

        rounded = Signal(32, reset_less=True)
        m.d.sync += rounded.eq(self._round(m, special_next, whole_next, power))
        m.d.comb += self.out.eq(rounded)
        return m

    def _scale(self, m: Module, d: Value, special: data.View, whole: Value, fraction: Value) -> None:
        """t = d * log2(e), towards zero in units of 2^-T_BITS, as its floor and the rest."""
        difference = Fp32(d)
        field = difference.exponent
        product = Signal(24 + LOG2E_BITS + 1)
        shift = Signal(6)
        size = Signal(_WHOLE_BITS - 1 + T_BITS)
        t = Signal(_WHOLE_BITS + T_BITS)
        # d = significand * 2^(field - 150); below 2^-36 nothing of t is left
        places = 150 + LOG2E_BITS - T_BITS
        tiny = field < places - 63
        m.d.comb += [
            product.eq(Cat(difference.fraction, Const(1, 1)) * LOG2E),
            shift.eq(places - field),
            size.eq(Mux(tiny, 0, product >> shift)),
            t.eq(
                Mux(difference.sign & ~fault("a negative fraction of exp is not brought between 0 and 1"), -size, size)
            ),
        ]
        m.d.sync += [
            whole.eq(t[T_BITS:]),
            fraction.eq(t[:T_BITS]),
            special.large.eq(field >= LARGE_FIELD),
            special.nan.eq(difference.is_nan),
            special.minus.eq(difference.sign),
        ]

    def _power(self, m: Module, fraction: Value) -> Value:
        """2^fraction in units of 2^-POWER_BITS, from 2^POWER_BITS to below twice that."""
        m.submodules.table = table = Memory(shape=POWER_BITS + 1, depth=1 << INDEX_BITS, init=TABLE)
        port = table.read_port(domain="comb")
        rest = fraction[:REST_BITS]
        index = fraction[REST_BITS:]
        bend = Signal(C1_BITS)
        slope = Signal(C1_BITS + 1)
        rise = Signal(REST_BITS)  # below 2^REST_BITS: 2^(1/128) - 1 is below 1/128; a product of 64 bits is cheap
        gain = Signal(POWER_BITS - INDEX_BITS + 1)
        m.d.comb += [
            port.addr.eq(index - (index.all() & fault("the last entry of the table of exp is the one before it"))),
            bend.eq(Mux(fault("the parabola of exp has no bend"), 0, (rest * C2) >> (T_BITS + C2_BITS - C1_BITS))),
            slope.eq(C1 + bend),
            rise.eq((rest * slope) >> C1_BITS),
            gain.eq((port.data * rise) >> T_BITS),
        ]
        return port.data + gain

    def _round(self, m: Module, special: data.View, whole: Value, power: Value) -> Value:
        """power * 2^(whole - POWER_BITS) as FP32."""
        small = Signal()  # subnormal, or rounds up to the smallest normal
        shift = Signal(5)
        shifted = Signal(POWER_BITS + 1)
        lost = Signal()
        base = Signal(8)
        code = Signal(32)
        m.d.comb += small.eq(whole < -126)
        with m.If(small):
            # 31 places leave nothing that could be rounded up
            m.d.comb += shift.eq(Mux(whole < -126 - 31, 31, -126 - whole))
        m.d.comb += [
            shifted.eq(Mux(small & fault("subnormal results of exp become zero"), 0, power >> shift)),
            lost.eq((power & ((Const(1, 1) << shift) - 1)).any()),
            base.eq(Mux(small, 0, whole + 126)),  # the hidden bit adds one
        ]
        kept = shifted[_DROPPED:]
        half = shifted[_DROPPED - 1]
        up = half & (shifted[: _DROPPED - 1].any() | lost | kept[0]) & ~fault("exp rounds down ties and all above them")
        m.d.comb += code.eq((base << 23) + kept + up)
        overflow = (
            (special.large & ~fault("numbers from 128 up do not overflow exp"))
            | (whole >= 128)
            | (code >= INFINITY_FP32)
        )
        result = Signal(32)
        with m.If(special.nan):
            m.d.comb += result.eq(CANONICAL_NAN_FP32)
        with m.Elif(special.minus & special.large):
            m.d.comb += result.eq(0)
        with m.Elif(overflow & ~special.minus):
            m.d.comb += result.eq(INFINITY_FP32)
        with m.Else():
            m.d.comb += result.eq(code)
        return result
