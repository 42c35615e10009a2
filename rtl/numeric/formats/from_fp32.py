"""FP32 to any number format."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import FORMATS, Format
from rtl.numeric.fp32.view import BIAS, Fp32

__all__ = ["FromFp32"]

_NAN = {"e4m3fn": 0x7F, "e2m1": 0x8, "e8m0": 0xFF}
_NOTHING = 40  # a shift that leaves nothing of 32 bits, not even a half
_FLOATS = ("bf16", "fp16", "tf32", "e4m3fn", "e4m3", "e5m2", "e2m1")


def _nan(fmt: Format) -> int:
    quiet = ((1 << fmt.exponent) - 1) << fmt.mantissa | (1 << fmt.mantissa) >> 1
    return _NAN.get(fmt.name, quiet)


def _largest(fmt: Format) -> int:
    if fmt.name == "e4m3fn":
        return 0x7E
    if not fmt.infinities:
        return (1 << (fmt.bits - 1)) - 1
    return (((1 << fmt.exponent) - 1) << fmt.mantissa) - 1


class FromFp32(wiring.Component):
    """`out` is the code of format `dst` (formats.Format.code) of the FP32 code `x`; combinational.

    Nearest even, subnormals kept, NaN to the format's canonical one. What is too large becomes infinity; in
    E4M3FN NaN, in E2M1 the largest number; with `saturate` the largest finite one. Integers saturate, NaN gives 0.
    E8M0: docs/numerics.md. FP32 itself passes, but for infinities with `saturate`. With `raw` the low bits pass.
    """

    x: In(32)
    dst: In(4)
    saturate: In(1)
    raw: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x = Fp32(self.x)
        infinite = Signal()
        nan = Signal()
        exponent = Signal(8)  # of subnormals too
        m.d.comb += [
            infinite.eq(x.is_infinity),
            nan.eq(x.is_nan),
            exponent.eq(x.scale),
        ]

        # All formats share the shifter: the significand, 8 bits up, goes right by `shift`.
        shift = Signal(6)
        base = Signal(8)  # exponent field of a normal float less one: the hidden bit adds it
        with m.Switch(self.dst):
            for name in _FLOATS:
                fmt = FORMATS[name]
                least = 128 - fmt.bias  # exponent field, here, of the smallest normal number
                drop = 8 + 23 - fmt.mantissa
                with m.Case(fmt.code):
                    with m.If(exponent >= least):
                        m.d.comb += [shift.eq(drop), base.eq(exponent - least)]
                    with m.Elif(exponent < least - (_NOTHING - drop)):
                        m.d.comb += shift.eq(_NOTHING)
                    with m.Else():
                        m.d.comb += shift.eq(drop + least - exponent)
            with m.Default():  # integers
                with m.If(exponent >= 158):
                    m.d.comb += shift.eq(0)
                with m.Elif(exponent < 158 - _NOTHING):
                    m.d.comb += shift.eq(_NOTHING)
                with m.Else():
                    m.d.comb += shift.eq(158 - exponent)
        wide = Signal(33)
        shifted = Signal(33)
        rounded = Signal(33)
        m.d.comb += [
            wide.eq(Cat(Const(0, 9), x.significand)),
            shifted.eq(wide >> shift),  # bit 0 is the half
        ]
        lost = Signal()
        m.d.comb += lost.eq((shifted << shift)[:33] != wide)
        up = shifted[0] & (lost | shifted[1] | fault("a conversion rounds ties up instead of to even"))
        m.d.comb += rounded.eq(shifted[1:] + up)

        result = Signal(32)
        m.d.comb += result.eq(self.x)
        with m.If(~self.raw):
            self._formats(m, result, rounded, base, infinite, nan)
        with m.Else():
            with m.Switch(self.dst):
                for fmt in FORMATS.values():
                    if fmt.bits < 32:
                        with m.Case(fmt.code):
                            m.d.comb += result.eq(self.x[: fmt.bits])
        m.d.comb += self.out.eq(result)
        return m

    def _formats(self, m: Module, result: Value, rounded: Value, base: Value, infinite: Value, nan: Value) -> None:
        held = self.saturate & ~(fault("infinities that come in do not saturate") & infinite)
        with m.Switch(self.dst):
            with m.Case(FORMATS["fp32"].code):
                m.d.comb += result.eq(self.x - (held & infinite))
            with m.Case(FORMATS["e8m0"].code):
                m.d.comb += result.eq(self._to_e8m0(m))
            for name in _FLOATS:
                fmt = FORMATS[name]
                largest = _largest(fmt)
                magnitude = Signal(20, name=f"magnitude_{name}")
                low = Signal(fmt.mantissa + fmt.exponent + 1, name=f"low_{name}")
                clamp = held | (name == "e2m1") | fault("numbers beyond a format saturate although nobody asked for it")
                with m.Case(fmt.code):
                    m.d.comb += [
                        magnitude.eq((base << fmt.mantissa) + rounded[: fmt.mantissa + 2]),
                        low.eq(Mux(infinite | (magnitude > largest), Mux(clamp, largest, largest + 1), magnitude)),
                    ]
                    with m.If(
                        (base == 0)
                        & ~rounded[fmt.mantissa]
                        & fault("results of a conversion below the normal range become zero")
                    ):
                        m.d.comb += low.eq(0)
                    code = Cat(low[: fmt.mantissa + fmt.exponent], Fp32(self.x).sign)
                    with m.If(nan & ~((name == "bf16") & fault("NaN payloads survive in BF16"))):
                        code_or_nan: Value = Const(_nan(fmt), fmt.mantissa + fmt.exponent + 1)
                        m.d.comb += result.eq(code_or_nan << (13 if name == "tf32" else 0))
                    with m.Elif(nan):
                        m.d.comb += result.eq(self.x[16:])
                    with m.Else():
                        m.d.comb += result.eq(code << (13 if name == "tf32" else 0))
            for fmt in FORMATS.values():
                if not fmt.integer:
                    continue
                with m.Case(fmt.code):
                    m.d.comb += result.eq(Mux(nan, 0, self._to_integer(m, fmt, rounded)))

    def _to_integer(self, m: Module, fmt: Format, size: Value) -> Value:
        """`size` and the sign of x, clamped. From 2^32 on the exponent says it."""
        minus = Fp32(self.x).sign
        high = (1 << (fmt.bits - fmt.signed)) - 1
        low = (1 << (fmt.bits - 1)) if fmt.signed else 0
        most = Signal(32, name=f"most_{fmt.name}")
        size_out = Signal(32, name=f"size_{fmt.name}")
        beyond = Fp32(self.x).exponent >= BIAS + 32
        wraps = minus & fault("negative integers beyond the range wrap")
        m.d.comb += [
            most.eq(Mux(minus, low, high)),
            size_out.eq(Mux((beyond | (size > most)) & ~wraps, most, size)),
        ]
        return Mux(minus, -size_out, size_out)[: fmt.bits]

    def _to_e8m0(self, m: Module) -> Value:
        """The nearest power of two, of two equally near ones the larger; above 2^-127 at least 2^-126."""
        near = Signal(9)
        x = Fp32(self.x)
        half, rest = x.fraction[22], x.fraction[:22]
        m.d.comb += near.eq(Mux(x.is_normal_or_special, x.exponent + half, half & rest.any()))
        no_power = x.sign | x.is_zero | x.is_nan
        return Mux(no_power, 0xFF, Mux((near >= 255) & self.saturate, 254, Mux(near >= 255, 255, near[:8])))
