"""Scrambler: what is added to the words of every lane."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.lanes import LANE_WORD_BYTES, SCRAMBLER_BITS, SCRAMBLER_TAPS, scrambler_seed

__all__ = ["Scrambler", "first_word"]

_WORD = 8 * LANE_WORD_BYTES


def first_word(seed: int) -> int:
    """The first 64 bits that the register gives when it starts with `seed`, first one lowest."""
    word = 0
    for at in range(_WORD):
        out = seed >> (SCRAMBLER_BITS - 1)
        word |= out << at
        seed = (seed << 1) & ((1 << SCRAMBLER_BITS) - 1)
        if out:
            seed ^= sum(1 << tap for tap in SCRAMBLER_TAPS)
    return word


class Scrambler(wiring.Component):
    """`key` of each lane, for the next word; `step`: that word goes; `restart`: back to the lanes' seeds.
    `end`: sender or receiver, whose it is, in names of faults.

    The register holds the last 64 bits instead of the 16-bit state: the sequence obeys
    s(t) = s(t-16) + s(t-13) + s(t-12) + s(t-11), squared twice s(t) = s(t-64) + s(t-52) + s(t-48) + s(t-44),
    so a word follows from the one before with at most two sums of four bits in a row.
    """

    def __init__(self, lanes: int, end: str):
        self.lanes = lanes
        self.end = end
        super().__init__({"step": In(1), "restart": In(1), "key": Out(data.ArrayLayout(unsigned(_WORD), lanes))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        taps = [4 * tap for tap in sorted(SCRAMBLER_TAPS) if tap]  # distance forward, in bits, after squaring twice
        known = _WORD - max(taps)  # bits of the next word that need only this one
        for lane in range(self.lanes):
            word = Signal(_WORD, name=f"word{lane}", init=first_word(scrambler_seed(lane)))
            low = Signal(known, name=f"low{lane}")
            high = Signal(_WORD - known, name=f"high{lane}")
            both = Cat(word, low)
            lower, upper = word[:known], word[known:]
            for tap in taps:
                lower = lower ^ word[tap : tap + known]
                upper = upper ^ both[known + tap : _WORD + tap]
            m.d.comb += [low.eq(lower), high.eq(upper), self.key[lane].eq(word)]
            with m.If(self.restart & ~fault(f"the scrambler of the {self.end} does not start again at a marker")):
                m.d.sync += word.eq(word.init)
            with m.Elif(self.step):
                m.d.sync += word.eq(Cat(low, high))
        return m
