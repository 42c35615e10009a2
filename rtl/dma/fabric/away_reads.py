"""Pieces of rows that are read from another core."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import lowest
from rtl.base.endpoint_number import endpoint_number
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.fabric.packets import (
    RECEIVED,
    ROUND_BITS,
    SLOT_BITS,
    SLOTS_EACH,
    TO_SEND,
    bank_bits,
    bank_of,
    remote_row,
    staging,
)
from rtl.dma.fabric.places import Places
from rtl.dma.layouts import CLASSES, address_bits, done_layout, row_layout, slot_bits

__all__ = ["AwayReads"]


class AwayReads(wiring.Component):
    """`piece`: a row of at most CHUNK_BYTES, if there is `room` wherever it goes. A READ asks for it; its tag is the
    place of its response in the staging memory, with `round` above it. From there the bytes are scattered here. `done`
    when they have been written, or with a read error.

    `expected`: places that wait for their response; `began` ends that. `down` ends all of them with an error: the
    link is lost. A new round begins then, so an answer to what was asked before is none to what is asked later.
    Timing: a piece a cycle while there are tags.
    """

    def __init__(self, own: Config, link: Config):
        self.own = own
        self.link = link
        super().__init__(
            {
                "down": In(1),
                "piece": In(stream.Signature(remote_row(own))),
                "room": Out(CLASSES),
                "send": Out(stream.Signature(TO_SEND)),
                "expected": Out(SLOTS_EACH),
                "round": Out(ROUND_BITS),
                "began": In(1),
                "began_slot": In(SLOT_BITS),
                "response": In(stream.Signature(RECEIVED)),
                "scatter": Out(stream.Signature(row_layout(link))),
                "written": In(stream.Signature(done_layout(link))),
                "done": Out(stream.Signature(done_layout(own))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        piece = self.piece.payload
        m.submodules.tags = tags = Places(self.own)
        note = data.StructLayout(
            {
                **{"slot": slot_bits(self.own), "remote": 64, "bytes": 10},
                **{"local_sbuf": 1, "local": address_bits(self.own)},
            }
        )
        m.submodules.notes = notes = memory.Memory(shape=note, depth=SLOTS_EACH, init=[])
        keep = notes.write_port()
        look = notes.read_port(domain="comb")
        look_done = notes.read_port(domain="comb")
        packet = self.send.payload
        turn = Signal(bank_bits(self.own))
        with m.If(tags.take):
            m.d.sync += turn.eq(turn + 1)
        m.d.comb += [
            self.room.eq(tags.room),
            tags.class_.eq(piece.class_[: len(tags.class_)]),  # the check lets no other through
            tags.bank.eq(bank_of(self.own, piece.local_sbuf, piece.local, turn)),
            self.send.valid.eq(self.piece.valid & tags.there),
            self.piece.ready.eq(self.send.ready & tags.there),
            tags.take.eq(self.send.valid & self.send.ready),
            packet.class_.eq(piece.class_),
            packet.endpoint.eq(endpoint_number(self.own, piece.remote[CoreId.LSB :][: CoreId.BITS])),
            packet.header.opcode.eq(PacketOpcode.READ),
            packet.header.length_bytes.eq(piece.bytes[: len(packet.header.length_bytes)]),
            packet.header.tag.eq(Cat(tags.place, self.round)),
            packet.header.address.eq(piece.remote),
            keep.en.eq(tags.take),
            keep.addr.eq(tags.place),
        ]
        m.d.comb += [
            getattr(keep.data, name).eq(getattr(piece, name))
            for name in ("slot", "remote", "bytes", "local_sbuf", "local")
        ]

        came = self.response.payload
        asked = look.data
        header = came.header
        careless = fault("an error response is taken for data")
        good = Signal()
        m.submodules.refusals = refusals = Fifo(SLOT_BITS, 2)
        m.d.comb += [
            look.addr.eq(came.slot),
            good.eq(
                came.whole
                & ((header.opcode == PacketOpcode.READ_RESPONSE) | careless)
                & ((header.length_bytes == asked.bytes) | careless)
                & (header.source == endpoint_number(self.own, asked.remote[CoreId.LSB :][: CoreId.BITS]))
            ),
            self.scatter.valid.eq(self.response.valid & good),
            self.scatter.payload.slot.eq(came.slot | SLOTS_EACH),
            self.scatter.payload.from_sbuf.eq(1),
            self.scatter.payload.to_sbuf.eq(asked.local_sbuf),
            self.scatter.payload.source.eq(staging(self.link, 1, came.slot)),
            self.scatter.payload.destination.eq(asked.local),
            self.scatter.payload.bytes.eq(asked.bytes),
            self.response.ready.eq(Mux(good, self.scatter.ready, refusals.i.ready)),
        ]

        # Tags whose answer was lost with the link end one by one, when no response does.
        lost = Signal(SLOTS_EACH)
        gives_up = Signal()
        next_lost = Signal(SLOT_BITS)
        left = Signal(SLOTS_EACH)
        for n in reversed(range(SLOTS_EACH)):
            with m.If(lost[n]):
                m.d.comb += next_lost.eq(n)
        refused = self.response.valid & ~good
        m.d.comb += [
            refusals.i.valid.eq(refused | lost.any()),
            refusals.i.payload.eq(Mux(refused, came.slot, next_lost)),
            gives_up.eq(lost.any() & ~refused & refusals.i.ready),
            left.eq((self.expected | Mux(tags.take, 1 << tags.place, 0)) & ~Mux(self.began, 1 << self.began_slot, 0)),
        ]
        m.d.sync += [
            self.expected.eq(Mux(self.down, 0, left)),
            self.round.eq(self.round + self.down),
            lost.eq((lost & ~Mux(gives_up, lowest(lost), 0)) | Mux(self.down, left, 0)),
        ]

        ended = Signal(SLOT_BITS)
        m.d.comb += [
            ended.eq(Mux(self.written.valid, self.written.payload.slot, refusals.o.payload)),
            look_done.addr.eq(ended),
            self.done.valid.eq(self.written.valid | refusals.o.valid),
            self.done.payload.slot.eq(look_done.data.slot),
            self.done.payload.read_error.eq(~self.written.valid),
            self.done.payload.write_error.eq(self.written.valid & self.written.payload.write_error),
            self.written.ready.eq(self.done.ready),
            refusals.o.ready.eq(self.done.ready & ~self.written.valid),
            tags.back.eq(Mux(self.done.valid & self.done.ready, 1 << ended, 0)),
            self.busy.eq(tags.used.any()),
        ]
        return m
