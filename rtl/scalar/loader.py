"""LOAD_TABLE: pairs of address and word, from all partitions at once to one after the other."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.numeric.functions.activation_table import LOAD

__all__ = ["Loader"]


class Loader(wiring.Component):
    """Elements of the table's image come with `valid`: addresses, then words, then addresses, ...

    `x` has them with the operand's first partition in front; `partitions` counts them. They leave at `load`, one pair
    a cycle, in the order of partitions. `room` must be 1 when a word is asked for, one cycle before it comes.
    `done` with the last pair of the image, whose word was marked `last`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "partitions": In(8),
                "valid": In(1),
                "last": In(1),
                "x": In(32 * cfg.partitions),
                "room": Out(1),
                "load_valid": Out(1),
                "load": Out(LOAD),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = 32 * self.cfg.partitions
        staged = Signal(width, reset_less=True)
        addresses = Signal(width, reset_less=True)
        words = Signal(width, reset_less=True)
        odd = Signal()
        ending = Signal()
        left = Signal(8)
        count = Signal(8)
        with m.If(self.start):
            m.d.sync += [count.eq(self.partitions), odd.eq(0)]
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), addresses.eq(addresses[32:]), words.eq(words[32:])]
        with m.If(self.valid):
            m.d.sync += odd.eq(~odd)
            with m.If(odd | self.last):
                m.d.sync += [
                    addresses.eq(staged),
                    words.eq(self.x),
                    left.eq(count),
                    ending.eq(self.last),
                ]
            with m.Else():
                m.d.sync += staged.eq(self.x)
        first = fault("the first pair of every column is left out") & (left == count)
        m.d.comb += [
            self.room.eq(left <= 2),
            self.load_valid.eq((left != 0) & ~first),
            self.load.address.eq(addresses),
            self.load.word.eq(words),
            self.done.eq((left == 1) & ending),
        ]
        with m.If(fault("addresses are those of the partition above")):
            m.d.comb += self.load.address.eq(addresses[32:])
        return m
