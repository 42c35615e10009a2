"""The scale-up link: packets, flits, control flits, markers, codes and limits.

docs/packets.md and docs/link.md show the words as tables. Sources: the decided protocol of this project; codes and
flit layout after public summaries of PCI Express 6 flit mode (PCI-SIG webinar answers on FEC and supported features).
Words in a flit are little-endian (a word's bit 0 is bit 0 of its first byte), but for the DLP, whose first
byte holds its highest bits.
"""

from enum import IntEnum

from rtl.contract.words import Field, Word

__all__ = [
    "ACCOUNTS_SHARED",
    "CLASSES",
    "CONTROL",
    "CREDIT_MODULUS",
    "CRC_AT",
    "CRC_BYTES",
    "CRC_FIRST_ROOT",
    "CRC_ORDER",
    "CRC_POLYNOMIAL",
    "ControlKind",
    "CreditKind",
    "DEDICATED_FLITS",
    "DLP",
    "DLP_AT",
    "DLP_BYTES",
    "ENDPOINT_BITS",
    "FEC_AT",
    "FEC_BYTES",
    "FEC_GROUPS",
    "FEC_POLYNOMIAL",
    "FEC_SPAN",
    "FLIT_BYTES",
    "FLIT_HEADER",
    "FLIT_HEADER_BYTES",
    "FLIT_INFO_BYTES",
    "FLIT_PAYLOAD_BYTES",
    "LinkCause",
    "LinkState",
    "MARKER_INTERVAL_FLITS",
    "NO_HEADER",
    "NO_PROGRESS_FLITS",
    "PACKET_BYTES_MAX",
    "PACKET_HEADER",
    "PACKET_HEADER_BYTES",
    "PAYLOAD_OPCODES",
    "PacketFlag",
    "PacketOpcode",
    "REFUSED_IN_A_ROW",
    "REPEAT_FLITS",
    "RESPONSE_OPCODES",
    "RETRAINS_WITHOUT_PROGRESS",
    "SEQUENCE_MODULUS",
    "SIGNAL",
    "SIGNAL_BYTES",
    "UNIT_FLITS_MAX",
    "Usage",
    "VERSION",
    "WORD_BYTES",
]

CLASSES = 8
"""Traffic classes on the link; DMA uses the lowest four."""

ENDPOINT_BITS = 12

# Packets

PACKET_BYTES_MAX = 512
"""Longest payload of a packet, without its signal."""

PACKET_HEADER_BYTES = 16
SIGNAL_BYTES = 8
WORD_BYTES = 4
"""Packets begin at multiples of it in a unit; the bytes that fill a packet's last word are 0."""


class PacketOpcode(IntEnum):
    """What a packet asks for, or answers."""

    WRITE = 0  # store the payload
    ADD = 1  # integer add at the destination
    READ = 2  # length_bytes from the address
    FETCH_ADD = 3  # ADD that answers with what was there before
    SIGNAL = 4  # a semaphore update alone
    READ_RESPONSE = 5  # answer with a payload
    ERROR_RESPONSE = 6  # answer to a request that was refused
    END = 15  # no packet: the rest of the unit is empty


PAYLOAD_OPCODES = (PacketOpcode.WRITE, PacketOpcode.ADD, PacketOpcode.FETCH_ADD, PacketOpcode.READ_RESPONSE)
"""Their `length_bytes` follow the header; the others only tell a length."""
RESPONSE_OPCODES = (PacketOpcode.READ_RESPONSE, PacketOpcode.ERROR_RESPONSE)
"""They go as kind 1, all others as kind 0."""


class PacketFlag(IntEnum):
    """Bits of the header's `flags`."""

    SIGNAL = 1  # 8 bytes of signal follow the payload
    ADD = 6  # two bits, DmaAdd of contract.descriptor: WRITE adds its payload in SBUF


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

SIGNAL = Word(
    "packet_signal",
    64,
    (
        Field("value", 32, "", signed=True),
        Field("index", 12, "of the semaphore, at the core of the packet's address"),
        Field("update", 4, "isa.Update: ADD or SET"),
        Field("reserved", 16),
    ),
)
"""The bytes of a signal, behind the payload. A SIGNAL packet has no payload, the flag, and these bytes."""

# Flits

FLIT_BYTES = 256
FLIT_PAYLOAD_BYTES = 236
DLP_AT, DLP_BYTES = 236, 6
FLIT_INFO_BYTES = 242
"""What the codes protect: payload and DLP."""
CRC_AT, CRC_BYTES = 242, 8
FEC_AT, FEC_BYTES = 250, 6

CRC_POLYNOMIAL = 0x12B
"""x^8+x^5+x^3+x+1, field of the CRC: 8 check bytes of a Reed-Solomon code."""
CRC_FIRST_ROOT = 1
"""The generator is the product of (x + alpha^i) for 8 i from here."""
CRC_ORDER = "high_first"
"""Byte 242 holds the coefficient of x^7; "low_first": that of x^0."""
FEC_POLYNOMIAL = 0x11D
"""x^8+x^4+x^3+x^2+1, field of the FEC."""
FEC_GROUPS = 3
"""Byte i belongs to group i mod 3, at place i div 3."""
FEC_SPAN = 84
"""Places of a group; the byte at place k weighs alpha^(84 - k) in the check."""

