"""What is computed for one element of a vector."""

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.vector.layouts import LANE, Result

__all__ = ["Element"]


class Element(wiring.Component):
    """Of an element whose width is 8 << `size` bits, up to `width`; what is above in `a`, `b` and `c` is don't care.

    a: vs2's, b: what stands beside it, c: vd's; carry: the mask's bit. clips: the result has half the width. mode: vxrm
    (RISC-V "V" extension, section 3.8).
    Timing: `result` (with don't cares above the element), `flag` (a comparison, a carry) and `saturates` in the cycle
    after. `early`: the result in the same cycle, unless it is a product or clipped.
    """

    def __init__(self, width: int):
        self.width = width
        super().__init__(
            {
                "lane": In(LANE),
                "clips": In(1),
                "clips_signed": In(1),
                "size": In(2),
                "mode": In(2),
                "a": In(width),
                "b": In(width),
                "c": In(width),
                "carry": In(1),
                "early": Out(width),
                "result": Out(width),
                "flag": Out(1),
                "saturates": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._sizes = [n for n in range(3) if 8 << n <= self.width]
        first, flag, saturates, product = self._first(m)
        lane, size, mode = Signal(LANE), Signal(2), Signal(2)
        clips, clips_signed = Signal(), Signal()
        held, held_flag, held_saturates = Signal(self.width), Signal(), Signal()
        factor, third = Signal(2 * self.width), Signal(self.width)
        m.d.comb += self.early.eq(first)
        m.d.sync += [
            lane.eq(self.lane),
            size.eq(self.size),
            mode.eq(self.mode),
            clips.eq(self.clips),
            clips_signed.eq(self.clips_signed),
            held.eq(first),
            held_flag.eq(flag),
            held_saturates.eq(saturates),
            factor.eq(product),
            third.eq(self.c),
        ]
        value, over = Signal(self.width), Signal()
        m.d.comb += [value.eq(held), over.eq(held_saturates)]
        fraction, fraction_over = self._fraction(m, factor, size, mode)
        with m.Switch(lane.result):
            with m.Case(Result.LOW):
                m.d.comb += value.eq(factor[: self.width])
            with m.Case(Result.HIGH):
                m.d.comb += value.eq(self._sized(size, lambda bits: factor[bits : 2 * bits]))
            with m.Case(Result.FRACTION):
                m.d.comb += [value.eq(fraction), over.eq(fraction_over)]
            with m.Case(Result.ADDED):
                low = factor[: self.width]
                m.d.comb += value.eq(Mux(lane.subtract, third - low, third + low)[: self.width])
        clipped, clip_over = self._clip(value, size, clips_signed)
        m.d.comb += [
            self.result.eq(Mux(clips, clipped, value)),
            self.saturates.eq(over | (clips & clip_over)),
            self.flag.eq(held_flag),
        ]
        return m

    def _sized(self, size: Value, of: Callable[[int], Value]) -> Value:
        """`of(bits)` for the width that `size` means."""
        chosen = of(8 << self._sizes[0])
        for n in self._sizes[1:]:
            chosen = Mux(size == n, of(8 << n), chosen)
        return chosen

    def _extended(self, value: Value, size: Value, with_sign: Value) -> Value:
        """`value` with one bit more than it has, as a signed number."""

        def of(bits: int) -> Value:
            sign = (value[bits - 1] & with_sign).replicate(self.width + 1 - bits)
            return Cat(value[:bits], sign)

        return self._sized(size, of)

    def _first(self, m: Module) -> tuple[Signal, Signal, Signal, Signal]:
        """Result, flag, whether it saturates, and the product: of the first cycle."""
        lane, size, width = self.lane, self.size, self.width
        products = lane.result >= Result.LOW
        a, b = Signal(signed(width + 1)), Signal(signed(width + 1))
        m.d.comb += [
            a.eq(self._extended(self.a, size, Mux(products, lane.signed_first, lane.signed))),
            b.eq(self._extended(self.b, size, Mux(products, lane.signed_second, lane.signed))),
        ]
        total = Signal(width + 1)
        carry = self.carry & lane.carries
        other = Mux(lane.subtract, ~b, b)
        m.d.comb += total.eq(a + other + (carry ^ lane.subtract))
        top = Signal()
        sign = Signal()
        m.d.comb += [
            top.eq(self._sized(size, lambda bits: total[bits])),
            sign.eq(self._sized(size, lambda bits: total[bits - 1])),
        ]
        equal = Signal()
        m.d.comb += equal.eq(self._sized(size, lambda bits: total[:bits] == 0))
        flag, result, over, product = Signal(), Signal(width), Signal(), Signal(signed(2 * width + 2))
        m.d.comb += [
            flag.eq(((top & lane.on_less) | (equal & lane.on_equal)) ^ lane.inverts),
            product.eq(a * b),
        ]
        takes_second = Mux(lane.chooses, self.carry, flag)

        def bound(bits: int) -> Value:
            """The number nearest to one that is out of range."""
            most = Const((1 << bits - 1) - 1, width)
            least = Const(1 << bits - 1, width)
            return Mux(lane.signed, Mux(top, least, most), Mux(lane.subtract, 0, (1 << bits) - 1))

        with m.Switch(lane.result):
            with m.Case(Result.SUM):
                m.d.comb += result.eq(total)
            with m.Case(Result.AND):
                m.d.comb += result.eq(a & b)
            with m.Case(Result.OR):
                m.d.comb += result.eq(a | b)
            with m.Case(Result.XOR):
                m.d.comb += result.eq(a ^ b)
            with m.Case(Result.PICK):
                m.d.comb += result.eq(Mux(takes_second, b, a))
            with m.Case(Result.SECOND):
                m.d.comb += result.eq(b)
            with m.Case(Result.LEFT):
                m.d.comb += result.eq(self._sized(size, lambda bits: a[:bits] << b[: _log2(bits)]))
            with m.Case(Result.RIGHT):
                m.d.comb += result.eq(self._right(a, b))
            with m.Case(Result.SATURATED):
                m.d.comb += over.eq(Mux(lane.signed, top ^ sign, top))
                m.d.comb += result.eq(Mux(over, self._sized(size, bound), total))
            with m.Case(Result.AVERAGE):
                up = self._round_up(self.mode, total[1], total[0], Const(0, 1))
                m.d.comb += result.eq((total >> 1) + up)
        return result, flag, over, product

    def _right(self, a: Value, b: Value) -> Value:
        """`a` shifted to the right, rounded if asked for."""
        long = Cat(Const(0, self.width), a).as_signed()
        amount = self._sized(self.size, lambda bits: b[: _log2(bits)])
        moved = (long >> amount)[: 2 * self.width]
        kept, lost = moved[self.width :], moved[: self.width]
        up = self._round_up(self.mode, kept[0], lost[-1], lost[:-1].any())
        return kept + (up & self.lane.rounds)

    @staticmethod
    def _round_up(mode: Value, last: Value, half: Value, rest: Value) -> Value:
        """1 if what is kept, ending with bit `last`, grows by one: `half` and `rest` of what is lost (section 3.8)."""
        to_even = half & (rest | last)
        to_odd = ~last & (half | rest)
        to_near = half & ~fault("a half is never rounded up")
        return Mux(mode[1], Mux(mode[0], to_odd, 0), Mux(mode[0], to_even, to_near))

    def _fraction(self, m: Module, product: Value, size: Value, mode: Value) -> tuple[Value, Value]:
        """vsmul: a product of fractions rounded, and whether it is out of range."""
        value, over = Signal(self.width), Signal()

        def of(bits: int) -> Value:
            up = self._round_up(mode, product[bits - 1], product[bits - 2], product[: bits - 2].any())
            return (product[bits - 1 : 2 * bits] + up)[: bits + 1]

        rounded = Signal(unsigned(self.width + 1))
        m.d.comb += [
            rounded.eq(self._sized(size, of)),
            over.eq(self._sized(size, lambda bits: rounded[bits - 1] & ~product[2 * bits - 1])),
            value.eq(Mux(over, self._sized(size, lambda bits: Const((1 << bits - 1) - 1, self.width)), rounded)),
        ]
        return value, over

    def _clip(self, value: Value, size: Value, with_sign: Value) -> tuple[Value, Value]:
        """`value` in half its width, and whether it is out of that range."""

        def out(bits: int) -> Value:
            half = bits // 2
            above = value[half - 1 : bits]
            return Mux(with_sign, above.any() & ~above.all(), above[1:].any())

        def clipped(bits: int) -> Value:
            half = bits // 2
            limit = Mux(with_sign, Mux(value[bits - 1], 1 << half - 1, (1 << half - 1) - 1), (1 << half) - 1)
            return Mux(out(bits), limit, value[:half])

        return self._sized(size, clipped), self._sized(size, out)


def _log2(bits: int) -> int:
    return bits.bit_length() - 1
