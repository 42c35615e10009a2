"""One lane of the scalar engine: function of an FP32 number, from a table of cubics or directly."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.activation_tables import (
    BACK,
    FIRST_TABLE_FUNCTION,
    INDEX_BITS_MAX,
    POSITIVE,
    RAISED,
    ROW_BITS,
    ROW_WORDS,
    SCALE_BITS,
)
from rtl.contract.formats import CANONICAL_NAN_FP32, INFINITY_FP32
from rtl.contract.isa import Function
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.multiply_comb import Fp32MultiplyComb
from rtl.numeric.fp32.view import BIAS, ONE, Fp32, normalise
from rtl.numeric.functions.activation_table import ENTRY, FUNCTION_BITS

__all__ = ["ActivationLane"]

_STEPS = 3  # multiplications and additions of a cubic


class ActivationLane(wiring.Component):
    """out = func(x), FP32 codes; func is of isa.Function, or PASS, x as it is. `slope`: that of prelu and leaky_relu.

    With a table: ((c3 t + c2) t + c1) t + c0, each operation rounded, times the power of two of the entry,
    rounded once more if the result is subnormal. NaN gives the canonical NaN, as negative numbers do where the
    function has none. A subnormal x of log, sqrt, rsqrt is looked up as x * 2^RAISED, under sign 1.
    Timing: one number a cycle; inputs of cycle t give `out` in cycle t + LATENCY. `entry` and `row` are what the
    table gives for the addresses of the cycle before. docs/activation.md.
    """

    LATENCY = 10
    PASS = 15  # no isa.Function: not even a NaN becomes canonical

    def __init__(self):
        super().__init__(
            {
                "x": In(32),
                "func": In(6),
                "slope": In(32),
                "entry_address": Out(FUNCTION_BITS + 9),
                "entry": In(ENTRY),
                "row_address": Out(ROW_BITS),
                "row": In(32 * ROW_WORDS),
                "out": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # cycle 0: the entry
        now = Fp32(self.x)
        special = self._special(self.x)
        zero_plain = fault("zero is looked up like a subnormal number") & now.is_zero
        positive = self._positive(self.func)
        raised = Signal()
        m.d.comb += raised.eq(positive & ~now.sign & ~now.is_normal_or_special & now.fraction.any())
        first, zeros = normalise(m, now.fraction, "fraction")
        up = Mux(
            raised,
            RAISED - zeros + fault("subnormal numbers of log, sqrt and rsqrt are raised by a binade too many"),
            now.exponent,
        )
        field = Mux(special & ~zero_plain, 0xFF, up)
        m.d.comb += self.entry_address.eq(Cat(field[:8], now.sign | raised, self.func[:FUNCTION_BITS]))
        mantissa = Signal(23, reset_less=True)
        m.d.sync += mantissa.eq(Mux(raised, first << 1, now.fraction))
        x = self._delay(m, self.x, 1, "x")
        function = self._delay(m, self.func, 1, "function")
        slope = self._delay(m, self.slope, 1, "slope")

        # cycle 1: the row, and t as a fraction
        mode = self.entry.mode
        beyond = (
            (mode > BACK)
            & (mantissa[-len(mode) :] >= mode)
            & ~fault("numbers beyond the last row of a binade are looked up behind it")
        )
        back = (mode == BACK) & ~fault("t of an activation is never measured back")
        shifted = Signal(23 + INDEX_BITS_MAX)
        index = Signal(INDEX_BITS_MAX)
        is_special = Signal()
        within = Signal(23)
        m.d.comb += [
            is_special.eq(self._special(x)),
            within.eq(Mux(beyond, Cat(Const(0, 23 - len(mode)), mode), mantissa)),
            shifted.eq(within << self.entry.bits),
            index.eq(
                (shifted[23:] ^ fault("the row of an activation is that of the segment's neighbour"))
                & ~(fault("the top bit of the index is left out") << (INDEX_BITS_MAX - 1))
            ),
            self.row_address.eq(self.entry.row + Mux(is_special, Fp32(x).is_zero, index)),
        ]
        rest = Signal(24, reset_less=True)
        behind = Signal(reset_less=True)
        scale = Signal(signed(SCALE_BITS), reset_less=True)
        kept = Mux(fault("t of an activation keeps the leading bits"), mantissa, shifted[:23])
        m.d.sync += [
            rest.eq(Mux(is_special, 0, Mux(back, (1 << 23) - kept, kept))),
            behind.eq(back & ~is_special),
            scale.eq(self.entry.scale),
        ]
        x = self._delay(m, x, 1, "x_2")
        function = self._delay(m, function, 1, "function_2")
        slope = self._delay(m, slope, 1, "slope_2")

        # cycle 2: t as a number; what needs no table
        t = Signal(32, reset_less=True)
        m.d.sync += t.eq(Cat(self._fraction(m, rest), behind))
        m.submodules.direct_product = product = Fp32MultiplyComb()
        m.d.comb += [product.a.eq(x), product.b.eq(Mux(function == Function.SQUARE, x, slope))]
        direct = Signal(33, reset_less=True)
        m.d.sync += direct.eq(self._direct(m, x, function, product.out))

        # cycles 3 to 8: the cubic
        coefficients = [Signal(32, name=f"c{i}", reset_less=True) for i in range(ROW_WORDS)]
        m.d.sync += [c.eq(self.row.word_select(i, 32)) for i, c in enumerate(coefficients)]
        y: Value = coefficients[3]
        for step in range(_STEPS):
            m.submodules[f"product{step}"] = times = Fp32MultiplyComb()
            m.submodules[f"sum{step}"] = plus = Fp32AddComb()
            multiplied = Signal(32, name=f"multiplied{step}", reset_less=True)
            added = Signal(32, name=f"added{step}", reset_less=True)
            c = self._delay(m, coefficients[2 - step], 2 * step + 1, f"c{2 - step}")
            if step == 0:
                c = Mux(fault("the second coefficient of an activation is left out"), 0, c)
            m.d.comb += [times.a.eq(y), times.b.eq(self._delay(m, t, 2 * step, f"t{step}"))]
            m.d.sync += multiplied.eq(times.out)
            m.d.comb += [plus.a.eq(multiplied), plus.b.eq(c)]
            m.d.sync += added.eq(plus.out)
            y = added

        # cycle 9: the power of two
        last = self._delay(m, direct, 2 * _STEPS, "direct")
        scaled = self._scaled(m, y, self._delay(m, scale, 2 * _STEPS + 1, "scale"))
        result = Signal(32, reset_less=True)
        m.d.sync += result.eq(Mux(last[32], last[:32], scaled))
        m.d.comb += self.out.eq(result)
        return m

    @staticmethod
    def _special(x: Value) -> Value:
        return Fp32(x).is_zero | Fp32(x).is_special

    @staticmethod
    def _delay(m: Module, value: Value, cycles: int, name: str) -> Value:
        for n in range(cycles):
            later = Signal.like(value, name=f"{name}_after_{n + 1}", reset_less=True)
            m.d.sync += later.eq(value)
            value = later
        return value

    @staticmethod
    def _positive(function: Value) -> Value:
        """Of a function with values for positive numbers only."""
        return Cat(*(function == f for f in POSITIVE)).any()

    def _fraction(self, m: Module, rest: Value) -> Value:
        """rest / 2^23 as FP32 without its sign, exact; rest is at most 2^23."""
        significand, zeros = normalise(m, rest, "rest")
        return Mux(rest.any(), Cat(significand[:23], (BIAS - zeros)[:8]), 0)[:31]

    def _direct(self, m: Module, x: Value, function: Value, product: Value) -> Value:
        """The result of a function without a table, bit 32 set; of any function where it is NaN."""
        result = Signal(32)
        number = Fp32(x)
        negative = number.sign & ~fault("relu of an activation lets negative numbers through")
        none = (
            self._positive(function)
            & number.sign
            & ~number.is_zero
            & ~fault("log, sqrt and rsqrt of negative numbers are looked up")
        )
        nan = (number.is_nan & ~fault("NaN is looked up like infinity")) | none
        m.d.comb += result.eq(x)
        with m.Switch(function):
            with m.Case(Function.ABS):
                m.d.comb += result.eq(number.magnitude)
            with m.Case(Function.SQUARE):
                m.d.comb += result.eq(product)
            with m.Case(Function.RELU):
                with m.If(negative):
                    m.d.comb += result.eq(0)
            with m.Case(Function.PRELU, Function.LEAKY_RELU):
                with m.If(number.sign | number.is_zero):
                    m.d.comb += result.eq(product)
            with m.Case(Function.SIGN):
                with m.If(~number.is_zero):
                    m.d.comb += result.eq(Cat(Const(ONE, 31), number.sign))
        with m.If(nan & (function != self.PASS)):
            m.d.comb += result.eq(CANONICAL_NAN_FP32)
        return Cat(result, (function < FIRST_TABLE_FUNCTION) | nan)

    def _scaled(self, m: Module, y: Value, scale: Value) -> Value:
        """y * 2^scale, rounded to nearest even where it is subnormal."""
        unscaled = Fp32(y)
        significand, zeros = normalise(m, unscaled.significand, "unscaled")
        exponent = Signal(signed(12))
        small = Signal()
        shift = Signal(5)
        wide = Signal(48)
        code = Signal(33)
        m.d.comb += [
            exponent.eq(unscaled.scale - zeros + scale),
            small.eq(exponent < 1),
        ]
        with m.If(small):
            m.d.comb += shift.eq(Mux(exponent < -23, 25, 1 - exponent))
        m.d.comb += wide.eq(Cat(Const(0, 24), significand) >> shift)
        kept = wide[24:]
        lost = (shift == 25) & ~unscaled.is_zero
        up = wide[23] & (wide[:23].any() | lost | kept[0])
        m.d.comb += code.eq((Mux(small, 0, exponent - 1) << 23) + kept + up)
        result = Signal(31)
        with m.If(unscaled.is_special):
            m.d.comb += result.eq(unscaled.magnitude)
        with m.Elif(unscaled.is_zero | (small & fault("subnormal results of an activation become zero"))):
            m.d.comb += result.eq(0)
        with m.Elif(code >= INFINITY_FP32):
            m.d.comb += result.eq(INFINITY_FP32)
        with m.Else():
            m.d.comb += result.eq(code[:31])
        return Cat(result, unscaled.sign)
