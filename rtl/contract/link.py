"""Packets of the scale-up fabric: opcodes, header, traffic classes.

docs/packets.md shows them as tables. Flit fields are not here.
"""

from enum import IntEnum

from rtl.contract.words import Field, Word

__all__ = ["CLASSES", "ENDPOINT_BITS", "PACKET_BYTES_MAX", "PACKET_HEADER", "PacketFlag", "PacketOpcode"]

CLASSES = 8
"""Traffic classes on the link; DMA uses the lowest four."""

ENDPOINT_BITS = 12

PACKET_BYTES_MAX = 512
"""Longest payload of a packet, without its signal."""


class PacketOpcode(IntEnum):
    """What a packet asks for, or answers."""

    WRITE = 0  # store the payload
    ADD = 1  # integer add at the destination
    READ = 2  # length_bytes from the address
    FETCH_ADD = 3  # ADD that answers with what was there before
    SIGNAL = 4  # a semaphore update alone
    READ_RESPONSE = 5  # answer with a payload
    ERROR_RESPONSE = 6  # answer to a request that was refused


class PacketFlag(IntEnum):
    """Bits of the header's `flags`."""

    SIGNAL = 1  # 8 bytes of signal follow the payload


PACKET_HEADER = Word(
    "packet_header",
    128,
    (
        Field("opcode", 4, "PacketOpcode"),
        Field("flags", 4, "PacketFlag"),
        Field("length_bytes", 10, "payload, 0 to 512"),
        Field("tag", 10, "chosen by the requester, returned by the response"),
        Field("source", ENDPOINT_BITS, "endpoint that sends"),
        Field("address", 64, "memmap.ADDRESS at the destination"),
        Field("reserved", 24),
    ),
)
