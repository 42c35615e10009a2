"""Pieces of rows that are written to another core."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.endpoint_number import endpoint_number
from rtl.base.fault import fault
from rtl.base.fifo import Fifo, RamFifo
from rtl.contract.config import Config
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.fabric.packets import SLOT_BITS, SLOTS_EACH, TO_SEND, bank_bits, bank_of, remote_row, staging
from rtl.dma.fabric.places import Places
from rtl.dma.layouts import CLASSES, done_layout, row_layout, slot_bits

__all__ = ["AwayWrites"]


class AwayWrites(wiring.Component):
    """`piece`: a row of at most CHUNK_BYTES, `first` the first of its row, if there is `room` wherever it lies. It is
    gathered into a place of the staging memory of requests, sent as WRITE, and `done` when its packet has been `sent`.

    The last piece of a descriptor carries its signal. If HBM failed for a piece, neither it nor those behind it
    in the descriptor are sent, and `done` tells a read error.
    Timing: a piece a cycle while there are places.
    """

    def __init__(self, own: Config, link: Config):
        self.own = own
        self.link = link
        super().__init__(
            {
                "piece": In(stream.Signature(remote_row(own))),
                "room": Out(CLASSES),
                "first": In(1),
                "gather": Out(stream.Signature(row_layout(link))),
                "gathered": In(stream.Signature(done_layout(link))),
                "send": Out(stream.Signature(TO_SEND)),
                "sent": In(1),
                "sent_slot": In(SLOT_BITS),
                "done": Out(stream.Signature(done_layout(own))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        piece = self.piece.payload
        m.submodules.places = places = Places(self.own)
        place = places.place
        turn = Signal(bank_bits(self.own))
        m.d.comb += [
            self.room.eq(places.room),
            places.class_.eq(piece.class_[: len(places.class_)]),  # the check lets no other through
            places.bank.eq(bank_of(self.own, piece.local_sbuf, piece.local, turn)),
        ]
        with m.If(places.take):
            m.d.sync += turn.eq(turn + 1)
        note = data.StructLayout(
            {
                **{"slot": slot_bits(self.own), "class_": 3, "remote": 64, "bytes": 10, "add": 2},
                **{"last": 1, "first": 1, "signals": 1, "signal": 64},
            }
        )
        m.submodules.notes = notes = memory.Memory(shape=note, depth=SLOTS_EACH, init=[])
        keep = notes.write_port()
        look = notes.read_port(domain="comb")
        look_sent = notes.read_port(domain="comb")
        m.d.comb += [
            self.gather.valid.eq(self.piece.valid & places.there),
            self.gather.payload.slot.eq(place),
            self.gather.payload.from_sbuf.eq(piece.local_sbuf),
            self.gather.payload.to_sbuf.eq(1),
            self.gather.payload.source.eq(piece.local),
            self.gather.payload.destination.eq(staging(self.link, 0, place)),
            self.gather.payload.bytes.eq(piece.bytes),
            self.piece.ready.eq(self.gather.ready & places.there),
            places.take.eq(self.gather.valid & self.gather.ready),
            keep.en.eq(places.take),
            keep.addr.eq(place),
            keep.data.first.eq(self.first),
        ]
        m.d.comb += [
            getattr(keep.data, name).eq(getattr(piece, name))
            for name in ("slot", "class_", "remote", "bytes", "add", "last", "signals", "signal")
        ]

        # Pieces come back in their order.
        gathered = self.gathered.payload
        packet = self.send.payload
        kept = look.data
        failed = Signal(CLASSES)  # HBM failed for an earlier piece of the descriptor, of which a class has one
        mixes = fault("what HBM fails of a class is not sent, nor what others send")
        class_ = Mux(mixes, 0, kept.class_[:2])
        spoilt = Signal()
        signals = Signal()
        m.submodules.failures = failures = Fifo(slot_bits(self.own), 2)
        m.d.comb += [
            look.addr.eq(gathered.slot),
            spoilt.eq(failed.bit_select(class_, 1) | gathered.read_error),
            signals.eq(kept.signals & Mux(fault("the signal goes with the first packet"), kept.first, kept.last)),
            packet.slot.eq(gathered.slot[: len(packet.slot)]),
            packet.holds.eq(1),
            packet.class_.eq(kept.class_),
            packet.endpoint.eq(endpoint_number(self.own, kept.remote[CoreId.LSB :][: CoreId.BITS])),
            packet.header.opcode.eq(PacketOpcode.WRITE),
            packet.header.flags.eq(Cat(signals, Mux(fault("a packet loses its add"), 0, kept.add))),
            packet.header.length_bytes.eq(kept.bytes),
            packet.header.address.eq(kept.remote),
            packet.signal.eq(kept.signal),
            self.send.valid.eq(self.gathered.valid & ~spoilt),
            failures.i.valid.eq(self.gathered.valid & spoilt),
            failures.i.payload.eq(kept.slot),
            self.gathered.ready.eq(Mux(spoilt, failures.i.ready, self.send.ready)),
        ]
        with m.If(self.gathered.valid & self.gathered.ready):
            m.d.sync += failed.bit_select(class_, 1).eq(spoilt & ~kept.last)

        # A place is given back when its end has been told.
        m.submodules.departed = departed = RamFifo(SLOT_BITS, SLOTS_EACH)
        m.d.comb += [
            departed.i.valid.eq(self.sent),
            departed.i.payload.eq(self.sent_slot),
            look_sent.addr.eq(departed.o.payload),
            self.done.valid.eq(departed.o.valid | failures.o.valid),
            self.done.payload.read_error.eq(failures.o.valid),
            self.done.payload.slot.eq(Mux(failures.o.valid, failures.o.payload, look_sent.data.slot)),
            failures.o.ready.eq(self.done.ready),
            departed.o.ready.eq(self.done.ready & ~failures.o.valid),
            places.back.eq(
                Mux(departed.o.valid & departed.o.ready, 1 << departed.o.payload, 0)
                | Mux(failures.i.valid & failures.i.ready, 1 << gathered.slot[:SLOT_BITS], 0)
            ),
            self.busy.eq(places.used.any() | self.done.valid),
        ]
        return m
