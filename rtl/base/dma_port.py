"""How the instruction queues and the DMA speak to each other. Seen from the issue unit.

Order: the issue unit fetches descriptors ahead into one stream per ring; a DMA_TRIGGER releases the
next `count` of a ring; the DMA takes exactly the released descriptors, in ring order, moves them, does
the signal of each after its last byte has committed, and then counts it as completed. Behind these rings it has some
that need no release: what comes there may run, that of the GPSIMD cores and one for each of isa.COPY_QUEUES.

Streams between them: stream.Signature(RELEASE) to the DMA, stream.Signature(DESCRIPTOR_LAYOUT) to the
DMA for each ring, stream.Signature(SEMAPHORE_UPDATE) back; at most one transfer a cycle each.
"""

from amaranth.hdl import signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, Queue
from rtl.contract.link import ENDPOINT_BITS

__all__ = [
    "CAUSE_BITS",
    "COUNT_BITS",
    "ENDPOINT_STATUS",
    "PEEK_BITS",
    "RELEASE",
    "RING_BITS",
    "ROW_BYTES_BITS",
    "SEMAPHORE_INDEX_BITS",
    "SEMAPHORE_UPDATE",
    "RingStatusSignature",
    "copy_ring",
    "ring_count",
]

CAUSE_BITS = 8  # isa.Cause
RING_BITS = 4
COUNT_BITS = 32
PEEK_BITS = 33  # number of a word of 32 bits that a sequencer asks HBM for: the sum of two registers
ROW_BYTES_BITS = 19  # a row has 1 to 2^18 bytes; what the DMA moves in HBM in a cycle is that of one row
SEMAPHORE_INDEX_BITS = 8

RELEASE = data.StructLayout({"ring": RING_BITS, "count": COUNT_BITS})
"""`count` (at least 1) further descriptors of `ring` may run. Never more than the ring has."""

SEMAPHORE_UPDATE = data.StructLayout({"index": SEMAPHORE_INDEX_BITS, "update": 2, "value": signed(32)})
"""One change of a semaphore: isa.Update ADD or SET. The value is there in the cycle after the transfer."""


ENDPOINT_STATUS = data.StructLayout(
    {
        "refused": 32,
        "refused_address": 64,
        "refused_source": ENDPOINT_BITS,
        "failed": 32,
        "dropped": 32,
        "foreign": 32,
    }
)
"""What memmap.EndpointRegister shows, one field a register."""


def copy_ring(cfg: Config, queue: Queue) -> int:
    """The ring of a queue with DMA_COPY, behind those that are in HBM and that of the GPSIMD cores."""
    return cfg.dma.rings + cfg.gpsimd.enabled + COPY_QUEUES.index(queue)


def ring_count(cfg: Config) -> int:
    """Rings of the DMA, with those that need no release."""
    return cfg.dma.rings + cfg.gpsimd.enabled + len(COPY_QUEUES)


class RingStatusSignature(wiring.Signature):
    """What the DMA tells about one ring.

    `completed` pulses once per descriptor, in order, after its writes have committed and its signal (if
    any) was accepted. `cause` is 0 or, from the fault until `start`, an isa.Cause; `sequence` (number of
    the descriptor in the ring) and `address` belong to it. `busy`: a released descriptor has not completed.
    """

    def __init__(self):
        super().__init__(
            {
                "completed": In(1),
                "busy": In(1),
                "cause": In(CAUSE_BITS),
                "sequence": In(SEQUENCE_BITS),
                "address": In(64),
            }
        )
