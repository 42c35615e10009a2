"""What travels through a port: packets, flits, words of lanes."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from rtl.contract.lanes import LANE_WORD_BYTES
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.link_config import LinkConfig

__all__ = ["beat_layout", "lanes_layout", "packet_layout", "physical_lanes"]


def beat_layout(cfg: LinkConfig) -> data.StructLayout:
    """A beat of a flit: `data` holds its bytes, the first one lowest."""
    return data.StructLayout({"first": 1, "last": 1, "data": 8 * cfg.beat_bytes})


def packet_layout(cfg: LinkConfig) -> data.StructLayout:
    """A beat of a packet: `data` holds its bytes from the first of its header on, without a gap, as wide as a flit's.

    `first`: the packet begins. `endpoint`: where it goes; where it came from stands in its header. Bytes behind the
    end count for nothing on the way in and are 0 on the way out.
    """
    return data.StructLayout(
        {"first": 1, "last": 1, "class_": 3, "endpoint": ENDPOINT_BITS, "data": 8 * cfg.beat_bytes}
    )


def physical_lanes(cfg: LinkConfig) -> int:
    """Lanes of one direction, spares too."""
    return cfg.lanes + cfg.spare_lanes


def lanes_layout(cfg: LinkConfig) -> data.ArrayLayout:
    """A word on every physical lane."""
    return data.ArrayLayout(unsigned(8 * LANE_WORD_BYTES), physical_lanes(cfg))
