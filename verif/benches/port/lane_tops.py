"""The units of the lanes at a named link, for builds of their own."""

from amaranth.hdl import ValueLike

from rtl.port.lane_receiver import LaneReceiver
from rtl.port.lane_sender import LaneSender
from verif.benches.port.lane_pair_top import pair_config

__all__ = ["receiver", "sender"]


def sender(link: str, spares: int, interval: int, plant: ValueLike = 0) -> LaneSender:
    """The sending end."""
    return LaneSender(pair_config(link, spares), interval, plant)


def receiver(link: str, spares: int, interval: int, plant: ValueLike = 0) -> LaneReceiver:
    """The receiving end."""
    return LaneReceiver(pair_config(link, spares), interval, plant)
