"""What there is to know of a vector instruction before it begins: how many elements, which registers."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.vector.active import body
from rtl.gpsimd.vector.configuration import setting
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Second, log_of_whole, unread

__all__ = ["Intake"]

_LOG = signed(5)


class Intake(wiring.Component):
    """Of instruction `i`, legal with `now`, x[rs1] `x` and v0 `mask`; first, second, to: of Legal.

    elements, of 1 << size bytes; active: those that count; carries: v0 if it is an operand. uses_mask: v0 matters.
    empty: nothing is to do. scalar: what stands beside vs2 if that is no vector. streams: passes are elementwise, and
    a later instruction may begin behind the last; plain: pass n reads and writes registers n of its groups.
    registers: of memory, from vd on, and from vs2 on if there are indices, of the same width. reads, writes: sets of
    registers, or of more than it uses, where it does not stream.
    Timing: combinational.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.bits = exact_log2(32 * lanes)
        super().__init__(
            {
                "i": In(VECTOR),
                "now": In(setting(lanes)),
                "x": In(32),
                "mask": In(32 * lanes),
                "first": In(_LOG),
                "second": In(_LOG),
                "to": In(_LOG),
                "size": Out(2),
                "elements": Out(self.bits + 1),
                "active": Out(32 * lanes),
                "carries": Out(32 * lanes),
                "uses_mask": Out(1),
                "empty": Out(1),
                "scalar": Out(32),
                "streams": Out(1),
                "plain": Out(1),
                "registers": Out(4),
                "reads": Out(32),
                "writes": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, now, lanes = self.i, self.now, self.lanes
        operands, kind = i.operands, i.kind
        bits, log_bytes = 32 * lanes, exact_log2(4 * lanes)
        memory = kind == Kind.MEMORY
        counts = (kind == Kind.COUNT) | (kind == Kind.MOVE_OUT)  # for rd, of no elements too
        width, whole = Signal(2), Signal(range(8 * 4 * lanes + 1))
        doubled = (operands.widens_first | operands.widens_second | operands.narrows) & ~operands.swaps
        m.d.comb += [
            width.eq(Mux(memory, Mux(i.indexed, now.size, i.width), 0)),
            whole.eq(((i.whole + 1) << log_bytes) >> width),
        ]
        with m.If(i.is_whole):
            m.d.comb += [self.size.eq(width), self.elements.eq(whole)]
        with m.Elif(memory):
            m.d.comb += [self.size.eq(width), self.elements.eq(Mux(i.is_mask, (now.vl + 7) >> 3, now.vl))]
        with m.Else():
            m.d.comb += [self.size.eq(now.size + doubled), self.elements.eq(Mux(i.scalar_result, now.vl != 0, now.vl))]
        there = body(m, self.elements, "body")
        tail = fault("the tail of a vector is written")
        unmasked = ~i.masked | i.carry_in | fault("a mask of vectors is not looked at")
        m.d.comb += [
            self.active.eq(Mux(unmasked, there | tail.replicate(bits), (there | tail.replicate(bits)) & self.mask)),
            self.carries.eq(Mux(i.masked, self.mask, 0)),
            self.uses_mask.eq(i.masked),
            self.empty.eq((self.elements <= now.vstart) & ~counts),
            self.registers.eq(((self.elements << self.size) + (4 * lanes - 1)) >> log_bytes),
        ]
        with m.Switch(i.second):
            with m.Case(Second.IMMEDIATE):
                m.d.comb += self.scalar.eq(i.vs1.as_signed())
            with m.Case(Second.UNSIGNED):
                m.d.comb += self.scalar.eq(i.vs1)
            with m.Default():
                m.d.comb += self.scalar.eq(self.x)

        wide = operands.widens_first | operands.widens_second | operands.quarters | operands.narrows
        m.d.comb += [
            self.streams.eq((kind == Kind.LANES) & ~i.mask_result),
            self.plain.eq(self.streams & ~wide),
        ]
        first, second, to = Signal(32), Signal(32), Signal(32)
        of_first = Mux(i.is_whole, log_of_whole(i.whole), self.first)
        of_to = Mux(i.is_whole, log_of_whole(i.whole), self.to)
        m.d.comb += [
            first.eq(_group(i.vs2, Mux(self.streams, of_first, 3))),
            second.eq(_group(i.vs1, Mux(self.streams, self.second, 3))),
            to.eq(_group(i.vd, Mux(self.streams, of_to, 3))),
        ]
        moved, indices, all_of_them = Signal(32), Signal(32), Signal(8)
        m.d.comb += [
            all_of_them.eq((1 << self.registers) - 1),
            moved.eq(all_of_them << i.vd),
            indices.eq(Mux(i.indexed, all_of_them << i.vs2, 0)),
        ]
        with m.If(memory):
            m.d.comb += [self.reads.eq(Mux(i.store, moved, 0) | indices), self.writes.eq(Mux(i.store, 0, moved))]
        with m.Else():
            has_second = (i.second == Second.VECTOR) | ~self.streams
            reads_to = operands.accumulates | ~self.streams
            m.d.comb += [
                self.reads.eq(Mux(unread(i), 0, first) | Mux(has_second, second, 0) | Mux(reads_to, to, 0)),
                self.writes.eq(to),
            ]
        return m


def _group(number: Value, log: Value) -> Value:
    """The registers of a group."""
    ones = Mux(log <= 0, 1, Mux(log == 1, 3, Mux(log == 2, 15, 255)))
    return (ones << number)[:32]
