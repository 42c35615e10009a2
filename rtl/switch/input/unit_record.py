"""What the parts of an ingress hand to each other: places of flits, units."""

from amaranth.lib import data
from amaranth.utils import bits_for

from rtl.contract.link import ENDPOINT_BITS, UNIT_FLITS_MAX

__all__ = ["open_layout", "record_layout", "slot_layout"]


def slot_layout(pool_flits: int) -> data.StructLayout:
    """Where a flit lies in a pool, and from which pool of credits it came."""
    return data.StructLayout({"index": bits_for(pool_flits - 1), "dedicated": 1})


def record_layout(pool_flits: int) -> data.StructLayout:
    """A unit: `flits` slots in order."""
    return data.StructLayout(
        {"slots": data.ArrayLayout(slot_layout(pool_flits), UNIT_FLITS_MAX), "flits": range(UNIT_FLITS_MAX + 1)}
    )


def open_layout(outputs: int, pool_flits: int) -> data.StructLayout:
    """A unit whose tail has not come: `flits` slots in order, and what its head said."""
    return data.StructLayout(
        {
            "slots": data.ArrayLayout(slot_layout(pool_flits), UNIT_FLITS_MAX - 1),
            "flits": range(UNIT_FLITS_MAX),
            "endpoint": ENDPOINT_BITS,
            "output": range(outputs),
            "refused": 1,
        }
    )
