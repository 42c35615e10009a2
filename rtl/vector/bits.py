"""A copy of bits: from a word of each partition the element at a byte, repeated over a word."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Repeated

__all__ = ["BitsLane", "copied_bits"]


class BitsLane(wiring.Component):
    """`out`: the element of 2^`bytes_log2` bytes at byte `place` of `word`, as often as a word has room for it.

    Combinational; 0 while not `enable`.
    """

    enable: In(1)
    place: In(3)
    bytes_log2: In(2)
    word: In(64)
    out: Out(64)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low = Signal(64)
        m.d.comb += low.eq(self.word >> Cat(Const(0, 3), self.place))
        with m.If(self.enable):
            with m.Switch(self.bytes_log2):
                for n in range(4):
                    with m.Case(n):
                        m.d.comb += self.out.eq(low[: 8 << n].replicate(8 >> n))
        return m


def copied_bits(partitions: int) -> Repeated:
    """A BitsLane for each partition, as a loop."""
    shared = ("enable", "place", "bytes_log2")
    return Repeated(f"plexus_vector_bits_{partitions}", BitsLane, partitions, shared=shared, clocked=False)
