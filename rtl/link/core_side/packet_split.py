"""Packets as a port gives them to packets as a core's DMA takes them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.packet import BEAT_BYTES, PACKET_BEAT
from rtl.contract.link import PACKET_HEADER_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from rtl.link.framing.framing import PACKET_HEADER_LAYOUT, body_bytes

__all__ = ["PacketSplit"]

_LEFT_BYTES = BEAT_BYTES - PACKET_HEADER_BYTES
"""What is left of a beat of `i` when the last beat of `o` that begins in it does."""


class PacketSplit(wiring.Component):
    """`i`: header and payload without a gap (packet_layout); `o`: a beat with the header, then 64 bytes a beat.

    Whole, sound packets only, 0 behind their end, as an Unpacker gives them. Timing: a beat a cycle at `o`,
    combinational from `i` and registers.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__({"i": In(stream.Signature(packet_layout(cfg))), "o": Out(stream.Signature(PACKET_BEAT))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat, out = self.i.payload, self.o.payload
        low = 8 * PACKET_HEADER_BYTES
        header = data.View(PACKET_HEADER_LAYOUT, beat.data[:low])
        kept = Signal(8 * self.cfg.beat_bytes - low)  # what has come and not left
        wide = self.cfg.beat_bytes > BEAT_BYTES
        half = Signal()  # a wide beat: 64 bytes of it, behind the header or the last 16 of a beat, have left
        left = Signal(10)  # bytes of the packet behind its header that have not left
        class_ = Signal.like(out.class_)
        endpoint = Signal.like(out.endpoint)
        inside = Signal()
        needs = Signal()  # the next beat of `i`
        body = Signal(10)
        m.d.comb += [
            inside.eq(left != 0),
            body.eq(body_bytes(header)),
            needs.eq(~inside | ((left > _LEFT_BYTES) & (half if wide else 1))),
            self.o.valid.eq(~needs | self.i.valid),
            self.i.ready.eq(needs & self.o.ready),
            out.first.eq(~inside),
            out.last.eq(Mux(inside, left <= BEAT_BYTES, (body == 0) & ~fault("a packet without a payload has no end"))),
            out.class_.eq(Mux(inside, class_, beat.class_)),
            out.endpoint.eq(Mux(inside, endpoint, beat.endpoint)),
        ]
        start = kept.word_select(half, 8 * BEAT_BYTES) if wide else kept
        behind = Mux(needs | fault("bytes of the next beat are in the last one"), beat.data[:low], 0)
        with m.If(~inside):
            m.d.comb += out.data.eq(beat.data[:low])
        with m.Elif(half if wide else 1):
            m.d.comb += out.data.eq(Cat(start[: 8 * _LEFT_BYTES], behind))
        with m.Else():
            m.d.comb += out.data.eq(start)

        with m.If(self.o.valid & self.o.ready):
            with m.If(inside):
                m.d.sync += left.eq(Mux(left > BEAT_BYTES, left - BEAT_BYTES, 0))
            with m.Else():
                m.d.sync += [left.eq(body), class_.eq(beat.class_), endpoint.eq(beat.endpoint)]
            m.d.sync += half.eq(inside & ~half)
            with m.If(needs):
                m.d.sync += kept.eq(beat.data[low:])
        return m
