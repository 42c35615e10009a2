"""Packets as a core's DMA gives them to packets as a port takes them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.packet import BEAT_BYTES, PACKET_BEAT
from rtl.contract.link import PACKET_HEADER_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from rtl.link.framing.framing import PACKET_HEADER_LAYOUT, body_bytes

__all__ = ["PacketPack"]

_FITS_BYTES = BEAT_BYTES - PACKET_HEADER_BYTES
_FITS = 8 * _FITS_BYTES
"""Of a beat that is put behind the bytes of earlier ones, so many fill the wider beat."""


class PacketPack(wiring.Component):
    """`i`: a beat with the header, then 64 bytes a beat (PACKET_BEAT); `o`: the same without the gap (packet_layout).

    A packet whose beats are not as many as its header says comes out with a wrong number of them, too.
    Timing: a beat a cycle at `i`; a beat leaves in the cycle in which its last bytes come, a rest the cycle after.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__({"i": In(stream.Signature(PACKET_BEAT)), "o": Out(stream.Signature(packet_layout(cfg)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = 8 * self.cfg.beat_bytes
        beat, out = self.i.payload, self.o.payload
        header = data.View(PACKET_HEADER_LAYOUT, beat.data[: 8 * PACKET_HEADER_BYTES])
        kept = Signal(size - _FITS)  # bytes that wait: the header, a rest, or with 128 bytes the header and a beat
        filled = Signal(init=size == 8 * BEAT_BYTES)  # the next beat fills a beat of `o`
        begun = Signal()  # a beat of the packet has left
        tail = Signal()  # `kept` is the end of a packet
        left = Signal(10)  # bytes that have not come
        class_ = Signal.like(out.class_)
        endpoint = Signal.like(out.endpoint)
        emits = Signal()
        due = Signal(10)  # the same, with those of this beat
        over = Signal()  # the last beat does not fit, or a beat more tells the port that the length is wrong
        takes = Signal()
        low = 8 * PACKET_HEADER_BYTES
        m.d.comb += [
            emits.eq(beat.last | (~beat.first & filled)),
            due.eq(Mux(beat.first, body_bytes(header), left)),
            self.o.valid.eq(tail | (self.i.valid & emits)),
            self.i.ready.eq(Mux(tail, self.o.ready & beat.first & ~beat.last, ~emits | self.o.ready)),
            takes.eq(self.i.valid & self.i.ready),
            out.first.eq(~tail & (beat.first | ~begun)),
            out.last.eq(tail | (beat.last & ~over)),
            out.class_.eq(
                Mux(tail & ~fault("the rest leaves with the class of the packet behind it"), class_, beat.class_)
            ),
            out.endpoint.eq(Mux(tail, endpoint, beat.endpoint)),
        ]
        room = self.cfg.beat_bytes - PACKET_HEADER_BYTES  # beside the header
        with m.If(~beat.last):
            m.d.comb += over.eq(0)
        with m.Elif(beat.first):
            m.d.comb += over.eq((due != 0) & (due <= room))
        with m.Elif(filled):
            m.d.comb += over.eq(
                (due == 0)
                | ((due > _FITS_BYTES) & (due <= BEAT_BYTES) & ~fault("the rest of a packet's last beat is lost"))
            )
        with m.Else():
            m.d.comb += over.eq((due == 0) | ((due > BEAT_BYTES) & (due <= room)))
        with m.If(tail):
            m.d.comb += out.data.eq(kept[:low])
        with m.Elif(beat.first):
            m.d.comb += out.data.eq(beat.data[:low])
        with m.Elif(filled):
            m.d.comb += out.data.eq(Cat(kept, beat.data[:_FITS]))
        with m.Else():
            m.d.comb += out.data.eq(Cat(kept[:low], beat.data))

        with m.If(tail & self.o.ready):
            m.d.sync += tail.eq(0)
        with m.If(takes):
            m.d.sync += [class_.eq(beat.class_), endpoint.eq(beat.endpoint), tail.eq(over)]
            with m.If(beat.first):
                m.d.sync += [kept.eq(beat.data[:low]), left.eq(due), begun.eq(0)]
            with m.Else():
                m.d.sync += left.eq(Mux(due > BEAT_BYTES, due - BEAT_BYTES, 0))
                with m.If(filled):
                    m.d.sync += [kept.eq(beat.data[_FITS:]), begun.eq(1)]
                with m.Else():
                    m.d.sync += kept.eq(Cat(kept[:low], beat.data))
            if size != 8 * BEAT_BYTES:
                m.d.sync += filled.eq(~beat.first & ~filled)
        return m
