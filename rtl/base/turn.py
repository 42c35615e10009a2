"""Partitions that move by whole quadrants."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config

__all__ = ["Turn"]


class Turn(wiring.Component):
    """Partition p of `words` (8 bytes each) is partition p + `turn` quadrants of `out`, modulo all. Combinational.

    `out` is 0 without `enable`: wide, so nothing moves without need.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        wide = 64 * cfg.partitions
        super().__init__({"words": In(wide), "turn": In(2), "enable": In(1), "out": Out(wide)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        share = 64 * self.cfg.partitions // QUADRANTS
        with m.If(self.enable):
            with m.Switch(self.turn):
                for turn in range(QUADRANTS):
                    with m.Case(turn):
                        for q in range(QUADRANTS):
                            to = (q + turn) % QUADRANTS
                            m.d.comb += self.out[to * share : (to + 1) * share].eq(
                                self.words[q * share : (q + 1) * share]
                            )
        return m
