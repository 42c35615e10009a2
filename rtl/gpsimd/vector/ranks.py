"""How many bits of a mask are below each element, for a register of elements after the other."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.vector.active import log_elements

__all__ = ["Ranks"]


class Ranks(wiring.Component):
    """`begin`: the mask is `mask`, or all ones with `fills`; next: to the elements of the next register.

    `chosen`: bits of the elements of this register, 1 << size bytes each; counts[e]: how many of them are below e;
    base: how many before this register; register: that of element `base`. ranks: base and counts as elements.
    Timing: in the cycle after.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits, places = 32 * lanes, 4 * lanes
        super().__init__(
            {
                "begin": In(1),
                "next": In(1),
                "fills": In(1),
                "mask": In(bits),
                "size": In(2),
                "chosen": Out(places),
                "counts": Out(places.bit_length()).array(places),
                "base": Out(exact_log2(bits) + 1),
                "register": Out(3),
                "ranks": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, places, size, base = self.lanes, 4 * self.lanes, self.size, self.base
        left = Signal(32 * lanes)
        sums = self._sums(m, left[:places])
        wrong = fault("viota counts the element itself")
        m.d.comb += [count.eq(Mux(wrong, sums[n + 1], sums[n])) for n, count in enumerate(self.counts)]
        by_size = [sums[places >> n] for n in range(3)]
        ones = Const(-1, 32 * lanes)
        with m.If(self.begin):
            m.d.sync += [left.eq(Mux(self.fills, ones, self.mask)), base.eq(0)]
        with m.Elif(self.next):
            of = [left >> (places >> n) for n in range(3)]
            m.d.sync += [
                left.eq(Mux(self.fills, ones, Mux(size == 2, of[2], Mux(size == 1, of[1], of[0])))),
                base.eq(base + Mux(size == 2, by_size[2], Mux(size == 1, by_size[1], by_size[0]))),
            ]
        values = [Signal(16, name=f"rank_{n}") for n in range(places)]
        m.d.comb += [value.eq(count + base) for value, count in zip(values, self.counts, strict=True)]
        whole = Cat(value[:8] for value in values)
        halves = Cat(values[: 2 * lanes])
        words = Cat(Cat(value, Const(0, 16)) for value in values[:lanes])
        m.d.comb += [
            self.chosen.eq(left[:places]),
            self.register.eq((base >> log_elements(lanes, size))[:3]),
            self.ranks.eq(Mux(size == 2, words, Mux(size == 1, halves, whole))),
        ]
        return m

    def _sums(self, m: Module, bits: Value) -> list[Value]:
        """Of the bits below each place, and of all: added over twice the distance from level to level."""
        most = len(self.counts[0])
        sums: list[Value] = [Const(0, 1), *bits]
        step = level = 1
        while step <= len(bits):
            new: list[Value] = []
            for n, value in enumerate(sums):
                wide = Signal(min(level + 1, most), name=f"sum_{level}_{n}")
                m.d.comb += wide.eq(value + sums[n - step] if n >= step else value)
                new.append(wide)
            sums, step, level = new, 2 * step, level + 1
        return sums