FLIT_HEADER_BYTES = 4
FLIT_HEADER = Word(
    "flit_header",
    32,
    (
        Field("zero", 4, "must be 0"),
        Field("offset", 6, "of the first packet header after this one, in words; 63 none"),
        Field("tail", 1, "last flit of its unit"),
        Field("head", 1, "first flit of its unit"),
        Field("dedicated", 1, "pool charged: 1 dedicated, 0 shared"),
        Field("kind", 1, "0 request, 1 response"),
        Field("vc", 3, "virtual channel on this hop"),
        Field("class_", 3, "traffic class"),
        Field("endpoint", ENDPOINT_BITS, "destination"),
    ),
)
"""First bytes of a payload flit, replayed with it; `offset` counts from the flit's first byte."""

NO_HEADER = 63
UNIT_FLITS_MAX = 4
"""A unit is the run of flits from head to tail; a switch matches units."""


class Usage(IntEnum):
    """What a flit is for."""

    NOP = 0  # carries only its DLP; the payload bytes are 0
    PAYLOAD = 1
    CONTROL = 2
    RESERVED = 3


class CreditKind(IntEnum):
    """Whose credits a DLP counts."""

    NONE = 0
    REQUEST = 1
    RESPONSE = 2


DLP = Word(
    "dlp",
    48,
    (
        Field("count", 12, "cumulative flits freed plus the size of the buffer, mod 4096"),
        Field("spare0", 1, "0"),
        Field("vc", 3, "of the credit; 0 for a shared pool"),
        Field("ack", 10, "number of the last payload flit accepted in order"),
        Field("spare1", 1, "0"),
        Field("dedicated", 1, "pool of the credit: 1 dedicated, 0 shared"),
        Field("credit_kind", 2, "CreditKind"),
        Field("nak_id", 2, "of this end's receiver"),
        Field("seq", 10, "payload: own number; else the number of the payload last put on the wire"),
        Field("epoch", 2, "last nak id obeyed"),
        Field("one", 1, "must be 1"),
        Field("prior_payload", 1, "the flit before was payload; for monitors only"),
        Field("usage", 2, "Usage"),
    ),
)
"""Bytes 236 to 241, never replayed; bits 47:40 are byte 236, bits 7:0 byte 241."""

SEQUENCE_MODULUS = 1024
CREDIT_MODULUS = 4096
DEDICATED_FLITS = UNIT_FLITS_MAX
"""Slots of its own of each (vc, kind) in use: one unit."""
ACCOUNTS_SHARED = 2
"""Shared pools of a link: one a kind."""
NO_PROGRESS_FLITS = 1500
"""Flit times without progress, as sender or as receiver, after which an end retrains."""
RETRAINS_WITHOUT_PROGRESS = 3
"""After so many an end goes DOWN."""
REFUSED_IN_A_ROW = 64
"""After so many refused flits an end goes to ALIGN, its session kept."""
MARKER_INTERVAL_FLITS = 1024
REPEAT_FLITS = 32
"""A channel may repeat a flit that is at most so many flits old; it never lets one overtake another."""
VERSION = 1


class LinkState(IntEnum):
    """State of an end."""

    DOWN = 0  # one flit time long: a new session begins
    ALIGN = 1  # markers back to back until the lanes are found
    HANDSHAKE = 2  # control flits until both ends know both sessions
    UP = 3
    RETRAIN = 4  # HANDSHAKE of the same pair of sessions: nothing is cleared
    DISABLED = 5


class ControlKind(IntEnum):
    """What the end that sends a control flit is in."""

    HANDSHAKE = 1
    RETRAIN = 2


CONTROL = Word(
    "control",
    128,
    (
        Field("control_kind", 4, "ControlKind"),
        Field("echo_valid", 1, "this end has seen a session of its partner"),
        Field("heard", 1, "RETRAIN: this end has heard a control flit since it entered"),
        Field("reserved0", 2),
        Field("version", 8, "VERSION"),
        Field("session", 16, "of this end; one more on each entry into DOWN"),
        Field("echo", 16, "session of the partner as last seen"),
        Field("vcs", 4),
        Field("classes", 4),
        Field("window", 10, "flits"),
        Field("lanes", 5, "at full width"),
        Field("spare_lanes", 2),
        Field("reserved1", 55),
    ),
)
"""First 16 bytes of a control flit; the other payload bytes are 0."""


class LinkCause(IntEnum):
    """What a port counts, one 32-bit counter each; they stop at their end."""

    REFUSED = 0  # flits that FEC and CRC refused, or that were lost on the way
    MALFORMED = 1  # good codes, but what must not be: usage 3, `one` 0, zero bits, kind 3, a VC that is not its class's
    DUPLICATE = 2  # payload flits dropped because they had been accepted before
    GAP = 3  # naks sent
    REPLAY = 4  # naks obeyed
    BAD_ACK = 5  # acknowledgement of what was never sent
    CREDIT_OVERRUN = 6  # a payload flit whose account had no room: DOWN
    BAD_CREDIT = 7  # a count beyond what the account can hold
    BAD_UNIT = 8  # head and tail out of order, or more than UNIT_FLITS_MAX flits
    BAD_PACKET = 9  # unknown opcode, wrong length, offset that does not fit
    RETRAINED = 10
    DOWN = 11  # entries into DOWN after the first
    UNRESOLVED = 12  # payload flits in the retry buffer when a new session began
    CORRECTED = 13  # FEC groups repaired in good flits
    SPURIOUS = 14  # replays heard that begin with a flit which this end had accepted before: must stay 0
    FOREIGN = 15  # packets for another endpoint, or an address of another core, as who took them from the port tells it
