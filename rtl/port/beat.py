"""What travels between codec and lanes."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from rtl.contract.lanes import LANE_WORD_BYTES
from rtl.contract.link_config import LinkConfig

__all__ = ["beat_layout", "lanes_layout", "physical_lanes"]


def beat_layout(cfg: LinkConfig) -> data.StructLayout:
    """A beat of a flit: `data` holds its bytes, the first one lowest."""
    return data.StructLayout({"first": 1, "last": 1, "data": 8 * cfg.beat_bytes})


def physical_lanes(cfg: LinkConfig) -> int:
    """Lanes of one direction, spares too."""
    return cfg.lanes + cfg.spare_lanes


def lanes_layout(cfg: LinkConfig) -> data.ArrayLayout:
    """A word on every physical lane."""
    return data.ArrayLayout(unsigned(8 * LANE_WORD_BYTES), physical_lanes(cfg))
