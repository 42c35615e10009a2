"""Ports with plain pins, for drivers: at flit granularity, and with lanes."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link_config import LinkConfig
from rtl.link.beat import lanes_layout, physical_lanes
from rtl.link.link_layer import LinkLayer
from rtl.link.pins import connect_pins, port_pins
from rtl.link.port import Port

__all__ = ["LaneDevice", "PortDevice"]


class PortDevice(wiring.Component):
    """LinkLayer without lanes, aligned at once: a beat each way in every cycle.

    `rx_refuse`, with the last beat: the decoder refuses the flit.
    """

    def __init__(self, cfg: LinkConfig, form: str = "native"):
        self.cfg = cfg
        self.form = form
        wide = 8 * cfg.beat_bytes
        beat = {"valid": 1, "first": 1, "last": 1, "data": wide}
        super().__init__(
            {
                **port_pins(cfg),
                **{f"rx_{n}": In(w) for n, w in (beat | {"refuse": 1}).items()},
                **{f"tx_{n}": Out(w) for n, w in beat.items()},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = LinkLayer(self.cfg, self.form)
        connect_pins(m, self, link)
        m.d.comb += [
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
        ]
        return m


class LaneDevice(wiring.Component):
    """Port: lane l is bits 64 l to 64 l + 63 of `tx` and `rx`."""

    def __init__(self, cfg: LinkConfig, form: str = "native"):
        self.cfg = cfg
        self.form = form
        lanes = physical_lanes(cfg)
        width = lanes_layout(cfg).size
        super().__init__(
            {
                **port_pins(cfg),
                "rx_valid": In(1),
                "rx": In(width),
                "tx_valid": Out(1),
                "tx": Out(width),
                "tx_flit": Out(1),
                "tx_width": Out(5),
                "rx_width": Out(5),
                "weak_lanes": Out(lanes),
                "dead_lanes": Out(lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.port = port = Port(self.cfg, self.form)
        connect_pins(m, self, port)
        m.d.comb += [
            port.rx_valid.eq(self.rx_valid),
            port.rx.eq(self.rx),
            self.tx_valid.eq(port.tx_valid),
            self.tx.eq(port.tx),
            *(getattr(self, n).eq(getattr(port, n)) for n in ("tx_flit", "tx_width", "rx_width")),
            *(getattr(self, n).eq(getattr(port, n)) for n in ("weak_lanes", "dead_lanes")),
        ]
        return m
