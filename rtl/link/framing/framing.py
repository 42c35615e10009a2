"""What the units of framing share: layouts, and where a word of a unit stands in a flit.

A flit is seen as *rows*, a beat of the datapath each: 4 of 16 words, or 2 of 32 at x16. Lane 0 of row 0 is the flit
header; words of packets stand behind it, up to lane 10 (26) of the last row. So a row has a first lane and an end, and
between the words of two flits of a unit lie 6 lanes that hold no words of packets.
"""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
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
    "PACKET_FLITS_MAX",
    "PACKET_HEADER_LAYOUT",
    "UNIT_WORDS",
    "WORD_BITS",
    "Rows",
    "body_bytes",
    "byte_mask",
    "is_response",
    "is_sound",
    "packet_words",
    "rotate_words",
    "rows_of",
    "unit_layout",
    "unit_rows",
]

WORD_BITS = 8 * WORD_BYTES
FLIT_WORDS = (FLIT_PAYLOAD_BYTES - FLIT_HEADER_BYTES) // WORD_BYTES
UNIT_WORDS = UNIT_FLITS_MAX * FLIT_WORDS
HEADER_WORDS = PACKET_HEADER_BYTES // WORD_BYTES
GAP_LANES = (FLIT_BYTES - DLP_AT + FLIT_HEADER_BYTES) // WORD_BYTES
"""Lanes between the words of two flits: DLP and codes of one, the header of the next."""
_PACKET_WORDS_MAX = HEADER_WORDS + (PACKET_BYTES_MAX + SIGNAL_BYTES) // WORD_BYTES
PACKET_FLITS_MAX = -(-_PACKET_WORDS_MAX // FLIT_WORDS)
"""Flits that a longest packet can add to a queue, alone or in a unit that is there."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a flit: `count` of `lanes` words; the last one ends before lane `last_end`."""

    count: int
    lanes: int

    @property
    def bits(self) -> int:
        """Of a row."""
        return self.lanes * WORD_BITS

    @property
    def last_end(self) -> int:
        """End of the last row: lanes from here on are DLP and codes."""
        return DLP_AT // WORD_BYTES - (self.count - 1) * self.lanes

    def start(self, row: Value) -> Value:
        """First lane of a row that holds words of packets."""
        return row == 0

    def end(self, row: Value) -> Value:
        """Lane after the last one of a row that holds words of packets."""
        return Mux(row == self.count - 1, self.last_end, self.lanes)


def rows_of(cfg: LinkConfig) -> Rows:
    """The rows of a flit on a link's datapath."""
    return Rows(cfg.beats, cfg.beat_bytes // WORD_BYTES)


FLIT_HEADER_LAYOUT = layout(FLIT_HEADER)
PACKET_HEADER_LAYOUT = layout(PACKET_HEADER)


def unit_layout(cfg: LinkConfig) -> data.StructLayout:
    """A unit that waits: `words` of packets in `flits`; `offsets` of the first packet header in each flit; `beats` that
    its packets take at a packet port."""
    return data.StructLayout(
        {
            "queue": range(cfg.queues),
            "endpoint": ENDPOINT_BITS,
            "words": range(UNIT_WORDS + 1),
            "flits": range(UNIT_FLITS_MAX + 1),
            "beats": range(UNIT_WORDS // HEADER_WORDS + 1),
            "offsets": data.ArrayLayout(6, UNIT_FLITS_MAX),
        }
    )


def unit_rows(cfg: LinkConfig) -> data.StructLayout:
    """Rows of a received unit of `flits` flits."""
    return data.StructLayout({"flits": range(UNIT_FLITS_MAX + 1), "data": 8 * cfg.beat_bytes})


def rotate_words(m: Module, row: Value, lanes: Value, name: str) -> Value:
    """A row whose word l stands at lane (l + lanes) modulo its lanes, a power of two that `lanes` counts to."""
    for bit in range(len(lanes)):
        # a signal a stage: an expression would be written out once for each use of it
        before = Signal(len(row), name=f"{name}_{bit}")
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


def byte_mask(size: Value, size_bytes: int) -> Value:
    """Ones for the lowest `size` of `size_bytes` bytes."""
    bits = 8 * size_bytes
    return Const((1 << bits) - 1, bits) >> Cat(Const(0, 3), (size_bytes - size)[: size_bytes.bit_length()])
