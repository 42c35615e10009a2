"""Words of 64 bits, side by side, one a partition, and the elements that begin at the same byte of each."""

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Repeated

__all__ = ["PickLane", "pick"]


class PickLane(wiring.Component):
    """The lowest bits of `out` are `word` from byte `place` on, above it 0; 0 while not `enable`. Combinational."""

    def __init__(self, bits: int):
        super().__init__({"enable": In(1), "place": In(3), "word": In(64), "out": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.out.eq(Mux(self.enable, self.word >> Cat(Const(0, 3), self.place), 0))
        return m


def pick(rows: int, bits: int = 64) -> Repeated:
    """A PickLane for each of `rows` words, as a loop.

    A shift of all the words at once by one of eight places would cost a simulator all eight of them in every cycle.
    """
    return Repeated(
        f"plexus_pick_{rows}_{bits}", lambda: PickLane(bits), rows, shared=("enable", "place"), clocked=False
    )
