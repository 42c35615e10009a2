"""Where the words of a packet go in the flits of its unit, and how they get there: up to a row a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.contract.link import FLIT_BYTES, UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import GAP_LANES, WORD_BITS, rotate_words, rows_of

__all__ = ["Placing", "bank_layout", "place_layout", "slots_of"]

_BEAT_BYTES = 64  # of LinkConfig.send_beats


def slots_of(cfg: LinkConfig) -> int:
    """Flits that a queue of the sender holds."""
    return cfg.send_beats * _BEAT_BYTES // FLIT_BYTES


def place_layout(cfg: LinkConfig) -> data.StructLayout:
    """A word's place: `flit` of the unit, which lies in `slot` of the queue's ring, and row and lane there."""
    rows = rows_of(cfg)
    return data.StructLayout(
        {
            "slot": range(slots_of(cfg)),
            "flit": range(UNIT_FLITS_MAX + 1),
            "row": range(rows.count),
            "lane": range(rows.lanes),
        }
    )


def bank_layout(cfg: LinkConfig) -> data.StructLayout:
    """Words for one bank, which has every second row: `address` counts those of the queue."""
    rows = rows_of(cfg)
    return data.StructLayout(
        {"address": ceil_log2(slots_of(cfg)) + ceil_log2(rows.count) - 1, "mask": rows.lanes, "data": rows.bits}
    )


class Placing(wiring.Component):
    """`count` words `i` from the place `at` on, into two banks (even rows and odd rows).

    The words of a cycle go to one row and the next, so both banks take some. Only if they begin in the last 4 lanes of
    the row before a flit's last do they reach a third row; then `done` is 0 and the same chunk stays for another cycle,
    with `at` from `next`. `next` is the place behind what this cycle writes; `in_flit`: words of that flit come before
    it. Timing: combinational, but for the number of words already written.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        rows = rows_of(cfg)
        super().__init__(
            {
                "valid": In(1),
                "count": In(range(rows.lanes + 1)),
                "i": In(rows.bits),
                "at": In(place_layout(cfg)),
                "next": Out(place_layout(cfg)),
                "in_flit": Out(1),
                "done": Out(1),
                "banks": Out(bank_layout(cfg)).array(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        at = self.at
        rows = rows_of(self.cfg)
        lanes = rows.lanes
        slots = slots_of(self.cfg)
        written = Signal(range(lanes))  # words of the chunk
        rest = Signal(range(lanes + 1))
        here = Signal(range(lanes + 1))  # words into the row of `at`
        there = Signal(range(lanes + 1))  # and into the row after it
        row = Signal(range(rows.count), name="row_after")
        room = Signal(range(lanes + 1))
        room_there = Signal(range(lanes + 1))
        slot = Signal(range(slots), name="slot_after")
        ends = Signal()  # the row of `at` is the last of its flit
        first = Signal(rows.bits)
        second = Signal(rows.bits)
        mask = Signal(lanes)
        mask_there = Signal(lanes)

        m.d.comb += [
            ends.eq(at.row == rows.count - 1),
            row.eq(at.row + 1),
            slot.eq(Mux(ends, Mux(at.slot == slots - 1, 0, at.slot + 1), at.slot)),
            rest.eq(self.count - written),
            room.eq(rows.end(at.row) - at.lane),
            room_there.eq(rows.end(row) - rows.start(row)),
            here.eq(Mux(rest < room, rest, room)),
            there.eq(Mux(rest - here < room_there, rest - here, room_there)),
            self.done.eq(here + there == rest),
            first.eq(rotate_words(m, self.i, (at.lane - written)[: ceil_log2(lanes)], "turned")),
            second.eq(Mux(ends, first.rotate_left(GAP_LANES * WORD_BITS), first)),
            mask.eq(Mux(self.valid, ((1 << here) - 1)[:lanes] << at.lane, 0)),
            mask_there.eq(Mux(self.valid, ((1 << there) - 1)[:lanes] << rows.start(row), 0)),
        ]
        with m.If(self.valid):
            m.d.sync += written.eq(Mux(self.done, 0, written + here + there))

        # The place after: in the same row, in the next, or where the one after that begins
        third = Signal(range(rows.count), name="row_third")
        leaves = Signal()
        m.d.comb += [third.eq(row + 1), leaves.eq(row == rows.count - 1), self.next.eq(at)]
        with m.If((here == room) & (there == room_there)):
            m.d.comb += [
                self.next.row.eq(third),
                self.next.lane.eq(rows.start(third)),
                self.next.flit.eq(at.flit + (ends | leaves)),
                self.next.slot.eq(Mux(leaves, Mux(at.slot == slots - 1, 0, at.slot + 1), slot)),
            ]
        with m.Elif(here == room):
            m.d.comb += [
                self.next.row.eq(row),
                self.next.lane.eq(rows.start(row) + there),
                self.next.flit.eq(at.flit + ends),
                self.next.slot.eq(slot),
            ]
        with m.Else():
            m.d.comb += self.next.lane.eq(at.lane + here)
        m.d.comb += self.in_flit.eq((self.next.row != 0) | (self.next.lane != 1))

        for n, bank in enumerate(self.banks):
            own = at.row[0] == n  # the row of `at` is in this bank
            address: list[Value] = [Mux(own, at.row, row)[1:], Mux(own, at.slot, slot)]
            m.d.comb += [
                bank.address.eq(Cat(address)),
                bank.mask.eq(Mux(own, mask, mask_there)),
                bank.data.eq(Mux(own, first, second)),
            ]
        return m
