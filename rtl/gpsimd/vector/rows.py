"""Registers from and to whole rows of local memory, wherever in a row they begin."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.layouts import MOVED_BITS

__all__ = ["VectorRows"]


class VectorRows(wiring.Component):
    """`begin`: bytes from `base` on are loaded, or stored with `store`, as `registers` registers; all stay to `done`.

    read: register `count` of the group is read, and is `data` in the next cycle; enabled: the bytes that count of the
    register that is loaded or stored then, of the next one after `next`. write: register `number` becomes `write_data`.
    line_en: row `line_row` is read in a cycle with line_ready, and is `line` in the next; row_en: bytes `row_mask` of
    row `row` are written in a cycle with row_ready, the last row with `row_last`. waits: for one of both. moved: bytes
    of a register that goes through in this cycle.
    Timing: a row a cycle, from `begin` on, and one more; a row more if `base` is not where one begins.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits, places, rows = 32 * lanes, 4 * lanes, 32 - exact_log2(4 * lanes)
        super().__init__(
            {
                "begin": In(1),
                "store": In(1),
                "base": In(32),
                "registers": In(4),
                "enabled": In(places),
                "read": Out(1),
                "count": Out(4),
                "data": In(bits),
                "next": Out(1),
                "write": Out(1),
                "number": Out(3),
                "write_data": Out(bits),
                "line_en": Out(1),
                "line_row": Out(rows),
                "line_ready": In(1),
                "line": In(bits),
                "row_en": Out(1),
                "row": Out(rows),
                "row_data": Out(bits),
                "row_mask": Out(places),
                "row_last": Out(1),
                "row_ready": In(1),
                "waits": Out(1),
                "moved": Out(MOVED_BITS),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, places = self.lanes, 4 * self.lanes
        log_bytes = exact_log2(places)
        offset, first_row = self.base[:log_bytes], self.base[log_bytes:]
        busy, went, shifted = Signal(), Signal(), Signal()
        last, place = Signal(4), Signal(4)  # rows: the last, and the one that was read or is written now
        wants, moves = Signal(), Signal()
        m.d.comb += [
            shifted.eq(offset != 0),
            last.eq(self.registers - 1 + shifted),
            wants.eq(self.begin | (busy & (self.count <= last))),
            moves.eq(went & (~self.store | self.row_ready)),
            self.read.eq(wants & Mux(self.store, ~went | moves, self.line_ready)),
            self.line_en.eq(wants & ~self.store),
            self.line_row.eq(first_row + self.count),
            self.row.eq(first_row + place),
            self.row_last.eq(place == last),
            self.waits.eq((self.line_en & ~self.line_ready) | (self.row_en & ~self.row_ready)),
            self.done.eq(moves & (place == last)),
        ]
        with m.If(self.read):
            m.d.sync += [went.eq(1), place.eq(self.count), self.count.eq(self.count + 1)]
        with m.Elif(moves):
            m.d.sync += went.eq(0)
        with m.If(self.done):
            m.d.sync += [busy.eq(0), self.count.eq(0)]
        with m.Elif(self.begin):
            m.d.sync += busy.eq(1)

        above, above_bits = Signal(places), Signal(32 * lanes)  # bytes of a row from `offset` on
        before, before_bytes = Signal(32 * lanes), Signal(places)  # the row or the register before
        joined, stored = Signal(32 * lanes), Signal(places)
        is_register = place < self.registers
        m.d.comb += [
            above.eq(Cat(offset <= n for n in range(places))),
            above_bits.eq(Cat(bit.replicate(8) for bit in above)),
            joined.eq(Mux(shifted, (before & above_bits) | (self.line & ~above_bits), self.line)),
            stored.eq(Mux(is_register, self.enabled, 0)),
        ]
        turned = _rotated(m, self.data, offset, 8, "turned")
        turned_bytes = _rotated(m, stored, offset, 1, "turned_bytes")
        alone = (place == 0) | fault("a row that is stored lacks what turned around")
        m.d.comb += [
            self.write.eq(went & ~self.store & ~(shifted & (place == 0))),
            self.number.eq(Mux(shifted, place - 1, place)[:3]),
            self.write_data.eq(_rotated(m, joined, offset, 8, "of_rows", right=True)),
            self.row_en.eq(went & self.store),
            self.row_data.eq((turned & above_bits) | (before & ~above_bits)),
            self.row_mask.eq((turned_bytes & above) | Mux(alone, 0, before_bytes & ~above)),
            self.next.eq(self.write | (moves & self.store & is_register)),
            self.moved.eq(Mux(self.next, _ones(self.enabled), 0)),
        ]
        with m.If(moves):
            m.d.sync += [before.eq(Mux(self.store, turned, self.line)), before_bytes.eq(turned_bytes)]
        return m


def _ones(bits: Value) -> Value:
    """How many are 1."""
    half = len(bits) // 2
    return _ones(bits[:half]) + _ones(bits[half:]) if half else bits


def _rotated(m: Module, value: Value, places: Value, unit: int, name: str, *, right: bool = False) -> Value:
    """`value` rotated by `places` units of `unit` bits, to the left if not to the right."""
    for n, bit in enumerate(places):
        turned = Signal(len(value), name=f"{name}_{n}")
        by = unit << n
        m.d.comb += turned.eq(Mux(bit, value.rotate_right(by) if right else value.rotate_left(by), value))
        value = turned
    return value
