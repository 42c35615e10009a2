"""Cuts rows with an end in another core into pieces."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from rtl.base.endpoint_number import endpoint_number
from rtl.base.fault import fault
from rtl.base.layouts import ADDRESS_LAYOUT
from rtl.contract.config import Config
from rtl.contract.memmap import CoreId, Space
from rtl.dma.fabric.away_reads import AwayReads
from rtl.dma.fabric.away_writes import AwayWrites
from rtl.dma.fabric.packets import (
    CHUNK_BYTES,
    RECEIVED,
    ROUND_BITS,
    SLOT_BITS,
    SLOTS_EACH,
    TO_SEND,
    WINDOW_BYTES,
    remote_row,
)
from rtl.dma.layouts import CLASSES, done_layout, row_layout

__all__ = ["Initiator"]


class Initiator(wiring.Component):
    """`own` is the core's configuration, `link` link_config. Each piece of CHUNK_BYTES, or up to the end of a window of
    the other core's HBM, is a row of its own to Complete: `issued` (with `last`) and later `done`. `signal`: a packet
    of AwaySignals. See AwayWrites and AwayReads for the rest. A row in whose middle its class has no place waits, and
    rows of other classes may go meanwhile.

    Timing: a piece a cycle while there are places.
    """

    def __init__(self, own: Config, link: Config):
        self.own = own
        self.link = link
        row = stream.Signature(row_layout(link))
        done = stream.Signature(done_layout(link))
        super().__init__(
            {
                "core_id": In(CoreId.BITS),
                "down": In(1),
                "row": In(stream.Signature(remote_row(own))),
                "room": Out(CLASSES).array(2),  # for a piece that is read, and for one that is written
                "issued": Out(1),
                "last": Out(1),
                "gather": Out(row),
                "gathered": In(done),
                "send": Out(stream.Signature(TO_SEND)),
                "sent": In(1),
                "sent_slot": In(SLOT_BITS),
                "expected": Out(SLOTS_EACH),
                "round": Out(ROUND_BITS),
                "began": In(1),
                "began_slot": In(SLOT_BITS),
                "response": In(stream.Signature(RECEIVED)),
                "scatter": Out(row),
                "written": In(done),
                "done": Out(stream.Signature(done_layout(own))),
                "signal": In(stream.Signature(TO_SEND)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.writes = writes = AwayWrites(self.own, self.link)
        m.submodules.reads = reads = AwayReads(self.own, self.link)
        connect(m, writes.gather, flipped(self.gather))
        connect(m, flipped(self.gathered), writes.gathered)
        connect(m, flipped(self.response), reads.response)
        connect(m, reads.scatter, flipped(self.scatter))
        connect(m, flipped(self.written), reads.written)

        row = self.row.payload
        offsets = [Signal(19, name=f"offset{c}") for c in range(self.own.dma.classes)]  # of the rows of each class
        offset = Signal(19)
        left = Signal(19)
        most = Signal(range(CHUNK_BYTES + 1))
        whole = Signal(range(WINDOW_BYTES + 1))  # to the end of the window in the other core's HBM
        ends = Signal()
        takes = Signal()
        m.d.comb += [
            self.room[0].eq(reads.room),
            self.room[1].eq(writes.room),
            offset.eq(Array(offsets)[row.class_]),
            left.eq(row.bytes - offset),
            whole.eq(WINDOW_BYTES - (row.remote + offset)[: exact_log2(WINDOW_BYTES)]),
            most.eq(CHUNK_BYTES),
            ends.eq(left <= most),
            writes.piece.valid.eq(self.row.valid & row.write),
            reads.piece.valid.eq(self.row.valid & ~row.write),
            writes.first.eq(offset == 0),
            takes.eq(self.row.valid & Mux(row.write, writes.piece.ready, reads.piece.ready)),
            self.row.ready.eq(takes & ends),
            self.issued.eq(takes),
            self.last.eq(ends & row.last),
        ]
        to_hbm = row.write & (View(ADDRESS_LAYOUT, row.remote).space == Space.HBM)
        over = fault("packets to HBM of another core reach over the end of a window")
        with m.If(to_hbm & (whole < CHUNK_BYTES) & ~over):
            m.d.comb += most.eq(whole)
        for piece in (writes.piece.payload, reads.piece.payload):
            m.d.comb += [
                piece.eq(row),
                piece.local.eq(row.local + offset),
                piece.remote.eq(Cat((row.remote[:40] + offset)[:40], row.remote[40:])),
                piece.bytes.eq(Mux(ends, left, most)),
                piece.last.eq(self.last),
            ]
        one = fault("rows to other cores go on where that of another class was")
        for c, kept in enumerate(offsets):
            with m.If(takes & ((row.class_ == c) | one)):
                m.d.sync += kept.eq(Mux(ends, 0, offset + most))

        m.d.comb += [
            writes.sent.eq(self.sent),
            writes.sent_slot.eq(self.sent_slot),
            reads.down.eq(self.down),
            reads.began.eq(self.began),
            reads.began_slot.eq(self.began_slot),
            self.expected.eq(reads.expected),
            self.round.eq(reads.round),
            self.busy.eq(self.row.valid | writes.busy | reads.busy),
        ]
        # Signals go first: there is at most one.
        both = stream.Signature(TO_SEND).create()
        m.d.comb += [
            self.send.valid.eq(self.signal.valid | both.valid),
            self.send.payload.eq(Mux(self.signal.valid, self.signal.payload, both.payload)),
            self.signal.ready.eq(self.send.ready),
            both.ready.eq(self.send.ready & ~self.signal.valid),
        ]
        for mine, first, second in ((both, writes.send, reads.send), (self.done, reads.done, writes.done)):
            m.d.comb += [
                mine.valid.eq(first.valid | second.valid),
                mine.payload.eq(Mux(first.valid, first.payload, second.payload)),
                first.ready.eq(mine.ready),
                second.ready.eq(mine.ready & ~first.valid),
            ]
        m.d.comb += self.send.payload.header.source.eq(endpoint_number(self.own, self.core_id))
        return m
