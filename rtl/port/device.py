"""A port at flit granularity with plain pins: what a driver attaches a partner of its own to."""

from amaranth.hdl import Cat, Module, ValueLike, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.packet import BEAT_BYTES
from rtl.contract.link import ENDPOINT_BITS, LinkCause
from rtl.contract.link_config import LinkConfig
from rtl.port.link_layer import LinkLayer

__all__ = ["PortDevice"]


class PortDevice(wiring.Component):
    """LinkLayer without lanes, aligned at once. A beat each way in every cycle.

    `rx_refuse`, with the last beat: the decoder refuses the flit. `take`: bit 0, requests may leave; bit 1, responses.
    Counters are `count_` and the lower-case name of their LinkCause.
    """

    def __init__(self, cfg: LinkConfig, form: str = "native", plant: ValueLike = 0):
        self.cfg = cfg
        self.form = form
        self.plant = plant
        self.FAULTS = LinkLayer.FAULTS
        wide = 8 * cfg.beat_bytes
        packet = {"valid": 1, "first": 1, "last": 1, "class": 3, "endpoint": ENDPOINT_BITS, "data": 8 * BEAT_BYTES}
        super().__init__(
            {
                "session_init": In(16),
                "restart": In(1),
                "disable": In(1),
                **{
                    f"rx_{n}": In(w)
                    for n, w in (("valid", 1), ("first", 1), ("last", 1), ("refuse", 1), ("data", wide))
                },
                **{f"tx_{n}": Out(w) for n, w in (("valid", 1), ("first", 1), ("last", 1), ("data", wide))},
                **{f"packet_{n}": In(w) for n, w in packet.items()},
                "packet_ready": Out(1),
                "room": Out(cfg.queues),
                **{f"{k}_{n}": Out(w) for k in ("request", "response") for n, w in packet.items()},
                "take": In(2),
                "state": Out(3),
                "session": Out(16),
                "partner": Out(16),
                "in_flight": Out(unsigned(10)),
                **{f"count_{cause.name.lower()}": Out(32) for cause in LinkCause},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = LinkLayer(self.cfg, self.form, plant=self.plant)
        sent = link.packet
        m.d.comb += [
            link.session_init.eq(self.session_init),
            link.restart.eq(self.restart),
            link.disable.eq(self.disable),
            link.aligned.eq(1),
            link.i_valid.eq(self.rx_valid),
            link.i.first.eq(self.rx_first),
            link.i.last.eq(self.rx_last),
            link.i.data.eq(self.rx_data),
            link.i_refuse.eq(self.rx_refuse),
            link.o.ready.eq(1),
            self.tx_valid.eq(link.o.valid),
            self.tx_first.eq(link.o.payload.first),
            self.tx_last.eq(link.o.payload.last),
            self.tx_data.eq(link.o.payload.data),
            sent.valid.eq(self.packet_valid),
            sent.payload.first.eq(self.packet_first),
            sent.payload.last.eq(self.packet_last),
            sent.payload.class_.eq(self.packet_class),
            sent.payload.endpoint.eq(self.packet_endpoint),
            sent.payload.data.eq(self.packet_data),
            self.packet_ready.eq(sent.ready),
            self.room.eq(link.room),
            Cat(link.request.ready, link.response.ready).eq(self.take),
            self.state.eq(link.state),
            self.session.eq(link.session),
            self.partner.eq(link.partner),
            self.in_flight.eq(link.in_flight),
        ]
        for kind in ("request", "response"):
            out = getattr(link, kind)
            m.d.comb += getattr(self, f"{kind}_valid").eq(out.valid)
            for pin, member in (("first", "first"), ("last", "last"), ("class", "class_"), ("data", "data")):
                m.d.comb += getattr(self, f"{kind}_{pin}").eq(out.payload[member])
            m.d.comb += getattr(self, f"{kind}_endpoint").eq(out.payload.endpoint)
        for cause in LinkCause:
            m.d.comb += getattr(self, f"count_{cause.name.lower()}").eq(link.counts[cause])
        return m
