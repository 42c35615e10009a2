"""From accepted flits to packets."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout, packet_layout
from rtl.link.framing.deframer import Deframer
from rtl.link.framing.rx_pool import RxPool

__all__ = ["ReceivePath"]


class ReceivePath(wiring.Component):
    """RxPool and Deframer; their ports."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "valid": In(1),
                "beat": In(beat_layout(cfg)),
                "request": Out(stream.Signature(packet_layout(cfg))),
                "response": Out(stream.Signature(packet_layout(cfg))),
                "freed": Out(1),
                "freed_account": Out(range(cfg.accounts)),
                "bad_unit": Out(1),
                "bad_packet": Out(2),
                "overrun": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pool = pool = RxPool(self.cfg)
        m.submodules.deframer = deframer = Deframer(self.cfg)
        wiring.connect(m, pool.request, deframer.request_rows)
        wiring.connect(m, pool.response, deframer.response_rows)
        wiring.connect(m, deframer.request, wiring.flipped(self.request))
        wiring.connect(m, deframer.response, wiring.flipped(self.response))
        m.d.comb += [
            pool.valid.eq(self.valid),
            pool.beat.eq(self.beat),
            pool.clear.eq(self.clear),
            self.freed.eq(pool.freed),
            self.freed_account.eq(pool.freed_account),
            self.bad_unit.eq(pool.bad_unit),
            self.bad_packet.eq(deframer.bad_packet),
            self.overrun.eq(pool.overrun),
        ]
        return m
