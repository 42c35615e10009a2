"""Requests and responses of a core to the one packet stream of a port."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout

__all__ = ["PacketMerge"]


class PacketMerge(wiring.Component):
    """`request`, `response` -> `o`, whole packets; `room` is that of SendQueues (bit class * 2 + kind).

    A packet begins only when its queue has room for it, so it never waits inside and nobody waits behind it: responses
    never wait for requests. Responses go first. A class that is not in use counts as room: the port drops the packet.
    Timing: combinational; what is offered at `o` stays until its last beat is taken.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        beats = stream.Signature(packet_layout(cfg))
        super().__init__({"request": In(beats), "response": In(beats), "room": In(cfg.queues), "o": Out(beats)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        begun = Signal()  # a packet is offered or under way
        kept = Signal()  # its kind
        kind = Signal()
        fresh = Signal()  # a packet may begin
        go: list[Value] = []
        for n, source in enumerate((self.request, self.response)):
            class_ = source.payload.class_
            known = class_ < self.cfg.classes
            asked = n & ~fault("a response waits for room of the requests")
            room = self.room.bit_select((class_ << 1) | asked, 1) | ~known
            go.append(source.valid & (room | (fault("a request without room is offered") if n == 0 else 0)))
        m.d.comb += [
            fresh.eq(~begun | (fault("leaves a request for a response in its middle") & go[1])),
            kind.eq(Mux(fresh, go[1], kept)),
            self.o.valid.eq(Mux(fresh, go[0] | go[1], Mux(kept, self.response.valid, self.request.valid))),
            self.o.payload.eq(Mux(kind, self.response.payload, self.request.payload)),
            self.request.ready.eq(self.o.valid & self.o.ready & ~kind),
            self.response.ready.eq(self.o.valid & self.o.ready & kind),
        ]
        payload = Value.cast(self.o.payload)
        with m.If(fault("bit 237 of a request is stuck at 0") & ~kind):
            m.d.comb += payload[237].eq(0)
        with m.If(fault("bit 166 of a response is stuck at 0") & kind):
            m.d.comb += payload[166].eq(0)
        with m.If(self.o.valid):
            m.d.sync += [begun.eq(~(self.o.ready & self.o.payload.last)), kept.eq(kind)]
        return m
