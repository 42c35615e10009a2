"""Bytes of a load or store in the word of memory that holds them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["LoadAlign", "StoreAlign"]


class StoreAlign(wiring.Component):
    """`data` and `mask` (one bit a byte) in a word for the low bytes of `value`; `aligned` if it is in one word.

    funct3: 0 to 2 for 1, 2, 4 bytes. Timing: combinational.
    """

    funct3: In(3)
    place: In(2)
    value: In(32)
    data: Out(32)
    mask: Out(4)
    aligned: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        upper = self.place[1] & ~fault("sh writes the lower half of a word")
        with m.Switch(self.funct3[:2]):
            with m.Case(0):
                m.d.comb += [self.mask.eq(1 << self.place), self.aligned.eq(1)]
                m.d.comb += self.data.eq(self.value[:8].replicate(4))
            with m.Case(1):
                m.d.comb += [self.mask.eq(Mux(upper, 0b1100, 0b0011)), self.aligned.eq(~self.place[0])]
                m.d.comb += self.data.eq(self.value[:16].replicate(2))
            with m.Default():
                m.d.comb += [self.mask.eq(0b1111), self.aligned.eq(self.place == 0), self.data.eq(self.value)]
        return m


class LoadAlign(wiring.Component):
    """`value`: the bytes of `word` from `place` on, extended as funct3 of lb, lh, lw, lbu, lhu says.

    Timing: combinational.
    """

    funct3: In(3)
    place: In(2)
    word: In(32)
    value: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        moved, sign = Signal(32), Signal()
        m.d.comb += [
            moved.eq(self.word >> (self.place << 3)),
            sign.eq(~self.funct3[2] & Mux(self.funct3[0], moved[15], moved[7])),
        ]
        with m.Switch(self.funct3[:2]):
            with m.Case(0):
                m.d.comb += self.value.eq(Cat(moved[:8], sign.replicate(24)))
            with m.Case(1):
                m.d.comb += self.value.eq(Cat(moved[:16], (sign & ~fault("lh extends with zeros")).replicate(16)))
            with m.Default():
                m.d.comb += self.value.eq(moved)
        return m
