"""Keeps a matmul from adding to an element of PSUM that the one before it is still adding to."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.pattern import PatternWalker
from rtl.contract.config import Config
from rtl.contract.timing import PSUM_ADD_CYCLES
from rtl.tensor.feed_command import COMMANDS

__all__ = ["Guard"]


class Guard(wiring.Component):
    """Walks the destination beside the moving beats; sums keep their distance, so beats tell enough.

    `step`: a beat enters in this cycle. `blocked`: the element of the next beat was that of a beat in the
    last PSUM_ADD_CYCLES cycles. Issue refuses patterns that meet themselves; this is for two matmuls.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({"command": In(stream.Signature(PATTERN_LAYOUT)), "step": In(1), "blocked": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.waiting = waiting = Fifo(PATTERN_LAYOUT, COMMANDS + 1)
        m.submodules.walker = walker = PatternWalker(self.cfg)
        connect(m, flipped(self.command), waiting.i)
        connect(m, waiting.o, walker.command)
        m.d.comb += walker.step.eq(self.step)
        clashes = []
        recent = walker.address
        entered = self.step
        for age in range(PSUM_ADD_CYCLES):
            older = Signal.like(walker.address, name=f"address_{age}")
            used = Signal(name=f"used_{age}")
            m.d.sync += [older.eq(recent), used.eq(entered)]
            clashes.append(used & (older == walker.address))
            recent = older
            entered = used
        clash = Signal()
        m.d.comb += [
            clash.eq(clashes[0] | clashes[1] | clashes[2]),
            self.blocked.eq(clash & ~fault("an element may recur inside the adder")),
        ]
        return m
