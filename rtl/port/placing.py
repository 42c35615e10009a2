"""Where the words of a packet go in the flits of its unit, and how they get there: up to 16 a cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.port.framing import GAP_LANES, LANES, ROW_BITS, ROWS, WORD_BITS, rotate_words, row_end, row_start

__all__ = ["Placing", "place_layout"]


def place_layout(slots: int) -> data.StructLayout:
    """A word's place: `flit` of the unit, which lies in `slot` of the ring, and row and lane there."""
    return data.StructLayout(
        {"slot": range(slots), "flit": range(UNIT_FLITS_MAX + 1), "row": range(ROWS), "lane": range(LANES)}
    )


def _bank_layout(slots: int) -> data.StructLayout:
    """Words for one bank: row 2 * high, or 2 * high + 1, of `slot`."""
    return data.StructLayout({"slot": range(slots), "high": 1, "mask": LANES, "data": ROW_BITS})


class Placing(wiring.Component):
    """`count` words `i` from the place `at` on, into two banks (rows 0 and 2; rows 1 and 3).

    The words of a cycle go to one row and the next, so both banks take some. Only if a chunk ends a row 2 from lane
    12 on does it reach a third row; then `done` is 0 and the same chunk stays for another cycle, with `at` from
    `next`. `next` is the place behind what this cycle writes; `in_flit`: words of that flit come before it.
    Timing: combinational, but for the number of words already written.
    """

    def __init__(self, slots: int):
        self.slots = slots
        super().__init__(
            {
                "valid": In(1),
                "count": In(range(LANES + 1)),
                "i": In(ROW_BITS),
                "at": In(place_layout(slots)),
                "next": Out(place_layout(slots)),
                "in_flit": Out(1),
                "done": Out(1),
                "banks": Out(_bank_layout(slots)).array(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        at = self.at
        written = Signal(range(LANES))  # words of the chunk
        rest = Signal(range(LANES + 1))
        here = Signal(range(LANES + 1))  # words into the row of `at`
        there = Signal(range(LANES + 1))  # and into the row after it
        row = Signal(range(ROWS), name="row_after")
        room = Signal(range(LANES + 1))
        room_there = Signal(range(LANES + 1))
        slot = Signal(range(self.slots), name="slot_after")
        ends = Signal()  # the row of `at` is the last of its flit
        first = Signal(ROW_BITS)
        second = Signal(ROW_BITS)
        mask = Signal(LANES)
        mask_there = Signal(LANES)

        m.d.comb += [
            ends.eq(at.row == ROWS - 1),
            row.eq(at.row + 1),
            slot.eq(Mux(ends, Mux(at.slot == self.slots - 1, 0, at.slot + 1), at.slot)),
            rest.eq(self.count - written),
            room.eq(row_end(at.row) - at.lane),
            room_there.eq(row_end(row) - row_start(row)),
            here.eq(Mux(rest < room, rest, room)),
            there.eq(Mux(rest - here < room_there, rest - here, room_there)),
            self.done.eq(here + there == rest),
            first.eq(rotate_words(m, self.i, (at.lane - written)[:4], "turned")),
            second.eq(Mux(ends, first.rotate_left(GAP_LANES * WORD_BITS), first)),
            mask.eq(Mux(self.valid, ((1 << here) - 1)[:LANES] << at.lane, 0)),
            mask_there.eq(Mux(self.valid, ((1 << there) - 1)[:LANES] << row_start(row), 0)),
        ]
        with m.If(self.valid):
            m.d.sync += written.eq(Mux(self.done, 0, written + here + there))

        # The place after: in the same row, in the next, or where the one after that begins
        third = Signal(range(ROWS), name="row_third")
        leaves = Signal()
        m.d.comb += [third.eq(row + 1), leaves.eq(row == ROWS - 1), self.next.eq(at)]
        with m.If((here == room) & (there == room_there)):
            m.d.comb += [
                self.next.row.eq(third),
                self.next.lane.eq(row_start(third)),
                self.next.flit.eq(at.flit + (ends | leaves)),
                self.next.slot.eq(Mux(leaves, Mux(at.slot == self.slots - 1, 0, at.slot + 1), slot)),
            ]
        with m.Elif(here == room):
            m.d.comb += [
                self.next.row.eq(row),
                self.next.lane.eq(row_start(row) + there),
                self.next.flit.eq(at.flit + ends),
                self.next.slot.eq(slot),
            ]
        with m.Else():
            m.d.comb += self.next.lane.eq(at.lane + here)
        m.d.comb += self.in_flit.eq((self.next.row != 0) | (self.next.lane != 1))

        for n, bank in enumerate(self.banks):
            own = at.row[0] == n  # the row of `at` is in this bank
            m.d.comb += [
                bank.slot.eq(Mux(own, at.slot, slot)),
                bank.high.eq(Mux(own, at.row, row)[1]),
                bank.mask.eq(Mux(own, mask, mask_there)),
                bank.data.eq(Mux(own, first, second)),
            ]
        return m
