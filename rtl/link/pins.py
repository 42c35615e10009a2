"""Plain pins of a port for drivers outside: packets, state and counters."""

from amaranth.hdl import Cat, Module, Shape, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link import LinkCause
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from rtl.link.link_layer import LinkLayer
from rtl.link.port import Port

__all__ = ["connect_pins", "port_pins"]

_PACKET = {"first": "first", "last": "last", "class": "class_", "endpoint": "endpoint", "data": "data"}
"""Pins of a beat of a packet, and the fields they show."""
_STATUS = {"state": 4, "session": 16, "partner": 16, "in_flight": 10, "sent_payload": 1, "sent_number": 10}


def port_pins(cfg: LinkConfig) -> dict[str, wiring.Member]:
    """Members of a driver's top. `take`: bit 0, requests may leave; bit 1, responses.

    Counters are `count_` and the lower-case name of their LinkCause.
    """
    fields = packet_layout(cfg)
    widths = {pin: Shape.cast(fields[field].shape).width for pin, field in _PACKET.items()}
    return {
        "session_init": In(16),
        "restart": In(1),
        "disabled": In(1),
        "packet_valid": In(1),
        **{f"packet_{n}": In(w) for n, w in widths.items()},
        "packet_ready": Out(1),
        "room": Out(cfg.queues),
        **{f"{k}_{n}": Out(w) for k in ("request", "response") for n, w in (widths | {"valid": 1}).items()},
        "take": In(2),
        **{name: Out(unsigned(width)) for name, width in _STATUS.items()},
        **{f"count_{cause.name.lower()}": Out(32) for cause in LinkCause},
    }


def connect_pins(m: Module, top: wiring.Component, port: LinkLayer | Port) -> None:
    """Wire the pins of `top` to a port."""
    sent = port.packet
    pins = {name: getattr(top, name) for name in port_pins(port.cfg)}
    m.d.comb += [
        *(getattr(port, name).eq(pins[name]) for name in ("session_init", "restart", "disabled")),
        *(pins[name].eq(getattr(port, name)) for name in _STATUS),
        sent.valid.eq(pins["packet_valid"]),
        pins["packet_ready"].eq(sent.ready),
        pins["room"].eq(port.room),
        Cat(port.request.ready, port.response.ready).eq(pins["take"]),
    ]
    for pin, member in _PACKET.items():
        m.d.comb += sent.payload[member].eq(pins[f"packet_{pin}"])
        for kind in ("request", "response"):
            m.d.comb += pins[f"{kind}_{pin}"].eq(getattr(port, kind).payload[member])
    for kind in ("request", "response"):
        m.d.comb += pins[f"{kind}_valid"].eq(getattr(port, kind).valid)
    for cause in LinkCause:
        m.d.comb += pins[f"count_{cause.name.lower()}"].eq(port.counts[cause])
