"""Rings as traces number them."""

from rtl.contract.isa import COPY_QUEUES, Queue

__all__ = ["OWN_RINGS", "own_ring", "ring_name"]

OWN_RINGS = 16
"""Numbers of rings that are not in HBM, but of isa.COPY_QUEUES, from here on: rtl.base.trace.RINGS_MAX."""


def own_ring(queue: Queue) -> int:
    """The number of the ring that a queue fills directly."""
    return OWN_RINGS + COPY_QUEUES.index(queue)


def ring_name(number: int) -> str:
    """What people call it."""
    return f"ring {number}" if number < OWN_RINGS else f"{COPY_QUEUES[number - OWN_RINGS].name.lower()} copies"
