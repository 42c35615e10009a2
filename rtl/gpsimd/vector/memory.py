"""Loads and stores of vectors: whole rows of local memory, or an element after the other."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.layouts import ACCESS, rows_ports
from rtl.gpsimd.vector.active import Active, body, bytes_of
from rtl.gpsimd.vector.layouts import VECTOR

__all__ = ["VectorMemory"]

_LOAD_MISALIGNED, _LOAD_ACCESS, _STORE_MISALIGNED, _STORE_ACCESS = 4, 5, 6, 7  # mcause


class _Stage(enum.Enum, shape=3):
    NONE = 0
    ROWS = 1
    READ = 2  # registers of an element
    ACCESS = 3
    ANSWER = 4


class VectorMemory(wiring.Component):
    """`start`: instruction `i`, legal and with `elements` of 1 << width bytes, begins; kept until `done`.

    rs1, rs2: of the instruction. mask: v0. group: logarithm of how many registers a field has. span: the first and the
    last byte, if they are in the order of memory; `in_rows`: between them is local memory only, and nothing that one
    has to see element by element. read, index_number, data_number: registers to be read; write: bytes `write_mask` of
    one become `write_data`. line_en: row `line_row` is read, `line` in the next cycle; row_en: bytes `row_mask` of row
    `row` are written; rows are counted from address 0. access, allowed, reply: an element each, as a scalar core's.
    moves: a row or an element; waits: for memory. done: with `traps`, `cause` and `address` if element `element` must
    not be touched; with `shrinks` if there the vector ends.
    Timing: a register of a row a cycle, and two or three more; an element takes 2 cycles, one that is loaded 3 or more.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.bits = exact_log2(32 * lanes)
        places = 4 * lanes
        super().__init__(
            {
                "start": In(1),
                "i": In(VECTOR),
                "rs1": In(32),
                "rs2": In(32),
                "size": In(2),
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
                "write_mask": Out(places),
                "line": In(32 * lanes),
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
        i = self.i
        bits, lanes = self.bits, self.lanes
        log_bytes = exact_log2(4 * lanes)
        stage = Signal(_Stage)
        m.submodules.active = active = Active(lanes)
        m.d.comb += [
            active.load.eq(stage == _Stage.NONE),
            active.elements.eq(body(m, self.elements, "body") & (self.mask | ~i.masked.replicate(32 * lanes))),
            active.size.eq(self.width),
        ]
        length = Signal(32)
        plain = ~i.strided & ~i.indexed & (i.fields == 0)
        aligned = Signal()
        m.d.comb += [
            length.eq(self.elements << self.width),
            self.span_first.eq(self.rs1),
            self.span_last.eq(self.rs1 + length - 1),
            aligned.eq(Mux(self.width == 2, self.rs1[:2] == 0, Mux(self.width == 1, ~self.rs1[0], 1))),
        ]
        by_rows = plain & aligned & (self.vstart == 0) & self.in_rows

        # rows: `row_count` reads or writes; `offset` is where a register begins in a row
        count, last = Signal(5), Signal(5)
        offset = self.rs1[:log_bytes]
        registers = Signal(4)
        shifted = Signal()
        m.d.comb += [
            registers.eq((length + (4 * lanes - 1)) >> log_bytes),
            shifted.eq(offset != 0),
            last.eq(registers - 1 + shifted),
        ]
        first_row = self.rs1 >> log_bytes
        going, went, place = Signal(), Signal(), Signal(5)
        begins = self.start & (stage == _Stage.NONE) & by_rows & (self.elements != 0)
        m.d.comb += going.eq(begins | ((stage == _Stage.ROWS) & (count <= last)))
        with m.If(going):
            m.d.sync += count.eq(count + 1)
        m.d.sync += [went.eq(going), place.eq(count)]
        before, before_bytes = Signal(32 * lanes), Signal(4 * lanes)  # of the row or register before
        now_bytes = Signal(4 * lanes)
        m.d.comb += now_bytes.eq(bytes_of(active.element, self.width, lanes))
        late = Mux(shifted, place - 1, place)
        above, above_bits = Signal(4 * lanes), Signal(32 * lanes)  # bytes of a row that the first of its registers has
        m.d.comb += [
            above.eq(Cat(offset <= n for n in range(4 * lanes))),
            above_bits.eq(Cat(bit.replicate(8) for bit in above)),
        ]
        joined, stored = Signal(32 * lanes), Signal(4 * lanes)
        m.d.comb += [
            joined.eq(Mux(shifted, (before & above_bits) | (self.line & ~above_bits), self.line)),
            stored.eq(Mux(place < registers, now_bytes, 0)),
        ]
        of_rows = _rotated(m, joined, offset, 8, "of_rows", right=True)
        turned = _rotated(m, self.data, offset, 8, "turned")
        turned_bytes = _rotated(m, stored, offset, 1, "turned_bytes")
        alone = (place == 0) | fault("a row that is stored lacks what turned around")
        loads = (stage == _Stage.ROWS) & went & ~i.store
        stores = (stage == _Stage.ROWS) & went & i.store
        m.d.comb += [
            self.line_en.eq(going & ~i.store),
            self.line_row.eq(first_row + count),
            self.row_en.eq(stores),
            self.row.eq(first_row + place),
            self.row_data.eq((turned & above_bits) | (before & ~above_bits)),
            self.row_mask.eq((turned_bytes & above) | Mux(alone, 0, before_bytes & ~above)),
        ]
        with m.If(went):
            m.d.sync += [before.eq(Mux(i.store, turned, self.line)), before_bytes.eq(turned_bytes)]
        of_row = loads & ~(shifted & (place == 0))

        # one element after the other
        element, field = Signal(bits + 1), Signal(3)
        distance = Signal(32)  # of the segment from rs1
        wanted = active.element[0] & (element >= self.vstart)
        index, address, misaligned = Signal(32), Signal(32), Signal()
        index_byte, data_byte = Signal(log_bytes), Signal(log_bytes)
        m.d.comb += [
            index_byte.eq(element << i.width),
            data_byte.eq(element << self.width),
            index.eq(_picked(self.index_data, index_byte, i.width)),
            address.eq(self.rs1 + Mux(i.indexed, index, distance) + (field << self.width)),
            misaligned.eq(Mux(self.width == 2, address[:2] != 0, (self.width == 1) & address[0])),
        ]
        value = Signal(32)
        m.d.comb += value.eq(_picked(self.data, data_byte, self.width))
        replicated = Mux(self.width == 2, value, Mux(self.width == 1, value[:16].replicate(2), value[:8].replicate(4)))
        bytes_ = Mux(self.width == 2, 0b1111, Mux(self.width == 1, 0b11 << address[:2], 1 << address[:2]))[:4]
        refused = (misaligned & ~fault("an element of a vector need not be aligned")) | ~self.allowed
        is_access = stage == _Stage.ACCESS
        more_fields, more = field != i.fields, element + 1 < self.elements
        step, skips = Signal(), Signal()  # to the next element, of the same segment or of another
        registers_before = (element << self.width) >> log_bytes
        group_registers = Mux(self.group <= 0, 1, (1 << self.group[:2])[:4])
        number = Signal(5)
        m.d.comb += [
            number.eq(i.vd + _times(field, group_registers) + registers_before[:3]),
            self.access.valid.eq(is_access & ~refused),
            self.access.payload.address.eq(address),
            self.access.payload.write.eq(i.store),
            self.access.payload.mask.eq(bytes_),
            self.access.payload.data.eq(replicated),
            skips.eq((stage == _Stage.READ) & ~wanted),
            step.eq(
                (is_access & self.access.ready & ~refused & i.store) | ((stage == _Stage.ANSWER) & self.reply_valid)
            ),
            self.index_number.eq(i.vs2 + ((element << i.width) >> log_bytes)[:3]),
            self.data_number.eq(Mux(stage == _Stage.READ, number, i.vd + count[:4])),
            self.read.eq(going | (stage == _Stage.READ)),
            self.address.eq(address),
            self.element.eq(element),
            self.cause.eq(
                Mux(
                    misaligned,
                    Mux(i.store, _STORE_MISALIGNED, _LOAD_MISALIGNED),
                    Mux(i.store, _STORE_ACCESS, _LOAD_ACCESS),
                )
            ),
        ]
        answer, spread = Signal(32), Signal(32)
        m.d.comb += answer.eq(self.reply >> (address[:2] << 3))
        m.d.comb += spread.eq(
            Mux(self.width == 2, answer, Mux(self.width == 1, answer[:16].replicate(2), answer[:8].replicate(4)))
        )
        element_bytes = Mux(self.width == 2, 0b1111, Mux(self.width == 1, 0b11, 1))
        with m.If(stage == _Stage.ROWS):
            m.d.comb += [
                self.write.eq(of_row),
                self.write_number.eq(i.vd + late[:3]),
                self.write_data.eq(of_rows),
                self.write_mask.eq(now_bytes),
            ]
        with m.Else():
            m.d.comb += [
                self.write.eq((stage == _Stage.ANSWER) & self.reply_valid),
                self.write_number.eq(number),
                self.write_data.eq(spread.replicate(lanes)),
                self.write_mask.eq((element_bytes << data_byte)[: 4 * lanes]),
            ]

        next_segment = skips | (step & ~more_fields)
        m.d.comb += active.next.eq(Mux(stage == _Stage.ROWS, of_row | (stores & (place < registers)), next_segment))
        m.d.comb += active.by_one.eq(stage != _Stage.ROWS)
        with m.If(stage == _Stage.NONE):
            m.d.sync += [element.eq(0), field.eq(0), distance.eq(0)]
        with m.Elif(next_segment):
            far = Mux(i.strided, self.rs2, (i.fields + 1) << self.width)
            m.d.sync += [element.eq(element + 1), field.eq(0), distance.eq(distance + far)]
        with m.Elif(step):
            m.d.sync += field.eq(field + 1)

        accepted = is_access & ~refused & self.access.ready
        m.d.comb += [
            self.moves.eq(going | accepted),
            self.waits.eq((is_access & ~refused & ~self.access.ready) | ((stage == _Stage.ANSWER) & ~self.reply_valid)),
        ]
        first_faults = refused & i.first_only & (element != 0)
        m.d.comb += [
            self.traps.eq(is_access & refused & ~first_faults),
            self.shrinks.eq(is_access & first_faults),
        ]
        with m.Switch(stage):
            with m.Case(_Stage.NONE):
                with m.If(self.start):
                    with m.If(self.elements <= self.vstart):
                        m.d.comb += self.done.eq(1)
                    with m.Elif(by_rows):
                        m.d.sync += stage.eq(_Stage.ROWS)
                    with m.Else():
                        m.d.sync += stage.eq(_Stage.READ)
            with m.Case(_Stage.ROWS):
                with m.If(went & (place == last)):
                    m.d.comb += self.done.eq(1)
            with m.Case(_Stage.READ):
                with m.If(wanted):
                    m.d.sync += stage.eq(_Stage.ACCESS)
                with m.Elif(~more):
                    m.d.comb += self.done.eq(1)
            with m.Case(_Stage.ACCESS):
                with m.If(refused):
                    m.d.comb += self.done.eq(1)
                with m.Elif(self.access.ready):
                    with m.If(~i.store):
                        m.d.sync += stage.eq(_Stage.ANSWER)
                    with m.Elif(more_fields | more):
                        m.d.sync += stage.eq(_Stage.READ)
                    with m.Else():
                        m.d.comb += self.done.eq(1)
            with m.Case(_Stage.ANSWER):
                with m.If(self.reply_valid):
                    with m.If(more_fields | more):
                        m.d.sync += stage.eq(_Stage.READ)
                    with m.Else():
                        m.d.comb += self.done.eq(1)
        with m.If(self.done):
            m.d.sync += [stage.eq(_Stage.NONE), count.eq(0)]
        return m


def _rotated(m: Module, value: Value, places: Value, unit: int, name: str, *, right: bool = False) -> Value:
    """`value` rotated by `places` units of `unit` bits, to the left if not to the right."""
    for n, bit in enumerate(places):
        turned = Signal(len(value), name=f"{name}_{n}")
        by = unit << n
        m.d.comb += turned.eq(Mux(bit, value.rotate_right(by) if right else value.rotate_left(by), value))
        value = turned
    return value


def _picked(register: Value, byte: Value, size: Value) -> Value:
    """The element of 1 << size bytes at `byte`, extended with zeros."""
    word = register.word_select(byte[2:], 32)
    half = Mux(byte[1], word[16:], word[:16])
    quarter = Mux(byte[0], half[8:], half[:8])
    return Mux(size == 2, word, Mux(size == 1, half, quarter))


def _times(field: Value, registers: Value) -> Value:
    """`field` times a power of two up to 8."""
    return Mux(registers[3], field << 3, Mux(registers[2], field << 2, Mux(registers[1], field << 1, field)))
