"""Loads and stores of words of local memory at an address each: a register of them a cycle, if their banks differ."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.gpsimd.layouts import look_ports
from rtl.gpsimd.vector.active import Active

__all__ = ["VectorLookups"]


class VectorLookups(wiring.Component):
    """`start` while not `busy`: words at `base` + index, or with `strided` at `base` and every `stride` bytes, are
    loaded to or stored from `registers` registers from `vd` on, elements that are `active`; indices are in as many from
    `vs2` on.

    may: registers `wants_read` are there, and `wants_write` free. reads: registers `index_number` and `data_number` are
    read, and `index` and `data` in the next cycle, until the next. write: `write_number`, `write_data`, `write_mask`.
    done: the last word has been asked for; or `refuses`: elements from `element` on were not touched, for one of them
    must not go this way. closes: with the last write. moves: a register is through. look_*: of look_ports.
    Timing: a register a cycle, if its words are in different banks, from the second cycle after `start` on; loaded
    words are written in the next.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "start": In(1),
                "base": In(32),
                "stride": In(32),
                "strided": In(1),
                "store": In(1),
                "registers": In(4),
                "vd": In(5),
                "vs2": In(5),
                "active": In(bits),
                "busy": Out(1),
                "may": In(1),
                "wants_read": Out(32),
                "wants_write": Out(32),
                "reads": Out(1),
                "index_number": Out(5),
                "data_number": Out(5),
                "index": In(bits),
                "data": In(bits),
                "write": Out(1),
                "write_number": Out(5),
                "write_data": Out(bits),
                "write_mask": Out(4 * lanes),
                "done": Out(1),
                "refuses": Out(1),
                "element": Out(exact_log2(bits)),
                "closes": Out(1),
                "moves": Out(1),
                **look_ports(lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.active = active = Active(lanes)
        base, stride, strided, store = Signal(32), Signal(32), Signal(), Signal()
        vd, vs2, last = Signal(5), Signal(5), Signal(3)
        count, place = Signal(4), Signal(3)  # registers: of the next to be read, and of the one that was
        went, fresh = Signal(), Signal()
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                base.eq(self.base),
                stride.eq(self.stride),
                strided.eq(self.strided),
                store.eq(self.store),
                vd.eq(self.vd),
                vs2.eq(self.vs2),
                last.eq(self.registers - 1),
                count.eq(0),
            ]
        with m.Elif(self.closes):
            m.d.sync += self.busy.eq(0)
        index, data = (vs2 + count)[:5], (vd + count)[:5]
        through = Signal()
        m.d.comb += [
            self.index_number.eq(index),
            self.data_number.eq(data),
            self.wants_read.eq(Mux(strided, 0, 1 << index) | Mux(store, 1 << data, 0)),
            self.wants_write.eq(Mux(store, 0, 1 << data)),
            self.reads.eq(self.busy & (count <= last) & self.may & (~went | through) & ~self.refuses & ~self.closes),
        ]
        with m.If(self.reads):
            m.d.sync += [went.eq(1), fresh.eq(1), place.eq(count), count.eq(count + 1)]
        with m.Else():
            m.d.sync += fresh.eq(0)
            with m.If(through | self.refuses):
                m.d.sync += went.eq(0)
        with m.If(through & strided):  # `base` is that of a register's first element
            m.d.sync += base.eq(base + (stride << exact_log2(lanes)))

        # the words of a register, as their banks allow
        left, pending, wanted = Signal(lanes), Signal(lanes), Signal(lanes)
        bad = Signal()
        m.d.comb += [
            active.load.eq(self.start),
            active.elements.eq(self.active),
            active.size.eq(2),
            active.next.eq(through),
            wanted.eq(active.element[:lanes]),
            pending.eq(Mux(fresh, wanted, left)),
            bad.eq((wanted & ~self.look_allowed).any()),
            self.refuses.eq(went & fresh & bad),
            self.look_en.eq(Mux(went & ~self.refuses, pending, 0)),
            self.look_write.eq(store),
            self.look_data.eq(self.data),
            self.look_address.eq(
                Cat((base + Mux(strided, _times(stride, n), self.index.word_select(n, 32)))[:32] for n in range(lanes))
            ),
            through.eq(went & ~self.refuses & ~(pending & ~self.look_ready).any()),
            self.moves.eq(through),
            self.done.eq(through & (place == last)),
            self.element.eq(place << exact_log2(lanes)),
        ]
        came, number = Signal(lanes), Signal(5)
        m.d.sync += [
            left.eq(pending & ~self.look_ready),
            came.eq(Mux(store, 0, self.look_en & self.look_ready)),
            number.eq((vd + place)[:5]),
            self.closes.eq(self.done | self.refuses),
        ]
        m.d.comb += [
            self.write.eq(came.any()),
            self.write_number.eq(number),
            self.write_data.eq(self.look_found),
            self.write_mask.eq(Cat(bit.replicate(4) for bit in came)),
        ]
        return m


def _times(value: Value, times: int) -> Value:
    """`value` times a small number."""
    total: Value = value[:0]
    for n in range(times.bit_length()):
        if times >> n & 1:
            total = total + (value << n)
    return total[:32]
