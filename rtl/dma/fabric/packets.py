"""What the parts of a link's DMA tell each other about packets."""

from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import data
from amaranth.utils import exact_log2

from rtl.base.axi import ADDRESS_BITS
from rtl.base.layouts import layout
from rtl.contract.config import Config
from rtl.contract.link import ENDPOINT_BITS, PACKET_BYTES_MAX, PACKET_HEADER, SIGNAL, PacketFlag, PacketOpcode
from rtl.dma.layouts import PARTITION_SHIFT, address_bits, bytes_bits, lane_bits, pair_bits, slot_bits

__all__ = [
    "CHUNK_BYTES",
    "HEADER",
    "RECEIVED",
    "SIGNAL_LAYOUT",
    "SLOTS_EACH",
    "ROUND_BITS",
    "SLOT_BITS",
    "TO_SEND",
    "WINDOW_BYTES",
    "UNIT_BITS",
    "added",
    "bank_bits",
    "bank_of",
    "window_bank",
    "flagged",
    "link_config",
    "payload_bytes",
    "remote_row",
    "staging",
]

SLOT_BITS = 6
SLOTS_EACH = 1 << SLOT_BITS
"""Packets that a staging memory holds; there is one for each direction and kind. Place n is in its bank n modulo
dma.link_movers, which one mover each way serves."""

ROUND_BITS = 4
"""Of a tag, above the slot: how often the link has been lost, so that an answer from before is told from a new one."""

UNIT_BITS = 5
"""Units of 16 bytes of the longest payload."""

CHUNK_BYTES = 448
"""Payload of the packets that transfers are cut into: with its header it fills two flits exactly."""

WINDOW_BYTES = 4096
"""Of HBM: packets of one bank only write there, so that of two writes of a class to the same bytes the later stays."""

HEADER = layout(PACKET_HEADER)
SIGNAL_LAYOUT = layout(SIGNAL)

RECEIVED = data.StructLayout(
    {"slot": SLOT_BITS, "class_": 3, "whole": 1, "foreign": 1, "header": HEADER, "signal": SIGNAL_LAYOUT}
)
"""A packet that has come in: where its payload stands, whether it had the beats that its header says, and whether the
header of its flits names another endpoint."""

TO_SEND = data.StructLayout(
    {"slot": SLOT_BITS, "holds": 1, "class_": 3, "endpoint": ENDPOINT_BITS, "header": HEADER, "signal": SIGNAL_LAYOUT}
)
"""A packet to be sent. `holds`: its payload stands in `slot`, which is told when it has been sent."""

_PAYLOAD = (PacketOpcode.WRITE, PacketOpcode.ADD, PacketOpcode.FETCH_ADD, PacketOpcode.READ_RESPONSE)


def payload_bytes(header: data.View) -> Value:
    """Bytes between header and signal."""
    carries = reduce(or_, (header.opcode == opcode for opcode in _PAYLOAD))
    return Mux(carries, header.length_bytes, 0)


def flagged(header: data.View) -> Value:
    """A signal follows the payload."""
    return (header.flags & PacketFlag.SIGNAL).any()


def added(header: data.View) -> Value:
    """DmaAdd of contract.descriptor of the payload."""
    return header.flags[1:3]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LinkConfig(Config):
    """A core's rule of a mover for each quadrant does not hold for the movers of a link."""

    def __post_init__(self) -> None:
        pass


def link_config(cfg: Config) -> Config:
    """The configuration of the movers of a link: one group of all partitions, a slot number for each place in the
    staging memories of both kinds, one class."""
    if pair_bits(cfg) + (cfg.partitions - 1).bit_length() < SLOT_BITS + 1 + UNIT_BITS:
        raise ValueError("a core with a link needs an SBUF of 64 KiB at least")
    sections = {f.name: getattr(cfg, f.name) for f in fields(cfg)}
    sections["dma"] = replace(
        cfg.dma, engines=1, rings=2, ring_depth=SLOTS_EACH, classes=1, strict_class=-1, priority=False
    )
    sections["hbm"] = replace(cfg.hbm, ports=1)
    return _LinkConfig(**sections)


def bank_bits(cfg: Config) -> int:
    """Low bits of a place that name its bank."""
    return exact_log2(cfg.dma.link_movers)


def bank_of(own: Config, sbuf: Value, offset: Value, turn: Value) -> Value:
    """Bank for bytes at `offset` of a core: in SBUF that of their group of partitions, so that what goes to one
    partition stays in order, and no two movers meet at a group; in HBM `turn`."""
    group = offset[PARTITION_SHIFT + lane_bits(own) :]
    return Mux(sbuf, group[: bank_bits(own)], turn)


def window_bank(own: Config, offset: Value) -> Value:
    """That of a window of HBM: all bits above it take part, so that rows at any pitch are spread over the banks."""
    bits = bank_bits(own)
    window = offset[exact_log2(WINDOW_BYTES) : ADDRESS_BITS]
    return Cat(window[k::bits].xor() for k in range(bits))


def staging(cfg: Config, kind: Value | int, slot: Value) -> Value:
    """Address, as a mover of a link takes it, of a place in the staging memory of `kind`."""
    unit = Cat(Const(0, UNIT_BITS), slot[:SLOT_BITS], Const(kind, 1) if isinstance(kind, int) else kind)
    pairs = pair_bits(cfg)
    gap = PARTITION_SHIFT - 4 - pairs
    return Cat(Const(0, 4), unit[:pairs], Const(0, max(0, pairs - len(unit)) + gap), unit[pairs:])


def remote_row(cfg: Config) -> data.StructLayout:
    """A row with one end in another core: `local` and `bytes` here, `remote` there."""
    return data.StructLayout(
        {
            "slot": slot_bits(cfg),
            "write": 1,  # towards the other core
            "local_sbuf": 1,
            "local": address_bits(cfg),
            "remote": 64,
            "bytes": bytes_bits(cfg),
            "add": 2,  # DmaAdd of contract.descriptor, there
            "class_": 3,
            "last": 1,  # of its descriptor
            "signals": 1,  # with its last packet, at the other core
            "signal": SIGNAL_LAYOUT,
        }
    )


assert PACKET_BYTES_MAX == 16 << UNIT_BITS
assert PacketFlag.ADD == 0b11 << 1
