"""Elements side by side, repeated over the word of a partition."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pack"]


class Pack(wiring.Component):
    """`word` repeats the bytes of elements `element[j]`, 2 ** `width` of them, so that a mask of bytes puts them where
    they belong.

    `size_log2`: logarithm of an element's bytes. What does not fit in 8 bytes must not be asked for. Combinational.
    """

    def __init__(self, slots: int):
        self.slots = slots
        super().__init__(
            {
                "element": In(32).array(slots),
                "size_log2": In(2),
                "width": In(2),
                "word": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.Switch(Cat(self.width, self.size_log2)):
            for width in range(self.slots.bit_length()):
                for size in range(3):
                    bits = 8 << size
                    if bits << width > 64:
                        continue
                    with m.Case(width | size << 2):
                        elements = Cat(self.element[j][:bits] for j in range(1 << width))
                        m.d.comb += self.word.eq(elements.replicate(64 // (bits << width)))
        return m
