"""Packets from the chip, checked before they may take a place in a queue."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import ENDPOINT_BITS, PACKET_HEADER_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from rtl.link.framing.framing import (
    PACKET_HEADER_LAYOUT,
    UNIT_WORDS,
    body_bytes,
    byte_mask,
    is_response,
    is_sound,
    packet_words,
    rows_of,
)

__all__ = ["PacketIntake", "chunk_layout"]


def chunk_layout(cfg: LinkConfig) -> data.StructLayout:
    """`count` words of a packet. `good` counts with `last`; the others hold for the whole packet."""
    return data.StructLayout(
        {
            "first": 1,
            "last": 1,
            "good": 1,
            "queue": range(cfg.queues),
            "endpoint": ENDPOINT_BITS,
            "words": range(UNIT_WORDS + 1),
            "count": range(rows_of(cfg).lanes + 1),
            "data": rows_of(cfg).bits,
        }
    )


class PacketIntake(wiring.Component):
    """`packet` beats -> `chunk`s of words, whose unused bytes are 0.

    A packet with an unknown opcode or flag, a length above 512 or a class that is not in use is dropped whole. One
    whose beats do not match its length ends in a chunk that is not `good`, and its rest is dropped. `bad`: strobe.
    Timing: a beat a cycle, without a register between.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "packet": In(stream.Signature(packet_layout(cfg))),
                "chunk": Out(stream.Signature(chunk_layout(cfg))),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.cfg.beat_bytes
        beat = self.packet.payload
        chunk = self.chunk.payload
        header = data.View(PACKET_HEADER_LAYOUT, beat.data[: 8 * PACKET_HEADER_BYTES])
        inside = Signal()  # the next beat belongs to a packet that has begun
        dropping = Signal()  # beats up to the last are dropped
        left = Signal(10)  # bytes of the packet that have not come
        due = Signal(10)  # with those of this beat
        queue = Signal(range(self.cfg.queues))
        sound = Signal()
        body = Signal(10)
        ends = Signal()  # this beat must be the last
        fits = Signal()  # first and last are where the length says
        bytes_now = Signal(range(size + 1))
        plain = fault("bytes behind the end of a packet are kept")

        m.d.comb += [
            sound.eq(beat.first & is_sound(header) & (beat.class_ < self.cfg.classes)),
            body.eq(body_bytes(header)),
            due.eq(Mux(inside, left, PACKET_HEADER_BYTES + body)),
            ends.eq(due <= size),
            bytes_now.eq(Mux(ends, due, size)),
            fits.eq(
                (beat.first != inside)
                & ((beat.last == ends) | (beat.last & fault("a packet that ends too early is good")))
            ),
            chunk.first.eq(~inside),
            chunk.good.eq(fits),
            chunk.last.eq(ends | ~fits),
            chunk.endpoint.eq(beat.endpoint),
            chunk.words.eq(packet_words(body)),
            chunk.queue.eq(Mux(inside, queue, Cat(is_response(header), beat.class_))),
            chunk.count.eq((bytes_now + 3) >> 2),
            chunk.data.eq(Mux(plain, beat.data, beat.data & byte_mask(bytes_now, size))),
            self.chunk.valid.eq(self.packet.valid & ~dropping & (inside | sound)),
            self.packet.ready.eq(dropping | (~inside & ~sound) | self.chunk.ready),
        ]
        with m.If(self.packet.valid & self.packet.ready):
            with m.If(dropping):
                m.d.sync += dropping.eq(~beat.last)
            with m.Elif(~inside & ~sound):
                m.d.comb += self.bad.eq(1)
                m.d.sync += dropping.eq(~beat.last)
            with m.Else():
                m.d.comb += self.bad.eq(~fits)
                m.d.sync += [
                    inside.eq(~chunk.last),
                    dropping.eq(~fits & ~beat.last),
                    queue.eq(chunk.queue),
                    left.eq(due - bytes_now),
                ]
        return m
