"""The next words of a received unit, as many as a beat has, wherever they stand in its rows."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import (
    GAP_LANES,
    WORD_BITS,
    rotate_words,
    rows_of,
    unit_rows,
)

__all__ = ["RowWindow"]

_DEPTH = 4  # the words of a beat lie in at most three rows; one more comes meanwhile


class RowWindow(wiring.Component):
    """Rows `i` wait in registers; `words` are those of a beat from the current place on, `available` of them have come.

    While `inside` is 0 the place is the first word of the oldest row, the first of its unit: `header`, `flits` are of
    it. `place`: number of the word in its flit, `offset`: what that flit's header says.
    `next_opcode`: low bits of the word after `count` ones, if it has come and stands in the same flit.
    `take` moves on by `count` words; `skip` drops rows, up to `skip_rows`, also with `take`; `dropped` rows go in this
    cycle. `leaves`: `take` goes beyond its flit. `level`: rows that wait.
    Timing: a row in and the words of a beat out a cycle; all outputs are combinational from registers and inputs.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        shape = rows_of(cfg)
        rows = range(shape.count * UNIT_FLITS_MAX + 1)
        super().__init__(
            {
                "i": In(stream.Signature(unit_rows(cfg))),
                "inside": In(1),
                "words": Out(shape.bits),
                "next_opcode": Out(4),
                "available": Out(range(3 * shape.lanes + 1)),
                "level": Out(range(_DEPTH + 1)),
                "header": Out(32),
                "flits": Out(range(UNIT_FLITS_MAX + 1)),
                "offset": Out(6),
                "place": Out(6),
                "take": In(1),
                "count": In(range(shape.lanes + 1)),
                "skip": In(1),
                "skip_rows": In(rows),
                "dropped": Out(rows),
                "leaves": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = _DEPTH
        shape = rows_of(self.cfg)
        lanes, last_end = shape.lanes, shape.last_end
        entry = data.StructLayout({"flits": range(UNIT_FLITS_MAX + 1), "data": shape.bits})
        rows = [Signal(entry, name=f"row_{n}") for n in range(depth)]
        level = self.level
        row_kept = Signal(range(shape.count))  # of rows[0] in its flit
        lane_kept = Signal(range(lanes))
        offset_kept = Signal(6)
        row = Signal(range(shape.count), name="row_now")
        lane = Signal(range(lanes), name="lane_now")
        second = Signal(range(shape.count))
        third = Signal(range(shape.count))
        m.d.comb += [
            row.eq(Mux(self.inside, row_kept, 0)),
            lane.eq(Mux(self.inside, lane_kept, 1)),
            second.eq(row + 1),
            third.eq(row + 2),
            self.header.eq(rows[0].data[:32]),
            self.flits.eq(rows[0].flits),
            self.offset.eq(Mux(row == 0, rows[0].data[4:10], offset_kept)),
            self.place.eq(Cat(lane, row) - 1),
        ]

        # Words: each lane of the row taken from where it stands, then turned so that the place comes first
        over_gap = [
            Mux(
                fault("the gap between two flits is a lane too short"),
                rows[n].data.rotate_right((GAP_LANES - 1) * WORD_BITS),
                rows[n].data.rotate_right(GAP_LANES * WORD_BITS),
            )
            for n in (1, 2)
        ]
        merged = []
        for n in range(lanes):
            at = slice(n * WORD_BITS, (n + 1) * WORD_BITS)
            behind = rows[1].data[at]  # lanes before the place: words of the next row
            own = rows[0].data[at]
            if n >= last_end:
                behind = Mux(row == shape.count - 2, over_gap[1][at], behind)
                own = Mux(row == shape.count - 1, over_gap[0][at], own)
            else:
                behind = Mux(row == shape.count - 1, over_gap[0][at], behind)
            merged.append(Mux(lane > n, behind, own))
        m.d.comb += self.words.eq(rotate_words(m, Cat(merged), (0 - lane)[: ceil_log2(lanes)], "turned"))
        opcodes = Array(self.words.word_select(n, WORD_BITS)[:4] for n in range(lanes))
        opcodes_behind = Array(rows[1].data.word_select(n, WORD_BITS)[:4] for n in range(lanes))
        m.d.comb += self.next_opcode.eq(Mux(self.count[-1], opcodes_behind[lane], opcodes[self.count[:-1]]))
        first_room = Signal(range(lanes + 1))
        second_room = Signal(range(lanes + 1))
        m.d.comb += [
            first_room.eq(shape.end(row) - lane),
            second_room.eq(shape.end(second) - shape.start(second)),
            self.available.eq(
                Mux(level > 0, first_room, 0)
                + Mux(level > 1, second_room, 0)
                + Mux(level > 2, shape.end(third) - shape.start(third), 0)
            ),
        ]

        # Moving on: within the row, to the next one, or to the one after it
        to_second = Signal(range(lanes + 1))
        to_third = Signal(range(lanes + 1))
        m.d.comb += [to_second.eq(self.count - first_room), to_third.eq(to_second - second_room)]
        moved = Signal(2)  # rows that `take` leaves behind
        with m.If(self.count >= first_room):
            m.d.comb += moved.eq(Mux(to_second < second_room, 1, 2))
        m.d.comb += [
            self.dropped.eq(
                Mux(self.skip, Mux(self.skip_rows < level, self.skip_rows, level), Mux(self.take, moved, 0))
            ),
            self.leaves.eq(
                self.take & (((moved != 0) & (row == shape.count - 1)) | ((moved == 2) & (second == shape.count - 1)))
            ),
        ]
        with m.If(self.take):
            m.d.sync += [row_kept.eq(row + moved), offset_kept.eq(self.offset)]
            with m.Switch(moved):
                with m.Case(0):
                    m.d.sync += lane_kept.eq(lane + self.count)
                with m.Case(1):
                    m.d.sync += lane_kept.eq(shape.start(second) + to_second)
                with m.Case(2):
                    m.d.sync += lane_kept.eq(shape.start(third) + to_third)
                    with m.If(second == 0):
                        m.d.sync += offset_kept.eq(rows[1].data[4:10])

        enters = Signal()
        stays = Signal(range(depth + 1))
        m.d.comb += [
            self.i.ready.eq(stays != depth),
            enters.eq(self.i.valid & self.i.ready),
            stays.eq(level - self.dropped),
        ]
        m.d.sync += level.eq(stays + enters)
        shown = [Signal(entry, name=f"kept_{n}") for n in range(depth)]
        with m.Switch(self.dropped):
            for gone in range(depth + 1):
                with m.Case(gone):
                    m.d.comb += [shown[n].eq(rows[n + gone]) for n in range(depth - gone)]
        for n in range(depth):
            with m.If(self.dropped.any()):
                m.d.sync += rows[n].eq(shown[n])
            with m.If(enters & (stays == n)):
                m.d.sync += rows[n].eq(self.i.payload)
        return m
