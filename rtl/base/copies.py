"""A result of 1, 2 or 4 bytes of each lane, as often as a word of SBUF or PSUM has room for it."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Repeated

__all__ = ["CopiesLane", "copies"]


class CopiesLane(wiring.Component):
    """`out`: the lowest 2^`bytes_log2` bytes of `word`, at most 4, over 8 bytes. Combinational; 0 if not `enable`."""

    enable: In(1)
    bytes_log2: In(2)
    word: In(32)
    out: Out(64)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.enable):
            with m.Switch(self.bytes_log2):
                with m.Case(0):
                    m.d.comb += self.out.eq(self.word[:8].replicate(8))
                with m.Case(2):
                    m.d.comb += self.out.eq(self.word.replicate(2))
                with m.Default():
                    m.d.comb += self.out.eq(self.word[:16].replicate(4))
        return m


def copies(partitions: int) -> Repeated:
    """A CopiesLane for each partition, as a loop.

    As choices of all lanes at once they were a third of the text of scalar engine and PSUM: each piece of a word had a
    port of its own in every module on its way.
    """
    shared = ("enable", "bytes_log2")
    return Repeated(f"plexus_copies_{partitions}", CopiesLane, partitions, shared=shared, clocked=False)
