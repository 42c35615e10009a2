"""Packet streams between a core's DMA and the fabric."""

from amaranth.lib import data

from rtl.contract.link import ENDPOINT_BITS

__all__ = ["BEAT_BYTES", "FOREIGN_BITS", "PACKET_BEAT"]

BEAT_BYTES = 64
"""The datapath of a link port."""

FOREIGN_BITS = 4
"""Of the count of packets that a core has sent back as none of its own: a port adds what it has grown by."""

PACKET_BEAT = data.StructLayout(
    {
        "first": 1,  # the beat of the header
        "last": 1,
        "class_": 3,
        "endpoint": ENDPOINT_BITS,  # where the packet goes; where it came from stands in its header
        "data": 8 * BEAT_BYTES,
    }
)
"""A packet is a beat with the header (link.PACKET_HEADER in the low 16 bytes, the rest 0) and then its
payload, 64 bytes a beat from the first byte on, followed without a gap by the 8 bytes of its signal."""
