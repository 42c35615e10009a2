"""Registers to whole rows of memory, wherever in a row they begin."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.layouts import MOVED_BITS
from rtl.gpsimd.vector.active import Active, bits_of, bytes_of
from rtl.gpsimd.vector.rotate import ones, rotated

__all__ = ["RowStores"]


class RowStores(wiring.Component):
    """`start` with `ready`: `registers` registers from `vd` on go to bytes from `base` on, elements of 1 << size bytes,
    those that are `active`; beyond: for `row_beyond`.

    may: the next register may be read, that of the set `wants_read`. reads: register `number` is read, and is `data` in
    the next cycle; `has_read` is that register. row_en: bytes `row_mask` of row `row` are written in a cycle with
    row_ready, the last row with `row_last`. busy, from the cycle after `start` on. waits: for a row. moved: bytes to
    beyond, of a register that goes through in this cycle.
    Timing: a register a cycle from the cycle after `start` on, written in the next; a row more if `base` is not where
    one begins.
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
                "wants_read": Out(32),
                "has_read": Out(32),
                "reads": Out(1),
                "number": Out(5),
                "data": In(bits),
                "row_en": Out(1),
                "row_beyond": Out(1),
                "row": Out(rows),
                "row_data": Out(bits),
                "row_mask": Out(places),
                "row_last": Out(1),
                "row_ready": In(1),
                "waits": Out(1),
                "moved": Out(MOVED_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, places = self.lanes, 4 * self.lanes
        log_bytes = exact_log2(places)
        m.submodules.active = active = Active(lanes)
        base, vd, size, registers = Signal(32), Signal(5), Signal(2), Signal(4)
        offset, first_row = base[:log_bytes], base[log_bytes:]
        shifted, last = Signal(), Signal(4)
        count, place = Signal(4), Signal(4)  # rows: of the next, and of what was read
        went, goes, done, is_register = Signal(), Signal(), Signal(), Signal()
        with m.If(self.start):
            m.d.sync += [
                base.eq(self.base),
                vd.eq(self.vd),
                size.eq(self.size),
                registers.eq(self.registers),
                self.row_beyond.eq(self.beyond),
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
        with m.If(self.reads):
            m.d.sync += [went.eq(1), place.eq(count)]
        with m.Elif(goes):
            m.d.sync += went.eq(0)
        register = Signal(32)
        m.d.comb += [
            goes.eq(went & self.row_ready),
            self.number.eq((vd + count)[:5]),
            register.eq(Mux(count < registers, 1 << self.number, 0)),
            self.wants_read.eq(register),
            self.reads.eq(self.busy & (count <= last) & self.may & (~went | goes)),
            self.has_read.eq(Mux(self.reads, register, 0)),
            self.row_en.eq(went),
            self.row.eq(first_row + place),
            self.row_last.eq(place == last),
            self.waits.eq(went & ~self.row_ready),
            done.eq(goes & (place == last)),
            self.ready.eq(~self.busy | done),
        ]

        above, above_bits = Signal(places), Signal(32 * lanes)  # bytes of a row from `offset` on
        before, before_bytes = Signal(32 * lanes), Signal(places)  # of the register before
        enabled, stored = Signal(places), Signal(places)
        m.d.comb += [
            active.load.eq(self.start),
            active.elements.eq(self.active),
            active.next.eq(goes & is_register),
            active.size.eq(size),
            is_register.eq(place < registers),
            enabled.eq(bytes_of(active.element, size, lanes)),
            stored.eq(Mux(is_register, enabled, 0)),
            above.eq(Cat(offset <= n for n in range(places))),
            above_bits.eq(bits_of(m, above, "above")),
        ]
        turned = rotated(m, self.data, offset, 8, "turned")
        turned_bytes = rotated(m, stored, offset, 1, "turned_bytes")
        alone = (place == 0) | fault("a row that is stored lacks what turned around")
        m.d.comb += [
            self.row_data.eq((turned & above_bits) | (before & ~above_bits)),
            self.row_mask.eq((turned_bytes & above) | Mux(alone, 0, before_bytes & ~above)),
            self.moved.eq(Mux(goes & is_register & self.row_beyond, ones(m, enabled, "moved"), 0)),
        ]
        with m.If(goes):
            m.d.sync += [before.eq(turned), before_bytes.eq(turned_bytes)]
        return m
