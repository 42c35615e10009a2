"""Lists of a switch's input: every unit that enters leaves once, from its list, in its turn, as it was.

Beside the unit stand, for each slot, whether a unit begins there, in which list, how many are before it and of how many
flits it is. The memories must say the same in every cycle: heads, tails and links name these units and no others, so no
slot is in two lists or in a list that does not reach it. Records are followed for one slot that the prover chooses.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.switch.input.unit_lists import UnitLists
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "ListsProof"]

_OUTPUTS, _QUEUES, _SLOTS, _CAP = 2, 2, 4, 3
_LISTS = _OUTPUTS * _QUEUES


def _sum(values: list[Value]) -> Value:
    """Of single bits or small numbers; not of none."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


class ListsProof(wiring.Component):
    """Anything may be pushed that is not in a list, and any list popped, in every cycle."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lists = lists = UnitLists(_OUTPUTS, _QUEUES, _SLOTS, _CAP)
        without_reset(m)
        slots = range(_SLOTS)
        inside = [Signal(name=f"inside_{s}") for s in slots]
        where = [Signal(range(_LISTS), name=f"where_{s}") for s in slots]
        place = [Signal(range(_SLOTS), name=f"place_{s}") for s in slots]
        flits = [Signal(range(UNIT_FLITS_MAX + 1), name=f"flits_{s}") for s in slots]
        counts = [Signal(range(_SLOTS + 1), name=f"count_{n}") for n in range(_LISTS)]
        m.d.comb += [c.eq(_sum([i & (w == n) for i, w in zip(inside, where)])) for n, c in enumerate(counts)]
        held = Signal(range(_SLOTS * UNIT_FLITS_MAX + 1))
        m.d.comb += held.eq(_sum([Mux(i, f, 0) for i, f in zip(inside, flits)]))

        # What may happen
        first, size = lists.record.slots[0].index, lists.record.flits
        into, out_of = Signal(range(_LISTS)), Signal(range(_LISTS))
        m.d.comb += [
            lists.push.eq(AnySeq(1)),
            lists.record.eq(AnySeq(len(lists.record.as_value()))),
            into.eq(AnySeq(2)),
            out_of.eq(AnySeq(2)),
            Cat(lists.push_queue, lists.push_output).eq(into),
            Cat(lists.pop_queue, lists.pop_output).eq(out_of),
            lists.pop.eq(AnySeq(1)),
        ]
        with m.If(lists.push):
            m.d.comb += [
                Assume(~Array(inside)[first]),
                Assume((size != 0) & (held + size <= _SLOTS)),
            ]

        # What then must be
        oldest = [inside[s] & (where[s] == out_of) & (place[s] == 0) for s in slots]
        left = Signal(range(_SLOTS + 1))
        m.d.comb += left.eq(Array(counts)[into] - (lists.taken & (into == out_of)))
        for s in slots:
            with m.If(lists.taken & (where[s] == out_of)):
                m.d.sync += place[s].eq(place[s] - 1)
                with m.If(place[s] == 0):
                    m.d.sync += inside[s].eq(0)
            with m.If(lists.push & (first == s)):
                m.d.sync += [inside[s].eq(1), where[s].eq(into), place[s].eq(left), flits[s].eq(size)]
        m.d.comb += Assert(lists.taken == (lists.pop & (Array(counts)[out_of] != 0)))
        with m.If(lists.taken):
            m.d.comb += Assert(Array(oldest)[lists.popped.slots[0].index])

        # The memories say the same
        named = Array(inside)
        for n in range(_LISTS):
            head, tail = (memory.read_port(domain="comb") for memory in (lists.heads, lists.tails))
            m.d.comb += [head.addr.eq(n), tail.addr.eq(n), Assert(lists.shown[n] == (counts[n] != 0))]
            stays = counts[n] != (lists.taken & (out_of == n))
            m.d.comb += Assert(lists.lists[n] == stays)
            for port, at in ((head, 0), (tail, counts[n] - 1)):
                with m.If(counts[n] != 0):
                    m.d.comb += [
                        Assert(named[port.data] & (Array(where)[port.data] == n)),
                        Assert(Array(place)[port.data] == at),
                    ]
        for s in slots:
            link, record = lists.nexts.read_port(domain="comb"), lists.records.read_port(domain="comb")
            m.d.comb += [link.addr.eq(s), record.addr.eq(s)]
            with m.If(inside[s]):
                m.d.comb += [
                    Assert(place[s] < Array(counts)[where[s]]),
                    Assert((record.data.flits == flits[s]) & (record.data.slots[0].index == s)),
                    Assert(flits[s] != 0),
                ]
                for other in range(s):
                    same = inside[other] & (where[other] == where[s])
                    m.d.comb += Assert(~same | (place[other] != place[s]))
                with m.If(place[s] + 1 < Array(counts)[where[s]]):
                    m.d.comb += [
                        Assert(named[link.data] & (Array(where)[link.data] == where[s])),
                        Assert(Array(place)[link.data] == place[s] + 1),
                    ]

        # Sums
        width = len(lists.counts) // _OUTPUTS
        for output in range(_OUTPUTS):
            waits = Signal(range(_SLOTS * UNIT_FLITS_MAX + 1), name=f"waits_{output}")
            here = [Mux(inside[s] & (where[s] // _QUEUES == output), flits[s], 0) for s in slots]
            m.d.comb += [waits.eq(_sum(here)), Assert(lists.counts.word_select(output, width) == waits)]
            remain = Signal(range(_SLOTS + 1), name=f"remain_{output}")
            goes = lists.taken & (out_of // _QUEUES == output)
            m.d.comb += remain.eq(waits - Mux(goes, lists.popped.flits, 0))
            m.d.comb += Assert(lists.lengths[output] == Mux(remain > _CAP, _CAP, remain))
        names: Value = Mux(inside[0], where[0], 0)
        for s in slots[1:]:
            names = names ^ Mux(inside[s], where[s], 0)
        m.d.comb += [
            Assert(held <= _SLOTS),
            Assert(lists.units == _sum(list(inside))),
            Assert(lists.flits == held),
            Assert(Cat(lists.alone_queue, lists.alone_output) == names),
        ]

        # The record of one slot
        chosen = Signal(range(_SLOTS))
        kept = Signal.like(lists.record)
        m.d.comb += chosen.eq(AnyConst(2))
        with m.If(lists.push & (first == chosen)):
            m.d.sync += kept.eq(lists.record)
        record = lists.records.read_port(domain="comb")
        m.d.comb += record.addr.eq(chosen)
        with m.If(named[chosen]):
            m.d.comb += Assert(record.data.as_value() == kept.as_value())
        with m.If(lists.taken & (lists.popped.slots[0].index == chosen)):
            m.d.comb += Assert(lists.popped.as_value() == kept.as_value())

        m.d.comb += [
            Cover(counts[1] == 4),
            Cover((counts[0] == 2) & (counts[3] == 2) & lists.taken),
            Cover(lists.push & lists.taken & (into == out_of) & (counts[2] == 1)),
        ]
        return m


PROOFS = (
    Proof(
        name="switch_lists",
        make=ListsProof,
        depth=1,
        cover_depth=8,
        fault_depth=10,
        faults=(
            "the tail of a list is not updated",
            "a list that became empty still shows a unit",
            "a unit that comes while the last of its list goes is linked behind that",
            "lengths of the lists keep what left",
        ),
    ),
)
