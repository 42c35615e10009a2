"""Elements out of a word of a partition."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pick"]


class Pick(wiring.Component):
    """`element{j}` has element j in its low bits, rubbish above. Combinational.

    `place`: byte of the first one in `word`; `size_log2`: 0 to 2, logarithm of an element's bytes.
    """

    def __init__(self, slots: int):
        self.slots = slots
        super().__init__(
            {
                "word": In(64),
                "place": In(3),
                "size_log2": In(2),
                **{f"element{j}": Out(32) for j in range(slots)},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low = Signal(64)
        m.d.comb += low.eq(self.word >> (self.place << 3))
        for j in range(self.slots):
            with m.Switch(self.size_log2):
                for n in range(3):
                    with m.Case(n):
                        m.d.comb += getattr(self, f"element{j}").eq(low[min(32, 8 * j << n) :])
        return m
