"""Loads and stores of vectors an element after the other, as a scalar core would."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.layouts import ACCESS
from rtl.gpsimd.vector.layouts import VECTOR

__all__ = ["VectorElements"]

_LOAD_MISALIGNED, _LOAD_ACCESS, _STORE_MISALIGNED, _STORE_ACCESS = 4, 5, 6, 7  # mcause


class _Stage(enum.Enum, shape=2):
    NONE = 0
    READ = 1  # registers of an element
    ACCESS = 2
    ANSWER = 3


class VectorElements(wiring.Component):
    """`begin`: what VectorMemory calls `start`, whose other inputs are these. wanted: the element's mask.

    read: registers `index_number` and `data_number` are read, and there in the next cycle, until the next read. next:
    to the next element. write: an element of register `data_number`. access, allowed, reply: a scalar core's. moves: an
    element; waits: for memory. done: with `traps`, `cause` and `address` if element `element` must not be touched; with
    `shrinks` if there the vector ends.
    Timing: 1 cycle for an element that is not wanted, 2 to store, 3 to load, and those of memory.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.bits = exact_log2(32 * lanes)
        super().__init__(
            {
                "begin": In(1),
                "i": In(VECTOR),
                "rs1": In(32),
                "rs2": In(32),
                "elements": In(self.bits + 1),
                "vstart": In(self.bits),
                "width": In(2),
                "group": In(signed(5)),
                "wanted": In(1),
                "next": Out(1),
                "read": Out(1),
                "index_number": Out(5),
                "data_number": Out(5),
                "index_data": In(32 * lanes),
                "data": In(32 * lanes),
                "write": Out(1),
                "write_data": Out(32 * lanes),
                "write_mask": Out(4 * lanes),
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
        i, width, access = self.i, self.width, self.access
        log_bytes = exact_log2(4 * self.lanes)
        stage = Signal(_Stage)
        element, field, distance = Signal(self.bits + 1), Signal(3), Signal(32)  # distance: of the segment from rs1

        # where it is, in registers and in memory
        index, address = Signal(32), self.address
        index_byte, data_byte = Signal(log_bytes), Signal(log_bytes)
        group_registers = Mux(self.group <= 0, 1, (1 << self.group[:2])[:4])
        m.d.comb += [
            index_byte.eq(element << i.width),
            data_byte.eq(element << width),
            index.eq(_picked(self.index_data, index_byte, i.width)),
            address.eq((self.rs1 + Mux(i.indexed, index, distance) + (field << width))[:32]),
            self.index_number.eq((i.vs2 + ((element << i.width) >> log_bytes)[:3])[:5]),
            self.data_number.eq((i.vd + _times(field, group_registers) + ((element << width) >> log_bytes)[:3])[:5]),
            self.element.eq(element[: self.bits]),
            self.read.eq(stage == _Stage.READ),
        ]

        # an access
        value, misaligned, refused, in_access, answered = Signal(32), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            misaligned.eq(Mux(width == 2, address[:2] != 0, (width == 1) & address[0])),
            refused.eq((misaligned & ~fault("an element of a vector need not be aligned")) | ~self.allowed),
            in_access.eq(stage == _Stage.ACCESS),
            value.eq(_picked(self.data, data_byte, width)),
            access.valid.eq(in_access & ~refused),
            access.payload.address.eq(address),
            access.payload.write.eq(i.store),
            access.payload.mask.eq((_ones(width) << address[:2])[:4]),
            access.payload.data.eq(_spread(value, width)),
            answered.eq((stage == _Stage.ANSWER) & self.reply_valid),
            self.moves.eq(access.valid & access.ready),
            self.waits.eq((access.valid & ~access.ready) | ((stage == _Stage.ANSWER) & ~self.reply_valid)),
            self.cause.eq(
                Mux(
                    misaligned,
                    Mux(i.store, _STORE_MISALIGNED, _LOAD_MISALIGNED),
                    Mux(i.store, _STORE_ACCESS, _LOAD_ACCESS),
                )
            ),
        ]
        answer, in_all_places = Signal(32), Signal(32)
        m.d.comb += [
            answer.eq((self.reply >> (address[:2] << 3))[:32]),
            in_all_places.eq(_spread(answer, width)),
            self.write.eq(answered),
            self.write_data.eq(in_all_places.replicate(self.lanes)),
            self.write_mask.eq((_ones(width) << data_byte)[: 4 * self.lanes]),
        ]

        # the next
        more_fields, more, step, skips = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            more_fields.eq(field != i.fields),
            more.eq(element + 1 < self.elements),
            skips.eq(self.read & ~(self.wanted & (element >= self.vstart))),
            step.eq((self.moves & i.store) | answered),
            self.next.eq(skips | (step & ~more_fields)),
        ]
        with m.If(stage == _Stage.NONE):
            m.d.sync += [element.eq(0), field.eq(0), distance.eq(0)]
        with m.Elif(self.next):
            far = Mux(i.strided, self.rs2, (i.fields + 1) << width)
            m.d.sync += [element.eq(element + 1), field.eq(0), distance.eq(distance + far)]
        with m.Elif(step):
            m.d.sync += field.eq(field + 1)

        ends_here = refused & i.first_only & (element != 0)
        m.d.comb += [
            self.traps.eq(in_access & refused & ~ends_here),
            self.shrinks.eq(in_access & ends_here),
            self.done.eq((in_access & refused) | (skips & ~more) | (step & ~more_fields & ~more)),
        ]
        with m.If(self.done):
            m.d.sync += stage.eq(_Stage.NONE)
        with m.Elif(self.begin | step):
            m.d.sync += stage.eq(_Stage.READ)
        with m.Elif(self.read & ~skips):
            m.d.sync += stage.eq(_Stage.ACCESS)
        with m.Elif(self.moves):
            m.d.sync += stage.eq(_Stage.ANSWER)
        return m


def _ones(width: Value) -> Value:
    """The bytes of an element, from bit 0 on."""
    return Mux(width == 2, 0b1111, Mux(width == 1, 0b11, 1))


def _spread(value: Value, width: Value) -> Value:
    """An element in all places of a word."""
    return Mux(width == 2, value, Mux(width == 1, value[:16].replicate(2), value[:8].replicate(4)))


def _picked(register: Value, byte: Value, width: Value) -> Value:
    """The element of 1 << width bytes at `byte`, extended with zeros."""
    word = register.word_select(byte[2:], 32)
    half = Mux(byte[1], word[16:], word[:16])
    quarter = Mux(byte[0], half[8:], half[:8])
    return Mux(width == 2, word, Mux(width == 1, half, quarter))


def _times(field: Value, registers: Value) -> Value:
    """`field` times a power of two up to 8."""
    return Mux(registers[3], field << 3, Mux(registers[2], field << 2, Mux(registers[1], field << 1, field)))
