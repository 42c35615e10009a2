"""What the units of framing share: layouts, and where a word of a unit stands in a flit.

A flit's payload is seen as 4 *rows* of 16 words (64 bytes). Lane 0 of row 0 is the flit header; words of packets
stand in lanes 1 to 15 of row 0, in rows 1 and 2, and in lanes 0 to 10 of row 3. So a row has a first lane and an
end, and between the words of two flits of a unit lie 6 lanes that hold no words of packets.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data

from rtl.base.layouts import layout
from rtl.contract.link import (
    DLP_AT,
    ENDPOINT_BITS,
    FLIT_BYTES,
    FLIT_HEADER,
    FLIT_HEADER_BYTES,
    FLIT_PAYLOAD_BYTES,
    PACKET_BYTES_MAX,
    PACKET_HEADER,
    PACKET_HEADER_BYTES,
    PAYLOAD_OPCODES,
    RESPONSE_OPCODES,
    SIGNAL_BYTES,
    UNIT_FLITS_MAX,
    WORD_BYTES,
    PacketFlag,
    PacketOpcode,
)
from rtl.contract.link_config import LinkConfig

__all__ = [
    "FLIT_HEADER_LAYOUT",
    "FLIT_WORDS",
    "GAP_LANES",
    "HEADER_WORDS",
    "LANES",
    "LAST_END",
    "PACKET_FLITS_MAX",
    "PACKET_HEADER_LAYOUT",
    "ROWS",
    "ROW_BITS",
    "UNIT_WORDS",
    "WORD_BITS",
    "body_bytes",
    "is_response",
    "is_sound",
    "packet_words",
    "rotate_words",
    "row_end",
    "row_start",
    "unit_layout",
    "unit_rows",
]

WORD_BITS = 8 * WORD_BYTES
LANES = 16
ROW_BITS = LANES * WORD_BITS
ROWS = FLIT_BYTES // (LANES * WORD_BYTES)
FLIT_WORDS = (FLIT_PAYLOAD_BYTES - FLIT_HEADER_BYTES) // WORD_BYTES
UNIT_WORDS = UNIT_FLITS_MAX * FLIT_WORDS
HEADER_WORDS = PACKET_HEADER_BYTES // WORD_BYTES
LAST_END = DLP_AT // WORD_BYTES - (ROWS - 1) * LANES
"""End of the last row of a flit: lanes from here on are DLP and codes."""
GAP_LANES = LANES - LAST_END + 1
"""Lanes between the words of two flits: the end of a row 3 and the header in the next row 0."""
_PACKET_WORDS_MAX = HEADER_WORDS + (PACKET_BYTES_MAX + SIGNAL_BYTES) // WORD_BYTES
PACKET_FLITS_MAX = -(-_PACKET_WORDS_MAX // FLIT_WORDS)
"""Flits that a longest packet can add to a queue, alone or in a unit that is there."""

FLIT_HEADER_LAYOUT = layout(FLIT_HEADER)
PACKET_HEADER_LAYOUT = layout(PACKET_HEADER)


def unit_layout(cfg: LinkConfig) -> data.StructLayout:
    """A unit that waits: `words` of packets in `flits`; `offsets` of the first packet header in each flit."""
    return data.StructLayout(
        {
            "queue": range(cfg.queues),
            "endpoint": ENDPOINT_BITS,
            "words": range(UNIT_WORDS + 1),
            "flits": range(UNIT_FLITS_MAX + 1),
            "offsets": data.ArrayLayout(6, UNIT_FLITS_MAX),
        }
    )


def unit_rows(cfg: LinkConfig) -> data.StructLayout:
    """Rows of a received unit of `flits` flits, a beat of a flit at a time."""
    return data.StructLayout({"flits": range(UNIT_FLITS_MAX + 1), "data": 8 * cfg.beat_bytes})


def row_start(row: Value) -> Value:
    """First lane of a row that holds words of packets."""
    return row == 0


def row_end(row: Value) -> Value:
    """Lane after the last one of a row that holds words of packets."""
    return Mux(row == ROWS - 1, LAST_END, LANES)


def rotate_words(m: Module, row: Value, lanes: Value, name: str) -> Value:
    """A row whose word l stands at lane (l + lanes) mod 16; lanes: 4 bits."""
    for bit in range(4):
        # a signal a stage: an expression would be written out once for each use of it
        before = Signal(ROW_BITS, name=f"{name}_{bit}")
        m.d.comb += before.eq(row)
        row = Mux(lanes[bit], before.rotate_left(WORD_BITS << bit), before)
    return row


def _one_of(opcode: Value, opcodes: tuple[PacketOpcode, ...]) -> Value:
    return opcode.matches(*(f"{int(o):04b}" for o in opcodes))


def is_response(header: data.View) -> Value:
    """Kind of a packet."""
    return _one_of(header.opcode, RESPONSE_OPCODES)


def is_sound(header: data.View) -> Value:
    """A packet header with a known opcode, known flags and a length that may be."""
    known = tuple(o for o in PacketOpcode if o != PacketOpcode.END)
    flags = sum(PacketFlag)
    return (
        _one_of(header.opcode, known) & ((header.flags & ~flags & 0xF) == 0) & (header.length_bytes <= PACKET_BYTES_MAX)
    )


def body_bytes(header: data.View) -> Value:
    """Bytes behind the header: payload and signal, 10 bits of a sound header."""
    payload = Mux(_one_of(header.opcode, PAYLOAD_OPCODES), header.length_bytes, 0)
    return (payload + Mux(header.flags & PacketFlag.SIGNAL, SIGNAL_BYTES, 0))[:10]


def packet_words(body: Value) -> Value:
    """Words of a packet with so many bytes behind its header."""
    return HEADER_WORDS + ((body + (WORD_BYTES - 1)) >> 2)
