"""Nothing may wait for ever: time-outs of a link, in flit times."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import NO_PROGRESS_FLITS, RETRAINS_WITHOUT_PROGRESS

__all__ = ["Progress"]


class Progress(wiring.Component):
    """Two waits: 0 the sender's (flits in the retry buffer), 1 the receiver's (a gap). `moves` ends one.

    `stalled` after `flits` ticks of a wait, then after as many again; `give_up` with it when that happens for the
    fourth time: three retrains brought nothing.
    Timing: `stalled` and `give_up` are combinational with `tick`.
    """

    def __init__(self, flits: int = NO_PROGRESS_FLITS):
        self.flits = flits
        super().__init__(
            {
                "clear": In(1),
                "tick": In(1),
                "waits": In(2),
                "moves": In(2),
                "stalled": Out(1),
                "give_up": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n in range(2):
            ticks = Signal(range(self.flits), name=f"ticks_{n}")
            tries = Signal(range(RETRAINS_WITHOUT_PROGRESS + 1), name=f"tries_{n}")
            unseen = fault("a wait of the receiver is not seen") if n else 0
            with m.If(
                (self.moves[n] & ~fault("progress of a link does not start the time again")) | ~self.waits[n] | unseen
            ):
                m.d.sync += [ticks.eq(0), tries.eq(0)]
            with m.Elif(self.tick):
                m.d.sync += ticks.eq(ticks + 1)
                with m.If(ticks == self.flits - 1):
                    m.d.sync += ticks.eq(0)
                    m.d.comb += self.stalled.eq(1)
                    with m.If(tries == RETRAINS_WITHOUT_PROGRESS):
                        m.d.comb += self.give_up.eq(~fault("a link without progress never gives up"))
                    with m.Else():
                        m.d.sync += tries.eq(tries + 1)
            with m.If(self.clear):
                m.d.sync += [ticks.eq(0), tries.eq(0)]
        return m
