"""How the instruction queues and the DMA speak to each other. Seen from the issue unit.

Order: the issue unit fetches descriptors ahead into one stream per ring; a DMA_TRIGGER releases the
next `count` of a ring; the DMA takes exactly the released descriptors, in ring order, moves them, does
the signal of each after its last byte has committed, and then counts it as completed.
"""

from amaranth.hdl import signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.layouts import DESCRIPTOR_LAYOUT

__all__ = [
    "CAUSE_BITS",
    "COUNT_BITS",
    "RELEASE",
    "RING_BITS",
    "SEMAPHORE_INDEX_BITS",
    "SEMAPHORE_UPDATE",
    "DescriptorSignature",
    "ReleaseSignature",
    "RingStatusSignature",
    "SemaphoreUpdateSignature",
]

CAUSE_BITS = 8  # isa.Cause
RING_BITS = 4
COUNT_BITS = 32
SEMAPHORE_INDEX_BITS = 8

RELEASE = data.StructLayout({"ring": RING_BITS, "count": COUNT_BITS})
"""`count` (at least 1) further descriptors of `ring` may run. Never more than the ring has."""

SEMAPHORE_UPDATE = data.StructLayout(
    {"index": SEMAPHORE_INDEX_BITS, "update": 2, "value": signed(32)}
)
"""One change of a semaphore: isa.Update ADD or SET. The value is there in the cycle after the transfer."""


class ReleaseSignature(stream.Signature):
    """Releases, at most one a cycle."""

    def __init__(self):
        super().__init__(RELEASE)


class SemaphoreUpdateSignature(stream.Signature):
    """Semaphore updates, at most one a cycle."""

    def __init__(self):
        super().__init__(SEMAPHORE_UPDATE)


class DescriptorSignature(stream.Signature):
    """Descriptors of one ring, in order. They may arrive long before they are released."""

    def __init__(self):
        super().__init__(DESCRIPTOR_LAYOUT)


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
