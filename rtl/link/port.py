"""A port: packets on one side, lanes on the other."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link_config import LinkConfig
from rtl.link.beat import lanes_layout, physical_lanes
from rtl.link.lanes.lane_receiver import LaneReceiver
from rtl.link.lanes.lane_sender import LaneSender
from rtl.link.link_layer import LinkLayer
from rtl.link.packet_side import connect_side, packet_side
from rtl.link.status import PortStatus

__all__ = ["Port"]


class Port(wiring.Component):
    """LinkLayer with its lanes: a word of 8 bytes on every physical lane in each cycle, spare lanes too.

    `status_address`, `status_value`: see PortStatus. `tx_flit`: a flit begins with the beat that the lanes take in this
    cycle. The other ports are those of LinkLayer, LaneSender and LaneReceiver.
    """

    def __init__(self, cfg: LinkConfig, form: str = "native"):
        self.cfg = cfg
        self.form = form
        lanes = physical_lanes(cfg)
        super().__init__(
            {
                **packet_side(cfg),
                "tx_valid": Out(1),
                "tx": Out(lanes_layout(cfg)),
                "tx_flit": Out(1),
                "rx_valid": In(1),
                "rx": In(lanes_layout(cfg)),
                "tx_width": Out(5),
                "rx_width": Out(5),
                "weak_lanes": Out(lanes),
                "dead_lanes": Out(lanes),
                "status_address": In(8),
                "status_value": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.link = link = LinkLayer(cfg, self.form)
        m.submodules.sender = sender = LaneSender(cfg)
        m.submodules.receiver = receiver = LaneReceiver(cfg)
        m.submodules.status = status = PortStatus(cfg)
        connect_side(m, self, link, cfg)
        wiring.connect(m, link.o, sender.i)
        m.d.comb += [
            self.tx_flit.eq(link.o.valid & link.o.ready & link.o.payload.first),
            sender.align.eq(link.align),
            sender.mask.eq(receiver.partner_mask),
            sender.here.eq(receiver.locked),
            sender.hear.eq(receiver.mask),
            self.tx_valid.eq(sender.valid),
            self.tx.eq(sender.lanes),
            receiver.valid.eq(self.rx_valid),
            receiver.lanes.eq(self.rx),
            receiver.align.eq(link.align),
            receiver.clear.eq(link.clear),
            receiver.fix_valid.eq(link.fix_valid),
            receiver.fix_lost.eq(link.fix_lost),
            receiver.fix.eq(link.fix),
            link.aligned.eq(receiver.aligned),
            link.realign.eq(receiver.realign),
            link.i_valid.eq(receiver.o_valid),
            link.i.eq(receiver.o),
            self.tx_width.eq(sender.width),
            self.rx_width.eq(receiver.width),
            self.weak_lanes.eq(receiver.weak_lanes),
            self.dead_lanes.eq(receiver.dead_lanes),
            status.address.eq(self.status_address),
            self.status_value.eq(status.value),
            *(
                getattr(status, name).eq(getattr(self, name))
                for name in status.signature.members
                if name not in ("address", "now", "value")
            ),
        ]
        return m
