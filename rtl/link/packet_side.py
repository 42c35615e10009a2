"""What a port has but its lanes: members that LinkLayer and Port share."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link import LinkCause
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout

__all__ = ["connect_side", "packet_side"]


def packet_side(cfg: LinkConfig) -> dict[str, wiring.Member]:
    """Packets with `room` for one of the longest and `room_pair` for two (bit class * 2 + kind), what a user sets, and
    the state that is told."""
    return {
        "session_init": In(16),
        "restart": In(1),
        "disabled": In(1),
        "packet": In(stream.Signature(packet_layout(cfg))),
        "room": Out(cfg.queues),
        "room_pair": Out(cfg.queues),
        "request": Out(stream.Signature(packet_layout(cfg))),
        "response": Out(stream.Signature(packet_layout(cfg))),
        "state": Out(4),
        "session": Out(16),
        "partner": Out(16),
        "in_flight": Out(range(cfg.window_flits + 1)),
        "sent_payload": Out(1),
        "sent_number": Out(10),
        "counts": Out(data.ArrayLayout(unsigned(32), len(LinkCause))),
    }


def connect_side(m: Module, outer: wiring.Component, inner: wiring.Component, cfg: LinkConfig) -> None:
    """Give all of it to the user of `outer`, whose part `inner` has it."""
    for name, member in packet_side(cfg).items():
        mine, its = getattr(outer, name), getattr(inner, name)
        if not member.is_port:
            wiring.connect(m, wiring.flipped(mine), its)
        elif member.flow == In:
            m.d.comb += its.eq(mine)
        else:
            m.d.comb += mine.eq(its)
