"""Cuts rows towards other cores into packets, and places what answers bring."""

from amaranth.hdl import Cat, Module, Mux, Signal, ValueLike
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fifo import Fifo, RamFifo
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.link import PacketFlag, PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.layouts import address_bits, done_layout, row_layout, slot_bits
from rtl.dma.packets import (
    CHUNK_BYTES,
    RECEIVED,
    SLOT_BITS,
    SLOTS_EACH,
    TO_SEND,
    remote_row,
    staging,
)

__all__ = ["Initiator"]


class Initiator(wiring.Component):
    """`own` is the core's configuration, `link` link_config. A row becomes pieces of CHUNK_BYTES; each is a row of its
    own to Complete: `issued` (with `last`) and later `done`.

    A piece to write is gathered into a place of the staging memory of requests, and done when its packet has been
    sent; the last piece of a descriptor carries its signal, unless HBM failed for one of them. A piece to read
    takes a tag, which is the place of its response, and is done when the response has been written here.
    `expected`: tags that wait for their response; `began` ends that.
    Timing: a piece a cycle while there are places.
    """

    FAULTS = {
        1: "the signal goes with the first packet",
        2: "an error response is taken for data",
    }

    def __init__(self, own: Config, link: Config, plant: ValueLike = 0):
        self.own = own
        self.link = link
        self.plant = plant
        self.in_use = Signal(2)  # places, tags
        row = stream.Signature(row_layout(link))
        done = stream.Signature(done_layout(link))
        super().__init__(
            {
                "core_id": In(CoreId.BITS),
                "row": In(stream.Signature(remote_row(own))),
                "issued": Out(1),
                "last": Out(1),
                "gather": Out(row),
                "gathered": In(done),
                "send": Out(stream.Signature(TO_SEND)),
                "sent": In(1),
                "sent_slot": In(SLOT_BITS),
                "expected": Out(SLOTS_EACH),
                "began": In(1),
                "began_slot": In(SLOT_BITS),
                "response": In(stream.Signature(RECEIVED)),
                "scatter": Out(row),
                "written": In(done),
                "done": Out(stream.Signature(done_layout(own))),
                "busy": Out(1),
            }
        )

    def _places(self, m: Module, name: str) -> tuple[Signal, Signal, Signal, Signal]:
        """(the next place, there is one, it is taken, places that are given back)."""
        used = Signal(SLOTS_EACH, name=f"{name}_used")
        place = Signal(SLOT_BITS, name=f"{name}_place")
        there = Signal(name=f"{name}_there")
        take = Signal(name=f"{name}_take")
        back = Signal(SLOTS_EACH, name=f"{name}_back")
        for n in reversed(range(SLOTS_EACH)):
            with m.If(~used[n]):
                m.d.comb += place.eq(n)
        m.d.comb += there.eq(~used.all())
        m.d.comb += self.in_use[("place", "tag").index(name)].eq(used.any())
        m.d.sync += used.eq((used | Mux(take, 1 << place, 0)) & ~back)
        return place, there, take, back

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row = self.row.payload
        place, room, take_place, free_places = self._places(m, "place")
        tag, free_tag, take_tag, free_tags = self._places(m, "tag")

        # The piece of this cycle.
        offset = Signal(19)
        left = Signal(19)
        size = Signal(10)
        ends = Signal()
        local = Signal.like(row.local)
        remote = Signal(64)
        take = Signal()
        m.d.comb += [
            left.eq(row.bytes - offset),
            ends.eq(left <= CHUNK_BYTES),
            size.eq(Mux(ends, left, CHUNK_BYTES)),
            local.eq(row.local + offset),
            remote.eq(Cat((row.remote[:40] + offset)[:40], row.remote[40:])),
            take.eq(take_place | take_tag),
            self.row.ready.eq(take & ends),
            self.issued.eq(take),
            self.last.eq(ends & row.last),
        ]
        with m.If(take):
            m.d.sync += offset.eq(Mux(ends, 0, offset + CHUNK_BYTES))

        # What is remembered of pieces to write and to read.
        note = data.StructLayout({"slot": slot_bits(self.own), "class_": 3, "remote": 64, "bytes": 10})
        writes_note = data.StructLayout({"note": note, "last": 1, "first": 1, "signals": 1, "signal": 64})
        reads_note = data.StructLayout({"note": note, "to_sbuf": 1, "local": address_bits(self.own)})
        writes = memory.Memory(shape=writes_note, depth=SLOTS_EACH, init=[])
        reads = memory.Memory(shape=reads_note, depth=SLOTS_EACH, init=[])
        m.submodules.writes, m.submodules.reads = writes, reads
        write_note, write_kept = writes.write_port(), writes.read_port(domain="comb")
        sent_kept = writes.read_port(domain="comb")
        read_note, read_kept = reads.write_port(), reads.read_port(domain="comb")
        done_kept = reads.read_port(domain="comb")
        for port, at, enable in ((write_note, place, take_place), (read_note, tag, take_tag)):
            m.d.comb += [
                port.en.eq(enable),
                port.addr.eq(at),
                port.data.note.slot.eq(row.slot),
                port.data.note.class_.eq(row.class_),
                port.data.note.remote.eq(remote),
                port.data.note.bytes.eq(size),
            ]
        m.d.comb += [
            write_note.data.last.eq(self.last),
            write_note.data.first.eq(offset == 0),
            write_note.data.signals.eq(row.signals),
            write_note.data.signal.eq(row.signal),
            read_note.data.to_sbuf.eq(row.local_sbuf),
            read_note.data.local.eq(local),
        ]

        # Gather, then send: pieces come back in their order, because all go to one memory.
        gathered = self.gathered.payload
        packet = self.send.payload
        kept = write_kept.data
        failed = Signal()  # HBM failed for an earlier piece of the descriptor
        spoilt = Signal()
        m.submodules.failures = failures = Fifo(slot_bits(self.own), 2)
        m.d.comb += [
            self.gather.payload.slot.eq(place),
            self.gather.payload.from_sbuf.eq(row.local_sbuf),
            self.gather.payload.to_sbuf.eq(1),
            self.gather.payload.source.eq(local),
            self.gather.payload.destination.eq(staging(self.link, 0, place)),
            self.gather.payload.bytes.eq(size),
            self.gather.valid.eq(self.row.valid & row.write & room),
            take_place.eq(self.gather.valid & self.gather.ready),
            write_kept.addr.eq(gathered.slot),
            spoilt.eq(failed | gathered.read_error),
            failures.i.payload.eq(kept.note.slot),
            packet.header.source.eq(self.core_id),
        ]
        with m.If(self.gathered.valid):
            signals = kept.signals & Mux(planted(self.plant, 1), kept.first, kept.last)
            m.d.comb += [
                packet.slot.eq(gathered.slot),
                packet.holds.eq(1),
                packet.class_.eq(kept.note.class_),
                packet.endpoint.eq(kept.note.remote >> CoreId.LSB),
                packet.header.opcode.eq(PacketOpcode.WRITE),
                packet.header.flags.eq(Mux(signals, PacketFlag.SIGNAL, 0)),
                packet.header.length_bytes.eq(kept.note.bytes),
                packet.header.address.eq(kept.note.remote),
                packet.signal.eq(kept.signal),
                self.send.valid.eq(~spoilt),
                failures.i.valid.eq(spoilt),
                self.gathered.ready.eq(Mux(spoilt, failures.i.ready, self.send.ready)),
            ]
            with m.If(self.gathered.ready):
                m.d.sync += failed.eq(spoilt & ~kept.last)
        with m.Elif(self.row.valid & ~row.write & free_tag):
            m.d.comb += [
                packet.class_.eq(row.class_),
                packet.endpoint.eq(remote >> CoreId.LSB),
                packet.header.opcode.eq(PacketOpcode.READ),
                packet.header.length_bytes.eq(size),
                packet.header.tag.eq(tag),
                packet.header.address.eq(remote),
                self.send.valid.eq(1),
                take_tag.eq(self.send.ready),
            ]

        # Responses.
        came = self.response.payload
        asked = read_kept.data
        good = Signal()
        m.submodules.refusals = refusals = Fifo(SLOT_BITS, 2)
        m.d.comb += [
            read_kept.addr.eq(came.slot),
            good.eq(
                came.whole
                & ((came.header.opcode == PacketOpcode.READ_RESPONSE) | planted(self.plant, 2))
                & ((came.header.length_bytes == asked.note.bytes) | planted(self.plant, 2))
                & (came.header.source == asked.note.remote[CoreId.LSB :][: len(came.header.source)])
            ),
            self.scatter.valid.eq(self.response.valid & good),
            self.scatter.payload.slot.eq(came.slot | SLOTS_EACH),
            self.scatter.payload.from_sbuf.eq(1),
            self.scatter.payload.to_sbuf.eq(asked.to_sbuf),
            self.scatter.payload.source.eq(staging(self.link, 1, came.slot)),
            self.scatter.payload.destination.eq(asked.local),
            self.scatter.payload.bytes.eq(asked.note.bytes),
            refusals.i.valid.eq(self.response.valid & ~good),
            refusals.i.payload.eq(came.slot),
            self.response.ready.eq(Mux(good, self.scatter.ready, refusals.i.ready)),
        ]
        m.d.sync += self.expected.eq(
            (self.expected | Mux(take_tag, 1 << tag, 0)) & ~Mux(self.began, 1 << self.began_slot, 0)
        )

        # Ends: packets sent, responses written, errors of either.
        m.submodules.departed = departed = RamFifo(SLOT_BITS, SLOTS_EACH)
        m.d.comb += [
            sent_kept.addr.eq(departed.o.payload),
            departed.i.valid.eq(self.sent),
            departed.i.payload.eq(self.sent_slot),
            done_kept.addr.eq(Mux(self.written.valid, self.written.payload.slot, refusals.o.payload)),
            self.done.valid.eq(self.written.valid | refusals.o.valid | departed.o.valid | failures.o.valid),
            free_places.eq(
                Mux(departed.o.valid & departed.o.ready, 1 << departed.o.payload, 0)
                | Mux(failures.i.valid & failures.i.ready, 1 << gathered.slot[:SLOT_BITS], 0)
            ),
        ]
        with m.If(self.written.valid):
            m.d.comb += [
                self.done.payload.slot.eq(done_kept.data.note.slot),
                self.done.payload.write_error.eq(self.written.payload.write_error),
                self.written.ready.eq(self.done.ready),
                free_tags.eq(Mux(self.done.ready, 1 << self.written.payload.slot[:SLOT_BITS], 0)),
            ]
        with m.Elif(refusals.o.valid):
            m.d.comb += [
                self.done.payload.slot.eq(done_kept.data.note.slot),
                self.done.payload.read_error.eq(1),
                refusals.o.ready.eq(self.done.ready),
                free_tags.eq(Mux(self.done.ready, 1 << refusals.o.payload, 0)),
            ]
        with m.Elif(failures.o.valid):
            m.d.comb += [
                self.done.payload.slot.eq(failures.o.payload),
                self.done.payload.read_error.eq(1),
                failures.o.ready.eq(self.done.ready),
            ]
        with m.Else():
            m.d.comb += [self.done.payload.slot.eq(sent_kept.data.note.slot), departed.o.ready.eq(self.done.ready)]
        m.d.comb += self.busy.eq(self.row.valid | self.in_use.any() | self.done.valid)
        return m
