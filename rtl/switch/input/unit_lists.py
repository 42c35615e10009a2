"""Lists of complete units in a pool, one for each (output, queue)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.fault import fault
from rtl.switch.input.unit_record import record_layout

__all__ = ["UnitLists"]


class UnitLists(wiring.Component):
    """`push`: `record` becomes the youngest unit of its list; `pop`: `popped` (same cycle) was the oldest of its list.

    Bit output * queues + queue of `lists` and the flits by output in `lengths` (they stop at `cap`) are what remains
    after the pop of this cycle, without its push. `taken`: the list popped had a unit; else nothing happens.
    `units` wait before this cycle, of `flits` flits; if it is one, it is in the list of `alone_output`, `alone_queue`.
    A unit is named by its first slot: its record and the first slot of the next unit lie there.
    """

    def __init__(self, outputs: int, queues: int, pool_flits: int, cap: int):
        self.outputs = outputs
        self.queues = queues
        self.pool_flits = pool_flits
        self.cap = cap
        index_bits = bits_for(pool_flits - 1)
        record = record_layout(pool_flits)
        # seen by proofs too
        self.heads = Memory(shape=index_bits, depth=outputs * queues, init=[])
        self.tails = Memory(shape=index_bits, depth=outputs * queues, init=[])
        self.nexts = Memory(shape=index_bits, depth=1 << index_bits, init=[])
        self.records = Memory(shape=record, depth=1 << index_bits, init=[])
        self.shown = Signal(outputs * queues)
        self.counts = Signal(outputs * bits_for(pool_flits))
        super().__init__(
            {
                "push": In(1),
                "push_output": In(range(outputs)),
                "push_queue": In(range(queues)),
                "record": In(record),
                "pop": In(1),
                "pop_output": In(range(outputs)),
                "pop_queue": In(range(queues)),
                "taken": Out(1),
                "popped": Out(record),
                "lists": Out(outputs * queues),
                "lengths": Out(data.ArrayLayout(range(cap + 1), outputs)),
                "units": Out(range(pool_flits + 1)),
                "flits": Out(range(pool_flits + 1)),
                "alone_output": Out(range(outputs)),
                "alone_queue": Out(range(queues)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lists = self.outputs * self.queues
        m.submodules.heads, m.submodules.tails = self.heads, self.tails
        m.submodules.nexts, m.submodules.records = self.nexts, self.records
        moved_head, new_head = self.heads.write_port(), self.heads.write_port()
        head, tail = self.heads.read_port(domain="comb"), self.tails.read_port(domain="comb")
        link, after = self.nexts.write_port(), self.nexts.read_port(domain="comb")
        new_tail, old_tail = self.tails.write_port(), self.tails.read_port(domain="comb")
        keep, unit = self.records.write_port(), self.records.read_port(domain="comb")

        # The oldest unit of a list leaves
        out_of = Signal(range(lists))
        only = Signal()
        m.d.comb += [
            out_of.eq(self.pop_output * self.queues + self.pop_queue),
            head.addr.eq(out_of),
            tail.addr.eq(out_of),
            after.addr.eq(head.data),
            unit.addr.eq(head.data),
            self.popped.eq(unit.data),
            only.eq(head.data == tail.data),
            self.taken.eq(self.pop & self.shown.bit_select(out_of, 1)),
            moved_head.en.eq(self.taken & ~only),
            moved_head.addr.eq(out_of),
            moved_head.data.eq(after.data),
            self.lists.eq(
                self.shown & ~((self.taken & only & ~fault("a list that became empty still shows a unit")) << out_of)
            ),
        ]

        # A unit becomes the youngest of its list, or the only one
        into = Signal(range(lists))
        first = self.record.slots[0].index
        alone = Signal()
        m.d.comb += [
            into.eq(self.push_output * self.queues + self.push_queue),
            alone.eq(
                ~Mux(
                    fault("a unit that comes while the last of its list goes is linked behind that"),
                    self.shown,
                    self.lists,
                ).bit_select(into, 1)
            ),
            old_tail.addr.eq(into),
            new_head.en.eq(self.push & alone),
            new_head.addr.eq(into),
            new_head.data.eq(first),
            link.en.eq(self.push & ~alone),
            link.addr.eq(old_tail.data),
            link.data.eq(first),
            new_tail.en.eq(self.push & (alone | ~fault("the tail of a list is not updated"))),
            new_tail.addr.eq(into),
            new_tail.data.eq(first),
            keep.en.eq(self.push),
            keep.addr.eq(first),
            keep.data.eq(self.record),
        ]
        m.d.sync += self.shown.eq(self.lists | self.push << into)

        # One wide word of counters: none of them goes below 0 or above the pool, so nothing is carried over
        width = bits_for(self.pool_flits)
        counts = self.counts
        left = Signal.like(counts)
        came = Signal.like(self.record.flits)
        went = Signal.like(came)
        m.d.comb += [
            came.eq(Mux(self.push, self.record.flits, 0)),
            went.eq(Mux(self.taken, self.popped.flits, 0)),
            left.eq(counts - (Mux(fault("lengths of the lists keep what left"), 0, went) << (self.pop_output * width))),
        ]
        m.d.sync += [
            counts.eq(left + (came << (self.push_output * width))),
            self.units.eq(self.units + self.push - self.taken),
            self.flits.eq(self.flits + came - went),
        ]
        for output in range(self.outputs):
            length = left.word_select(output, width)
            m.d.comb += self.lengths[output].eq(Mux(length > self.cap, self.cap, length))

        # Where a unit that is alone waits: the sum modulo 2 of the names of all lists, once for each unit in them
        for sum_, pushed, popped in (
            (self.alone_output, self.push_output, self.pop_output),
            (self.alone_queue, self.push_queue, self.pop_queue),
        ):
            m.d.sync += sum_.eq(sum_ ^ Mux(self.push, pushed, 0) ^ Mux(self.taken, popped, 0))
        return m
