"""What the DMA as a whole does in a cycle: it moves bytes, or waits for a named cause."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import EngineStatusSignature
from rtl.contract.config import Config
from rtl.contract.timing import STALLS, Engine

__all__ = ["Status"]

_STALL_FIRST = 2  # state of the first stall cause


class Status(wiring.Component):
    """Busy if any mover or HBM port moved a byte. Else the first of: HBM refused a request or data, SBUF
    refused a mover, read data are awaited, data wait to be written, answers to writes are awaited, a
    descriptor is awaited or checked. With nothing released, and a ring that halted: fault.
    Timing: combinational.
    """

    def __init__(self, cfg: Config):
        super().__init__(
            {
                **{name: In(1) for name in ("working", "faulted", "moves", "hbm", "sbuf")},
                **{name: In(1) for name in ("reading", "writing", "committing")},
                "status": Out(EngineStatusSignature()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def stalled(cause: str) -> None:
            m.d.comb += self.status.state.eq(_STALL_FIRST + STALLS[Engine.DMA].index(cause))

        m.d.comb += self.status.holds.eq(self.working | self.faulted)
        with m.If(~self.working):
            stalled("fault")
        with m.Elif(self.moves):
            m.d.comb += self.status.state.eq(0)
        with m.Elif(self.hbm):
            stalled("hbm_bandwidth")
        with m.Elif(self.sbuf):
            stalled("sbuf")
        with m.Elif(self.reading):
            stalled("hbm_latency")
        with m.Elif(self.writing):
            stalled("hbm_bandwidth")
        with m.Elif(self.committing):
            stalled("commit")
        with m.Else():
            stalled("descriptor")
        return m
