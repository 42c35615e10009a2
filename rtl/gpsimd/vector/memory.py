"""Loads and stores of vectors: whole rows of local memory, or an element after the other."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from rtl.gpsimd.layouts import ACCESS, rows_ports
from rtl.gpsimd.vector.active import Active, body, bytes_of
from rtl.gpsimd.vector.elements import VectorElements
from rtl.gpsimd.vector.layouts import VECTOR
from rtl.gpsimd.vector.rows import VectorRows

__all__ = ["VectorMemory"]


class VectorMemory(wiring.Component):
    """`start`: instruction `i`, legal and with `elements` of 1 << width bytes, begins; kept until `done`.

    rs1, rs2: of the instruction. mask: v0. group: logarithm of how many registers a field has. span: the first and the
    last byte, if they are in the order of memory, and whether less than words is stored there; `in_rows`: between them
    is memory that has rows, and nothing that one has to see element by element. read, index_number, data_number:
    registers to be read; write: bytes `write_mask` of one become `write_data`. Ports of rows: VectorRows'; rows are
    counted from address 0. The rest: VectorElements'.
    Timing: of rows n + 1 cycles for n registers, one more if they do not begin with a row; else VectorElements', and 1.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.bits = exact_log2(32 * lanes)
        super().__init__(
            {
                "start": In(1),
                "i": In(VECTOR),
                "rs1": In(32),
                "rs2": In(32),
                "elements": In(self.bits + 1),
                "vstart": In(self.bits),
                "width": In(2),
                "group": In(signed(5)),
                "mask": In(32 * lanes),
                "read": Out(1),
                "index_number": Out(5),
                "data_number": Out(5),
                "index_data": In(32 * lanes),
                "data": In(32 * lanes),
                "write": Out(1),
                "write_number": Out(5),
                "write_data": Out(32 * lanes),
                "write_mask": Out(4 * lanes),
                **rows_ports(lanes),
                "access": Out(stream.Signature(ACCESS)),
                "allowed": In(1),
                "reply": In(32),
                "reply_valid": In(1),
                "moves": Out(1),
                "waits": Out(1),
                "done": Out(1),
                "traps": Out(1),
                "shrinks": Out(1),
                "cause": Out(5),
                "address": Out(32),
                "element": Out(self.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, lanes, width = self.i, self.lanes, self.width
        m.submodules.active = active = Active(lanes)
        m.submodules.rows = rows = VectorRows(lanes)
        m.submodules.elements = elements = VectorElements(lanes)
        connect(m, elements.access, flipped(self.access))
        length, by_rows, busy, begins, empty = Signal(32), Signal(), Signal(), Signal(), Signal()
        is_rows = Signal()  # ... is under way
        side_by_side = ~i.strided & ~i.indexed & (i.fields == 0)
        aligned = Mux(width == 2, self.rs1[:2] == 0, Mux(width == 1, ~self.rs1[0], 1))
        m.d.comb += [
            length.eq(self.elements << width),
            self.span_first.eq(self.rs1),
            self.span_last.eq((self.rs1 + length - 1)[:32]),
            self.span_narrow.eq(i.store & (width != 2)),
            by_rows.eq(side_by_side & aligned & (self.vstart == 0) & self.in_rows),
            empty.eq(self.elements <= self.vstart),
            begins.eq(self.start & ~busy & ~empty),
            self.done.eq((self.start & ~busy & empty) | rows.done | elements.done),
            active.load.eq(~busy),
            active.elements.eq(body(m, self.elements, "body") & (self.mask | ~i.masked.replicate(32 * lanes))),
            active.size.eq(width),
            active.next.eq(rows.next | elements.next),
            active.by_one.eq(~is_rows),
        ]
        with m.If(self.done):
            m.d.sync += busy.eq(0)
        with m.Elif(begins):
            m.d.sync += [busy.eq(1), is_rows.eq(by_rows)]

        m.d.comb += [
            rows.begin.eq(begins & by_rows),
            rows.store.eq(i.store),
            rows.base.eq(self.rs1),
            rows.registers.eq((length + (4 * lanes - 1)) >> exact_log2(4 * lanes)),
            rows.enabled.eq(bytes_of(active.element, width, lanes)),
            rows.data.eq(self.data),
            rows.line_ready.eq(self.line_ready),
            rows.line.eq(self.line),
            rows.row_ready.eq(self.row_ready),
            elements.begin.eq(begins & ~by_rows),
            elements.i.eq(i),
            elements.rs1.eq(self.rs1),
            elements.rs2.eq(self.rs2),
            elements.elements.eq(self.elements),
            elements.vstart.eq(self.vstart),
            elements.width.eq(width),
            elements.group.eq(self.group),
            elements.wanted.eq(active.element[0]),
            elements.index_data.eq(self.index_data),
            elements.data.eq(self.data),
            elements.allowed.eq(self.allowed),
            elements.reply.eq(self.reply),
            elements.reply_valid.eq(self.reply_valid),
        ]
        of_rows = ("line_en", "line_row", "row_en", "row", "row_data", "row_mask", "row_last", "moved")
        of_elements = ("index_number", "traps", "shrinks", "cause", "address", "element")
        for part, names in ((rows, of_rows), (elements, of_elements)):
            m.d.comb += [getattr(self, name).eq(getattr(part, name)) for name in names]
        m.d.comb += [
            self.read.eq(rows.read | elements.read),
            self.data_number.eq(Mux(elements.read, elements.data_number, (i.vd + rows.count)[:5])),
            self.write.eq(rows.write | elements.write),
            self.write_number.eq(Mux(is_rows, (i.vd + rows.number)[:5], elements.data_number)),
            self.write_data.eq(Mux(is_rows, rows.write_data, elements.write_data)),
            self.write_mask.eq(Mux(is_rows, rows.enabled, elements.write_mask)),
            self.moves.eq(rows.read | elements.moves),
            self.waits.eq(rows.waits | elements.waits),
        ]
        return m
