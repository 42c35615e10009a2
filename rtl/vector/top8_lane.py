"""A lane of MAX8, FIND_INDEX8 and MATCH_REPLACE8: eight registers and a comparator at each."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.numeric.fp32.view import Fp32

__all__ = ["SHARED", "VALUES", "Top8Lane"]

VALUES = 8
SHARED = ("number", "clear", "insert", "load", "search", "shift", "find")
"""Ports that are the same for all lanes."""
_ABSENT = 0xFFFFFFFF


def _turned(code: Value) -> Value:
    """FP32 codes as unsigned numbers in the order of MAX, -0 below +0."""
    return Mux(code[31], ~code, code | 1 << 31)


class Top8Lane(wiring.Component):
    """What is done with `x` and the registers in this cycle, at most one of:

    `clear`: the registers are less than any number. `insert`: x takes its place among them, the smallest leaves.
    `load`: x, one of the values to look for, becomes the last register, the others move up.
    `search`: the first register that equals x, and has not been found yet, is found at `number`; `out` is then `a`
    if there is one, else x. `shift`: `out` is the first register (`find`: where it was found, or ABSENT), the others
    move up.
    Timing: `out` one cycle later; it stays until the next search or shift. Data registers are not reset.
    """

    x: In(32)
    a: In(32)
    number: In(14)
    clear: In(1)
    insert: In(1)
    load: In(1)
    search: In(1)
    shift: In(1)
    find: In(1)
    out: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        values = [Signal(32, name=f"value{j}", reset_less=True) for j in range(VALUES)]  # `insert`: turned codes
        found = Signal(VALUES)
        held = Signal(32, reset_less=True)
        m.d.comb += self.out.eq(held)

        nan = Signal()
        key = Signal(32)
        beats = Signal(VALUES)
        m.d.comb += [nan.eq(Fp32(self.x).is_nan), beats.eq(Cat(key > v for v in values))]
        number = Mux(
            nan & ~fault("a NaN keeps its sign and payload among the largest"), Const(CANONICAL_NAN_FP32, 32), self.x
        )
        m.d.comb += key.eq(
            Mux(
                fault("the order of negative numbers is turned") & self.x[31],
                ~_turned(number) ^ 1 << 31,
                _turned(number),
            )
        )
        kept_once = fault("equal numbers are kept once") & Cat(key == v for v in values).any()

        same = Signal(VALUES)
        first = Signal(VALUES)
        code = Signal(32)
        m.d.comb += [
            code.eq(Mux((self.x == 1 << 31) & ~fault("zeros of different signs differ in a search"), 0, self.x)),
            same.eq(Cat(v == code for v in values) & ~(nan & ~fault("a NaN is found in a search")).replicate(VALUES)),
        ]
        free = same & ~(found & ~fault("a value is found at its last place, not at its first").replicate(VALUES))
        m.d.comb += first.eq(Mux(fault("equal values are all found at once"), free, free & -free))

        with m.If(self.clear):
            m.d.sync += [v.eq(0) for v in values]
            m.d.sync += found.eq(0)
        with m.If(self.insert & ~kept_once):
            for j in range(VALUES):
                with m.If(beats[j]):
                    m.d.sync += values[j].eq(Mux(beats[j - 1], values[j - 1], key) if j else key)
        with m.If(self.load | self.shift):
            m.d.sync += [values[j].eq(values[j + 1]) for j in range(VALUES - 1)]
            m.d.sync += found.eq(found >> 1)
        with m.If(self.load):
            m.d.sync += values[VALUES - 1].eq(code)
        places = [Signal(14, name=f"place{j}", reset_less=True) for j in range(VALUES)]
        with m.If(self.search):
            m.d.sync += [found.eq(found | first), held.eq(Mux(first.any(), self.a, self.x))]
            for j in range(VALUES):
                with m.If(first[j]):
                    m.d.sync += places[j].eq(self.number)
        with m.If(self.shift):
            m.d.sync += [places[j].eq(places[j + 1]) for j in range(VALUES - 1)]
            absent = Mux(fault("an absent value was found at the place its code says"), values[0], _ABSENT)
            largest = Mux(values[0][31], values[0][:31], ~values[0])
            m.d.sync += held.eq(Mux(self.find, Mux(found[0], places[0], absent), largest))
        return m
