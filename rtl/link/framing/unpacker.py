"""Rows of received units become packets again."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.contract.link import NO_HEADER, PACKET_HEADER_BYTES, UNIT_FLITS_MAX, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from rtl.link.framing.framing import (
    FLIT_HEADER_LAYOUT,
    FLIT_WORDS,
    HEADER_WORDS,
    PACKET_HEADER_LAYOUT,
    UNIT_WORDS,
    body_bytes,
    byte_mask,
    is_response,
    is_sound,
    packet_words,
    rows_of,
    unit_rows,
)
from rtl.link.framing.row_window import RowWindow

__all__ = ["Unpacker"]


class Unpacker(wiring.Component):
    """`rows` of whole units of one `kind` -> `packet` beats.

    A unit whose next packet has an unknown opcode or flag, a length above 512 or beyond the unit, or the other kind,
    or whose flits name a wrong offset, is dropped from there on, and `bad` counts it once. A packet under way when a
    wrong offset is met is sound and goes out whole.
    Timing: a beat of a packet a cycle, and one more for the end of a unit only if it stands in a flit of its own
    or has not come yet; out through a register.
    """

    def __init__(self, cfg: LinkConfig, kind: int):
        self.cfg = cfg
        self.kind = kind
        super().__init__(
            {
                "rows": In(stream.Signature(unit_rows(cfg))),
                "packet": Out(stream.Signature(packet_layout(cfg))),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.window = window = RowWindow(self.cfg)
        wiring.connect(m, wiring.flipped(self.rows), window.i)
        shape = rows_of(self.cfg)
        size = self.cfg.beat_bytes

        # The unit under way. Between units the values are those of the unit whose first row has come.
        inside = Signal()
        rows_left = Signal(range(shape.count * UNIT_FLITS_MAX + 1))
        words_left = Signal(range(UNIT_WORDS + 1))
        address = Signal(15)  # class and endpoint
        seen = Signal()  # a packet header has begun in this flit
        wrong = Signal()  # an offset was
        bytes_left = Signal(10)  # of the packet under way
        skips = Signal()  # the rest of the unit is dropped
        rows_now = Signal.like(rows_left)
        words_now = Signal.like(words_left)
        address_now = Signal.like(address)
        first = data.View(FLIT_HEADER_LAYOUT, window.header)
        seen_now = Signal()
        m.d.comb += [
            rows_now.eq(Mux(inside, rows_left, Cat(Const(0, ceil_log2(shape.count)), window.flits))),
            words_now.eq(Mux(inside, words_left, Array(FLIT_WORDS * n for n in range(5))[window.flits])),
            address_now.eq(Mux(inside, address, Cat(first.class_, first.endpoint))),
            window.inside.eq(inside),
            seen_now.eq(inside & seen),
        ]

        header = data.View(PACKET_HEADER_LAYOUT, window.words[:128])
        body = Signal(10)
        needs = Signal(range(256))
        empty = Signal()  # nothing more in this unit
        sound = Signal()
        ready = Signal()  # the output register is free
        begins = Signal()
        there = Signal()  # the words of the next beat, and room for it
        sends = Signal()
        gives_up = Signal()
        finishes = Signal()
        count = Signal(range(shape.lanes + 1))
        bytes_due = Signal(10)
        bytes_now = Signal(range(size + 1))
        last = Signal()
        in_body = bytes_left != 0
        zero = (window.words[:128] == 0) & ~fault("a zero header is a packet")
        offset_fits = seen_now | (window.offset == window.place) | fault("an offset that is wrong is not noticed")
        known = is_sound(header) | (
            fault("an unknown opcode is a write") & (header.flags == 0) & (header.length_bytes <= 512)
        )
        m.d.comb += [
            body.eq(body_bytes(header)),
            needs.eq(packet_words(body)),
            empty.eq((words_now < HEADER_WORDS) | (header.opcode == PacketOpcode.END) | zero),
            sound.eq(
                known
                & ((is_response(header) == self.kind) | fault("a unit of the other kind is taken"))
                & ((needs <= words_now) | fault("a length beyond the unit is not noticed"))
                & offset_fits
                & ~wrong
            ),
            ready.eq(~self.packet.valid | self.packet.ready),
        ]
        decides = (window.level != 0) & ~in_body & ~skips
        complete = (words_now < HEADER_WORDS) | (window.available >= HEADER_WORDS)
        unmarked = (seen_now | (window.offset == NO_HEADER) | fault("an offset that is wrong is not noticed")) & ~wrong
        m.d.comb += [
            bytes_due.eq(Mux(in_body, bytes_left, PACKET_HEADER_BYTES + body)),
            last.eq(bytes_due <= size),
            bytes_now.eq(Mux(last, bytes_due, size)),
            count.eq((bytes_now + 3) >> 2),
            there.eq((window.available >= count) & ready),
            begins.eq(decides & complete & ~empty & sound & there),
            gives_up.eq(decides & complete & (empty | ~sound)),
            sends.eq(begins | (in_body & there)),
            window.count.eq(count),
            window.take.eq(sends),
            window.skip.eq(gives_up | skips | finishes),
            window.skip_rows.eq(rows_now),
        ]

        # With the last beat of a packet the rest goes too, if it can be seen that it is empty
        left = Signal.like(words_left)
        m.d.comb += [
            left.eq(words_now - count),
            finishes.eq(
                sends
                & last
                & ((left < HEADER_WORDS) | ((count < window.available) & (window.next_opcode == PacketOpcode.END)))
                & ~window.leaves
                & (unmarked | begins)
                & ~wrong
            ),
        ]

        # What leaves
        packet = self.packet.payload
        with m.If(ready):
            m.d.sync += self.packet.valid.eq(sends)
        with m.If(sends):
            m.d.sync += [
                packet.first.eq(begins),
                packet.last.eq(last),
                packet.class_.eq(address_now[:3]),
                packet.endpoint.eq(address_now[3:]),
                packet.data.eq(window.words & byte_mask(bytes_now, size)),
                bytes_left.eq(bytes_due - bytes_now),
                words_left.eq(left),
            ]

        # Flits that were left without a header that they named, or with one that they did not name
        misses = Signal()
        ended = Signal()
        over = Signal()
        m.d.comb += [
            misses.eq(
                window.leaves
                & ~(seen_now | begins)
                & (window.offset != NO_HEADER)
                & ~fault("an offset that is wrong is not noticed")
            ),
            ended.eq(window.dropped == rows_now),
            over.eq((sends | gives_up | skips) & ended & (rows_now != 0)),
            self.bad.eq(Mux(gives_up, Mux(empty, ~unmarked, 1), sends & over & (wrong | misses))),
        ]
        with m.If(sends | gives_up):
            m.d.sync += [
                inside.eq(1),
                address.eq(address_now),
                seen.eq((seen_now | begins) & ~window.leaves),
                wrong.eq((inside & wrong) | (sends & misses)),
                skips.eq(gives_up | finishes),
            ]
        with m.If(sends | gives_up | skips):
            m.d.sync += rows_left.eq(rows_now - window.dropped)
        with m.If(over | (gives_up & fault("the next unit begins in the middle of the one dropped"))):
            m.d.sync += [inside.eq(0), skips.eq(0), wrong.eq(0), seen.eq(0)]
        return m
