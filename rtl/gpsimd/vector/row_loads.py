"""Registers from whole rows of memory, wherever in a row they begin."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.gpsimd.layouts import MOVED_BITS
from rtl.gpsimd.vector.active import Active, bits_of, bytes_of
from rtl.gpsimd.vector.rotate import ones, rotated

__all__ = ["RowLoads"]


class RowLoads(wiring.Component):
    """`start` with `ready`: bytes from `base` on go to `registers` registers from `vd` on, those of elements of 1 <<
    size bytes that are `active`; beyond: not of local memory, for `line_beyond`.

    may: the next row may be read; it fills the register of the set `wants_write`, and `has_written` says that it was.
    write: register `write_number` becomes `write_data` where `write_mask` is; `late` is that register. line_en: row
    `line_row` is read in a cycle with line_ready, and is `line` in the next. busy: rows are to be read, from the cycle
    after `start` on. waits: for a row. moved: bytes from beyond, of a register that goes through in this cycle.
    Timing: a row a cycle from the cycle after `start` on, written in the next; a row more if `base` is not where one
    begins. `ready` with the last row.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits, places, rows = 32 * lanes, 4 * lanes, 32 - exact_log2(4 * lanes)
        super().__init__(
            {
                "start": In(1),
                "ready": Out(1),
                "base": In(32),
                "registers": In(4),
                "vd": In(5),
                "active": In(bits),
                "size": In(2),
                "beyond": In(1),
                "busy": Out(1),
                "may": In(1),
                "wants_write": Out(32),
                "has_written": Out(32),
                "late": Out(32),
                "write": Out(1),
                "write_number": Out(5),
                "write_data": Out(bits),
                "write_mask": Out(places),
                "line_en": Out(1),
                "line_beyond": Out(1),
                "line_row": Out(rows),
                "line_ready": In(1),
                "line": In(bits),
                "reads": Out(1),
                "waits": Out(1),
                "moved": Out(MOVED_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, places = self.lanes, 4 * self.lanes
        log_bytes = exact_log2(places)
        m.submodules.active = active = Active(lanes)
        base, vd, size = Signal(32), Signal(5), Signal(2)
        offset, first_row = base[:log_bytes], base[log_bytes:]
        shifted, last, count = Signal(), Signal(4), Signal(4)  # rows: the last, and the next
        done, fills, wants, number = Signal(), Signal(), Signal(), Signal(5)
        with m.If(self.start):
            m.d.sync += [
                base.eq(self.base),
                vd.eq(self.vd),
                size.eq(self.size),
                self.line_beyond.eq(self.beyond),
                shifted.eq(self.base[:log_bytes] != 0),
                last.eq(self.registers - 1 + (self.base[:log_bytes] != 0)),
                count.eq(0),
                self.busy.eq(1),
            ]
        with m.Else():
            with m.If(self.reads):
                m.d.sync += count.eq(count + 1)
            with m.If(done):
                m.d.sync += self.busy.eq(0)
        m.d.comb += [
            number.eq((vd + count - shifted)[:5]),
            fills.eq(~shifted | (count != 0)),
            self.wants_write.eq(Mux(fills, 1 << number, 0)),
            self.has_written.eq(Mux(self.reads, self.wants_write, 0)),
            wants.eq(self.busy & self.may),
            self.reads.eq(wants & self.line_ready),
            self.line_en.eq(wants),
            self.line_row.eq(first_row + count),
            self.waits.eq(wants & ~self.line_ready),
            done.eq(self.reads & (count == last)),
            self.ready.eq(~self.busy | done),
            active.load.eq(self.start),
            active.elements.eq(self.active),
            active.next.eq(self.reads & fills),
            active.size.eq(size),
        ]

        # the row is there: of the instruction before, maybe
        came, turned, beyond_of_row = Signal(), Signal(log_bytes), Signal()
        m.d.sync += [came.eq(self.reads), self.write.eq(self.reads & fills)]
        with m.If(self.reads):
            m.d.sync += [
                self.write_number.eq(number),
                self.write_mask.eq(bytes_of(active.element, size, lanes)),
                turned.eq(offset),
                beyond_of_row.eq(self.line_beyond),
            ]
        above, above_bits = Signal(places), Signal(32 * lanes)  # bytes of a row from `turned` on
        before, joined = Signal(32 * lanes), Signal(32 * lanes)  # before: the row before
        m.d.comb += [
            above.eq(Cat(turned <= n for n in range(places))),
            above_bits.eq(bits_of(m, above, "above")),
            joined.eq(Mux(turned != 0, (before & above_bits) | (self.line & ~above_bits), self.line)),
            self.write_data.eq(rotated(m, joined, turned, 8, "of_rows", right=True)),
            self.late.eq(Mux(self.write, 1 << self.write_number, 0)),
            self.moved.eq(Mux(self.write & beyond_of_row, ones(m, self.write_mask, "moved"), 0)),
        ]
        with m.If(came):
            m.d.sync += before.eq(self.line)
        return m
