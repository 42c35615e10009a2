"""What became of the descriptors that a queue gave to its own ring: counts, and the instruction whose one failed."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, RingStatusSignature
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config

__all__ = ["COPY_STATUS", "Copies"]

COPY_STATUS = data.StructLayout(
    {"taken": COUNT_BITS, "completed": COUNT_BITS, "cause": CAUSE_BITS, "sequence": SEQUENCE_BITS, "address": 64}
)
"""Descriptors that the DMA has taken and completed; why one failed, and the DMA_COPY that it came from."""


class Copies(wiring.Component):
    """`takes`: the DMA takes the descriptor of instruction `sequence`. `ring`: what it tells of that ring.

    A ring has at most dma.ring_depth descriptors under way, and completes them in order. The counts are those since
    `start`, which comes when none is under way.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "start": In(1),
                "takes": In(1),
                "sequence": In(SEQUENCE_BITS),
                "ring": Out(RingStatusSignature()),
                "status": Out(COPY_STATUS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.tickets = tickets = Fifo(SEQUENCE_BITS, self.cfg.dma.ring_depth)
        status, ring = self.status, self.ring
        own = Mux(fault("a copy that failed is told by its number in the ring"), ring.sequence, tickets.o.payload)
        m.d.comb += [
            tickets.i.valid.eq(self.takes),
            tickets.i.payload.eq(self.sequence),
            tickets.o.ready.eq(ring.completed),
            status.cause.eq(ring.cause),
            status.address.eq(ring.address),
            status.sequence.eq(Mux(ring.cause == 0, 0, own)),
        ]
        with m.If(self.start):
            m.d.sync += [status.taken.eq(0), status.completed.eq(0)]
        with m.Else():
            m.d.sync += [
                status.taken.eq(status.taken + self.takes),
                status.completed.eq(status.completed + ring.completed),
            ]
        return m
