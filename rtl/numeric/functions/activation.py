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
from rtl.numeric.fp32.mul import Fp32Product
from rtl.numeric.fp32.sum import Fp32Sum
from rtl.numeric.functions.activation_table import ENTRY, FUNCTION_BITS

__all__ = ["ActivationLane"]

ONE = 0x3F800000
_STEPS = 3  # multiplications and additions of a cubic


class ActivationLane(wiring.Component):
    """out = func(x), FP32 codes; func is of isa.Function. `slope` is that of prelu and leaky_relu.

    With a table: ((c3 t + c2) t + c1) t + c0, each operation rounded, times the power of two of the entry,
    rounded once more if the result is subnormal. NaN gives the canonical NaN, as negative numbers do where the
    function has none. A subnormal x of log, sqrt, rsqrt is looked up as x * 2^RAISED, under sign 1.
    Timing: one number a cycle; inputs of cycle t give `out` in cycle t + LATENCY. `entry` and `row` are what the
    table gives for the addresses of the cycle before. docs/activation.md.
    """

    LATENCY = 10

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
        special = self._special(self.x)
        zero_plain = fault("zero is looked up like a subnormal number") & ~self.x[:31].any()
        positive = self._positive(self.func)
        raised = Signal()
        zeros = Signal(5)
        m.d.comb += raised.eq(positive & ~self.x[31] & ~self.x[23:31].any() & self.x[:23].any())
        with m.Switch(self.x[:23]):
            for n in range(23):
                with m.Case("0" * n + "1" + "-" * (22 - n)):
                    m.d.comb += zeros.eq(n)
        up = Mux(
            raised,
            RAISED - zeros + fault("subnormal numbers of log, sqrt and rsqrt are raised by a binade too many"),
            self.x[23:31],
        )
        field = Mux(special & ~zero_plain, 0xFF, up)
        m.d.comb += self.entry_address.eq(Cat(field[:8], self.x[31] | raised, self.func[:FUNCTION_BITS]))
        mantissa = Signal(23, reset_less=True)
        m.d.sync += mantissa.eq(Mux(raised, self.x[:23] << (zeros + 1)[:5], self.x[:23]))
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
            self.row_address.eq(self.entry.row + Mux(is_special, ~x[:31].any(), index)),
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
        m.submodules.direct_product = product = Fp32Product()
        m.d.comb += [product.a.eq(x), product.b.eq(Mux(function == Function.SQUARE, x, slope))]
        direct = Signal(33, reset_less=True)
        m.d.sync += direct.eq(self._direct(m, x, function, product.out))

        # cycles 3 to 8: the cubic
        coefficients = [Signal(32, name=f"c{i}", reset_less=True) for i in range(ROW_WORDS)]
        m.d.sync += [c.eq(self.row.word_select(i, 32)) for i, c in enumerate(coefficients)]
        y: Value = coefficients[3]
        for step in range(_STEPS):
            m.submodules[f"product{step}"] = times = Fp32Product()
            m.submodules[f"sum{step}"] = plus = Fp32Sum()
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
        return ~x[:31].any() | x[23:31].all()

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
        zeros = Signal(5)
        shifted = Signal(23)
        with m.Switch(rest):
            for n in range(24):
                with m.Case("0" * n + "1" + "-" * (23 - n)):
                    m.d.comb += zeros.eq(n)
        m.d.comb += shifted.eq(rest << zeros)
        return Mux(rest.any(), Cat(shifted, (127 - zeros)[:8]), 0)[:31]

    def _direct(self, m: Module, x: Value, function: Value, product: Value) -> Value:
        """The result of a function without a table, bit 32 set; of any function where it is NaN."""
        result = Signal(32)
        negative = x[31] & ~fault("relu of an activation lets negative numbers through")
        none = (
            self._positive(function)
            & x[31]
            & x[:31].any()
            & ~fault("log, sqrt and rsqrt of negative numbers are looked up")
        )
        nan = (x[23:31].all() & x[:23].any() & ~fault("NaN is looked up like infinity")) | none
        m.d.comb += result.eq(x)
        with m.Switch(function):
            with m.Case(Function.ABS):
                m.d.comb += result.eq(x[:31])
            with m.Case(Function.SQUARE):
                m.d.comb += result.eq(product)
            with m.Case(Function.RELU):
                with m.If(negative):
                    m.d.comb += result.eq(0)
            with m.Case(Function.PRELU, Function.LEAKY_RELU):
                with m.If(x[31] | ~x[:31].any()):
                    m.d.comb += result.eq(product)
            with m.Case(Function.SIGN):
                with m.If(x[:31].any()):
                    m.d.comb += result.eq(Cat(Const(ONE, 31), x[31]))
        with m.If(nan):
            m.d.comb += result.eq(CANONICAL_NAN_FP32)
        return Cat(result, (function < FIRST_TABLE_FUNCTION) | nan)

    def _scaled(self, m: Module, y: Value, scale: Value) -> Value:
        """y * 2^scale, rounded to nearest even where it is subnormal."""
        field = y[23:31]
        zeros = Signal(5)
        significand = Signal(24)
        m.d.comb += significand.eq(Cat(y[:23], field.any()))
        with m.Switch(significand):
            for n in range(24):
                with m.Case("0" * n + "1" + "-" * (23 - n)):
                    m.d.comb += zeros.eq(n)
        exponent = Signal(signed(12))
        small = Signal()
        shift = Signal(5)
        wide = Signal(48)
        code = Signal(33)
        m.d.comb += [
            exponent.eq(Mux(field.any(), field, 1) - zeros + scale),
            small.eq(exponent < 1),
        ]
        with m.If(small):
            m.d.comb += shift.eq(Mux(exponent < -23, 25, 1 - exponent))
        m.d.comb += wide.eq(Cat(Const(0, 24), (significand << zeros)[:24]) >> shift)
        kept = wide[24:]
        lost = (shift == 25) & significand.any()
        up = wide[23] & (wide[:23].any() | lost | kept[0])
        m.d.comb += code.eq((Mux(small, 0, exponent - 1) << 23) + kept + up)
        result = Signal(31)
        with m.If(field.all()):
            m.d.comb += result.eq(y[:31])
        with m.Elif(~significand.any() | (small & fault("subnormal results of an activation become zero"))):
            m.d.comb += result.eq(0)
        with m.Elif(code >= INFINITY_FP32):
            m.d.comb += result.eq(INFINITY_FP32)
        with m.Else():
            m.d.comb += result.eq(code[:31])
        return Cat(result, y[31])
