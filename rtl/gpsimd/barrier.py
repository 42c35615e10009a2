"""The barrier of the cores of a run."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Barrier"]


class Barrier(wiring.Component):
    """`passed` counts the barriers at which all cores in `run` have arrived, from 0 at a cycle with `start`.

    `arrives`: a core comes, in this cycle. A core that has left `run` holds nobody up.
    """

    def __init__(self, cores: int):
        self.cores = cores
        super().__init__({"start": In(1), "run": In(cores), "arrives": In(cores), "passed": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        there, now = Signal(self.cores), Signal(self.cores)
        m.d.comb += now.eq(there | self.arrives)
        missing = Mux(fault("a barrier opens for the first who comes"), 0, self.run & ~now)
        opens = now.any() & ~missing.any()
        m.d.sync += there.eq(Mux(opens | self.start, 0, now))
        with m.If(self.start):
            m.d.sync += self.passed.eq(0)
        with m.Elif(opens):
            m.d.sync += self.passed.eq(self.passed + 1)
        return m
