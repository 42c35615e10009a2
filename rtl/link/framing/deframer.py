"""From units to packets, requests and responses apart."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from rtl.link.framing.framing import unit_rows
from rtl.link.framing.unpacker import Unpacker

__all__ = ["Deframer"]


class Deframer(wiring.Component):
    """An Unpacker for each kind, so that responses never wait for requests. `bad_packet`: strobes, one bit per kind."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "request_rows": In(stream.Signature(unit_rows(cfg))),
                "response_rows": In(stream.Signature(unit_rows(cfg))),
                "request": Out(stream.Signature(packet_layout(cfg))),
                "response": Out(stream.Signature(packet_layout(cfg))),
                "bad_packet": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.requests = requests = Unpacker(self.cfg, 0)
        m.submodules.responses = responses = Unpacker(self.cfg, 1)
        wiring.connect(m, wiring.flipped(self.request_rows), requests.rows)
        wiring.connect(m, wiring.flipped(self.response_rows), responses.rows)
        wiring.connect(m, requests.packet, wiring.flipped(self.request))
        wiring.connect(m, responses.packet, wiring.flipped(self.response))
        m.d.comb += self.bad_packet.eq(Cat(requests.bad, responses.bad))
        return m
