"""Loads and stores of vectors: whole rows of memory, beside what comes after; words of local memory; elements."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.layouts import ACCESS, rows_ports
from rtl.gpsimd.vector.active import Active
from rtl.gpsimd.vector.elements import VectorElements
from rtl.gpsimd.vector.layouts import VECTOR
from rtl.gpsimd.vector.lookups import VectorLookups
from rtl.gpsimd.vector.row_loads import RowLoads
from rtl.gpsimd.vector.row_stores import RowStores

__all__ = ["VectorMemory"]

_LOADS = (
    "wants_write",
    "has_written",
    "write_number",
    "write_data",
    "write_mask",
    "line_en",
    "line_row",
    "line_beyond",
)
_STORES = ("wants_read", "has_read", "row_en", "row", "row_data", "row_mask", "row_last", "row_beyond")
_LOOKUPS = ("look_en", "look_write", "look_address", "look_data")
_ELEMENTS = ("index_number", "traps", "shrinks", "cause", "address", "element")


class VectorMemory(wiring.Component):
    """Instruction `i`, legal, with x[rs1], x[rs2], v0 and Intake's `elements`, `size`, `active` and `registers`.

    by_rows: it goes by rows, for which it is given to loads or stores with `load` and `load_ready`, `store` and
    `store_ready`, and not waited for; by_words: it may go by words of local memory, with `look` and `look_free`, until
    `looked`; else, and if that `refuses`, with `begin` while nothing else is under way, until `done`. group: logarithm
    of how many registers a field has. span_first, span_last: the first and the last byte, if they are in the order of
    memory; span_narrow: less than words is stored there; in_rows: between them is memory that has rows, and nothing
    that one has to see element by element, beyond: not local memory. Ports of rows, and load_may, wants_write,
    has_written, line_moved, store_may, wants_read, has_read, row_moved: RowLoads' and RowStores'; look_wants_read and
    the like: VectorLookups'. index_number and data_number, with `read`, stored, with `read_stored`, write, with number,
    data and mask: registers, of elements; loaded and write_*: of rows. The rest: VectorElements'. Timing: theirs.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.bits = bits = exact_log2(32 * lanes)
        register, places = Out(32 * lanes), Out(4 * lanes)
        super().__init__(
            {
                "i": In(VECTOR),
                "rs1": In(32),
                "rs2": In(32),
                "elements": In(bits + 1),
                "size": In(2),
                "active": In(32 * lanes),
                "registers": In(4),
                "vstart": In(bits),
                "group": In(signed(5)),
                "by_rows": Out(1),
                "load": In(1),
                "load_ready": Out(1),
                "load_busy": Out(1),
                "load_may": In(1),
                "wants_write": Out(32),
                "has_written": Out(32),
                "loaded": Out(1),
                "load_late": Out(32),
                "write_number": Out(5),
                "write_data": register,
                "write_mask": places,
                "store": In(1),
                "store_ready": Out(1),
                "store_busy": Out(1),
                "store_may": In(1),
                "wants_read": Out(32),
                "has_read": Out(32),
                "read_stored": Out(1),
                "stored": Out(5),
                "stored_data": In(32 * lanes),
                "by_words": Out(1),
                "look": In(1),
                "look_free": Out(1),
                "look_busy": Out(1),
                "look_may": In(1),
                "look_wants_read": Out(32),
                "look_wants_write": Out(32),
                "look_closes": Out(1),
                "read_looked": Out(1),
                "look_index_number": Out(5),
                "look_number": Out(5),
                "look_index": In(32 * lanes),
                "look_value": In(32 * lanes),
                "found": Out(1),
                "found_number": Out(5),
                "found_data": register,
                "found_mask": places,
                "looked": Out(1),
                "refuses": Out(1),
                "begin": In(1),
                "done": Out(1),
                "read": Out(1),
                "index_number": Out(5),
                "data_number": Out(5),
                "index_data": In(32 * lanes),
                "data": In(32 * lanes),
                "write": Out(1),
                "element_data": register,
                "element_mask": places,
                **rows_ports(lanes),
                "access": Out(stream.Signature(ACCESS)),
                "allowed": In(1),
                "reply": In(32),
                "reply_valid": In(1),
                "moves": Out(2),
                "waits": Out(1),
                "traps": Out(1),
                "shrinks": Out(1),
                "cause": Out(5),
                "address": Out(32),
                "element": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, size, first, last = self.i, self.size, self.span_first, self.span_last
        m.submodules.active = active = Active(self.lanes)
        m.submodules.loads = loads = RowLoads(self.lanes)
        m.submodules.stores = stores = RowStores(self.lanes)
        m.submodules.lookups = lookups = VectorLookups(self.lanes)
        m.submodules.elements = elements = VectorElements(self.lanes)
        connect(m, elements.access, flipped(self.access))
        side_by_side, aligned, words = Signal(), Signal(), Signal()
        resumes, first_element = Signal(), Signal(self.bits)  # behind what went by words
        m.d.comb += [
            side_by_side.eq(~i.strided & ~i.indexed & (i.fields == 0)),
            aligned.eq(Mux(size == 2, self.rs1[:2] == 0, Mux(size == 1, ~self.rs1[0], 1))),
            first.eq(self.rs1),
            last.eq((self.rs1 + (self.elements << size) - 1)[:32]),
            self.span_narrow.eq(i.store & (size != 2)),
            self.by_rows.eq(side_by_side & aligned & (self.vstart == 0) & self.in_rows),
            words.eq((i.strided | (i.indexed & (i.width == 2))) & (i.fields == 0) & (size == 2)),
            self.by_words.eq(words & (self.vstart == 0)),
            # rows of local memory first: they have its banks, and may be what is looked for
            self.look_free.eq(~lookups.busy & ~(loads.busy & ~loads.line_beyond) & ~(stores.busy & ~stores.row_beyond)),
            self.look_busy.eq(lookups.busy),
            self.looked.eq(lookups.done),
            self.refuses.eq(lookups.refuses),
            self.look_closes.eq(lookups.closes),
        ]
        with m.If(lookups.refuses):
            m.d.sync += [resumes.eq(1), first_element.eq(lookups.element)]
        with m.Elif(elements.done):
            m.d.sync += resumes.eq(0)
        # loads and stores pass each other, but not where they touch the same bytes
        loaded, stored = self._touched(m, "loads", self.load), self._touched(m, "stores", self.store)
        passes = fault("a load of rows passes a store to them")
        m.d.comb += [
            self.load_ready.eq(loads.ready & ~(stores.busy & stored & ~passes)),
            self.store_ready.eq(stores.ready & ~(loads.busy & loaded)),
            self.load_busy.eq(loads.busy),
            self.store_busy.eq(stores.busy),
        ]
        for part, start in ((loads, self.load), (stores, self.store)):
            m.d.comb += [
                part.start.eq(start),
                part.base.eq(self.rs1),
                part.registers.eq(self.registers),
                part.vd.eq(i.vd),
                part.active.eq(self.active),
                part.size.eq(size),
                part.beyond.eq(self.beyond),
            ]
        m.d.comb += [
            loads.may.eq(self.load_may),
            loads.line_ready.eq(self.line_ready),
            loads.line.eq(self.line),
            self.loaded.eq(loads.write),
            self.load_late.eq(loads.late),
            self.line_moved.eq(loads.moved),
            stores.may.eq(self.store_may),
            stores.data.eq(self.stored_data),
            stores.row_ready.eq(self.row_ready),
            self.read_stored.eq(stores.reads),
            self.stored.eq(stores.number),
            self.row_moved.eq(stores.moved),
            active.load.eq(self.begin),
            active.elements.eq(self.active),
            active.size.eq(size),
            active.next.eq(elements.next),
            active.by_one.eq(1),
            elements.begin.eq(self.begin),
            elements.i.eq(i),
            elements.rs1.eq(self.rs1),
            elements.rs2.eq(self.rs2),
            elements.elements.eq(self.elements),
            elements.vstart.eq(Mux(resumes, first_element, self.vstart)),
            elements.width.eq(size),
            elements.group.eq(self.group),
            elements.wanted.eq(active.element[0]),
            elements.index_data.eq(self.index_data),
            elements.data.eq(self.data),
            elements.allowed.eq(self.allowed),
            elements.reply.eq(self.reply),
            elements.reply_valid.eq(self.reply_valid),
            self.done.eq(elements.done),
            self.read.eq(elements.read),
            self.data_number.eq(elements.data_number),
            self.write.eq(elements.write),
            self.element_data.eq(elements.write_data),
            self.element_mask.eq(elements.write_mask),
            self.moves.eq(loads.reads + stores.reads + (elements.moves | lookups.moves)),
            self.waits.eq(loads.waits | stores.waits | elements.waits),
            lookups.start.eq(self.look),
            lookups.base.eq(self.rs1),
            lookups.stride.eq(self.rs2),
            lookups.strided.eq(i.strided),
            lookups.store.eq(i.store),
            lookups.registers.eq(self.registers),
            lookups.vd.eq(i.vd),
            lookups.vs2.eq(i.vs2),
            lookups.active.eq(self.active),
            lookups.may.eq(self.look_may),
            lookups.index.eq(self.look_index),
            lookups.data.eq(self.look_value),
            lookups.look_allowed.eq(self.look_allowed),
            lookups.look_ready.eq(self.look_ready),
            lookups.look_found.eq(self.look_found),
            self.look_wants_read.eq(lookups.wants_read),
            self.look_wants_write.eq(lookups.wants_write),
            self.read_looked.eq(lookups.reads),
            self.look_index_number.eq(lookups.index_number),
            self.look_number.eq(lookups.data_number),
            self.found.eq(lookups.write),
            self.found_number.eq(lookups.write_number),
            self.found_data.eq(lookups.write_data),
            self.found_mask.eq(lookups.write_mask),
        ]
        for part, names in ((loads, _LOADS), (stores, _STORES), (lookups, _LOOKUPS), (elements, _ELEMENTS)):
            m.d.comb += [getattr(self, name).eq(getattr(part, name)) for name in names]
        return m

    def _touched(self, m: Module, name: str, start: Value) -> Value:
        """The span of `i` has bytes of the one that began last with `start`, by either address of local memory."""
        first, last, place = (
            Signal(n, name=f"{name}_{what}") for n, what in ((28, "first"), (28, "last"), (5, "place"))
        )
        here = Mux(self.beyond, Cat(self.beyond, self.span_first[28:]), 0)
        with m.If(start):
            m.d.sync += [first.eq(self.span_first), last.eq(self.span_last), place.eq(here)]
        apart = (self.span_first[:28] > last) | (self.span_last[:28] < first) | (here != place)
        return ~apart
