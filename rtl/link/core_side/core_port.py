"""A core at a port: its packet streams to and from a LinkLayer, and the end of what a new session lost."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.packet import FOREIGN_BITS, PACKET_BEAT
from rtl.contract.config_sections import DMA_CLASSES
from rtl.contract.link import LinkState
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import physical_lanes
from rtl.link.core_side.packet_merge import PacketMerge
from rtl.link.core_side.packet_pack import PacketPack
from rtl.link.core_side.packet_split import PacketSplit
from rtl.link.link_layer import LinkLayer
from rtl.link.status import PortStatus

__all__ = ["CorePort"]

_PACKETS = stream.Signature(PACKET_BEAT)
_SETTLED = 8
"""Cycles of the link after which what a core has sent has been counted in its queue."""

_OF_LINK = ("state", "session", "partner", "in_flight", "counts")
_OF_LANES = ("tx_width", "rx_width", "weak_lanes", "dead_lanes")
_INNER = ("packet", "room", "room_pair", "request", "response", "clear", "foreign")


class CorePort(wiring.Component):
    """LinkLayer for one core; the clock is the link's (DomainRenamer), that of a core is at least as fast.

    `request_out`, `response_out`, `request_in`, `response_in`, `down`: those of Core, by its clock; an edge of the
    link's clock is one of the core's too, and `tick` is 1 in the cycles of the core that end with one. A beat passes
    in such cycles only. `request_room`: a packet of that class finds room in its queue, also behind one of the longest
    that is still on its way there. `foreign`: low bits of the core's count of packets for others; what it grows by is
    counted here. `link_value`: the register of memmap.LinkRegister at `link_address`, in the same cycle; `tx_width` to
    `dead_lanes`: of the lanes, for it. `down`: a session has ended that was UP. The other ports are those of LinkLayer.
    """

    def __init__(self, cfg: LinkConfig, form: str = "native"):
        self.cfg = cfg
        self._link = LinkLayer(cfg, form)
        lanes = physical_lanes(cfg)
        kept = {name: member for name, member in self._link.signature.members.items() if name not in _INNER}
        super().__init__(
            {
                **kept,
                "tick": In(1),
                "request_out": In(_PACKETS),
                "request_room": Out(DMA_CLASSES),
                "response_out": In(_PACKETS),
                "request_in": Out(_PACKETS),
                "response_in": Out(_PACKETS),
                "foreign": In(FOREIGN_BITS),
                "tx_width": In(5),
                "rx_width": In(5),
                "weak_lanes": In(lanes),
                "dead_lanes": In(lanes),
                "link_address": In(8),
                "link_value": Out(64),
                "down": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = self._link
        m.submodules.merge = merge = PacketMerge(self.cfg)
        connect(m, merge.o, link.packet)
        m.d.comb += merge.room.eq(link.room)
        for kind in ("request", "response"):
            m.submodules[f"pack_{kind}"] = pack = PacketPack(self.cfg)
            m.submodules[f"split_{kind}"] = split = PacketSplit(self.cfg)
            connect(m, pack.o, getattr(merge, kind))
            connect(m, getattr(link, kind), split.i)
            leaves, goes = getattr(self, f"{kind}_out"), pack.i
            comes, enters = split.o, getattr(self, f"{kind}_in")
            m.d.comb += [
                goes.valid.eq(leaves.valid),
                goes.payload.eq(leaves.payload),
                leaves.ready.eq(goes.ready & self.tick),
                enters.valid.eq(comes.valid & self.tick),
                enters.payload.eq(comes.payload),
                comes.ready.eq(enters.ready),
            ]
        # With room for one packet only, one of the core's may be on its way to it, or be offered in this cycle.
        still = Signal(range(_SETTLED + 1))
        with m.If(self.request_out.valid):
            m.d.sync += still.eq(0)
        with m.Elif(still != _SETTLED):
            m.d.sync += still.eq(still + 1)
        for c in range(DMA_CLASSES):
            if c < self.cfg.classes:
                one = link.room[2 * c] & (still == _SETTLED) & ~self.request_out.valid
                m.d.comb += self.request_room[c].eq(link.room_pair[2 * c] | one)
            else:  # the port drops it
                m.d.comb += self.request_room[c].eq(1)
        for name, member in link.signature.members.items():
            if name in _INNER:
                continue
            inside, outside = getattr(link, name), getattr(self, name)
            if member.is_signature:
                connect(m, inside, flipped(outside))
            else:
                m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)

        counted = Signal(FOREIGN_BITS)
        m.d.sync += counted.eq(self.foreign)
        m.d.comb += link.foreign.eq(self.foreign - counted)

        m.submodules.status = status = PortStatus(self.cfg)
        m.d.comb += [
            *(getattr(status, name).eq(getattr(link, name)) for name in _OF_LINK),
            *(getattr(status, name).eq(getattr(self, name)) for name in _OF_LANES),
            status.address.eq(self.link_address),
            self.link_value.eq(status.now),
        ]

        # Payload flows in UP only, so what was asked between two sessions is not lost.
        linked = Signal()
        m.d.comb += self.down.eq(link.clear & linked & self.tick)
        with m.If(link.clear):
            m.d.sync += linked.eq(0)
        with m.Elif(link.state == LinkState.UP):
            m.d.sync += linked.eq(1)
        return m
