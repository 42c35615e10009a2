"""What the parts of an ingress hand to each other: beats with parity, places of flits, units."""

from amaranth.lib import data
from amaranth.utils import bits_for

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig

__all__ = ["parity_beat", "record_layout", "slot_layout", "unit_beat"]


def parity_beat(cfg: LinkConfig) -> data.StructLayout:
    """A beat of a flit and a parity bit a byte (bit i: byte i); who made `data` made `parity`."""
    return data.StructLayout({"first": 1, "last": 1, "data": 8 * cfg.beat_bytes, "parity": cfg.beat_bytes})


def unit_beat(cfg: LinkConfig) -> data.StructLayout:
    """A beat in the crossbar. `first`, `last`: of its flit; `head`, `tail`: its flit is that of its unit."""
    return data.StructLayout(
        {"first": 1, "last": 1, "data": 8 * cfg.beat_bytes, "parity": cfg.beat_bytes, "head": 1, "tail": 1}
    )


def slot_layout(pool_flits: int) -> data.StructLayout:
    """Where a flit lies in a pool, and from which pool of credits it came."""
    return data.StructLayout({"index": bits_for(pool_flits - 1), "dedicated": 1})


def record_layout(pool_flits: int) -> data.StructLayout:
    """A unit: `flits` slots in order."""
    return data.StructLayout(
        {"slots": data.ArrayLayout(slot_layout(pool_flits), UNIT_FLITS_MAX), "flits": range(UNIT_FLITS_MAX + 1)}
    )
