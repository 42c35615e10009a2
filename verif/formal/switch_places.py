"""Places of a switch's input: a slot is handed out only while it is free, freed once, and none is lost.

Anything may happen in every cycle: a slot taken, one returned by a flit that leaves, up to three by what is dropped, as
long as only slots are returned that are in use. Slots in use, or on their way back, and those free make up the pool.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Signal
from amaranth.lib import wiring

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.switch.input.places import Places
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "PlacesProof"]

_SLOTS, _QUEUES = 3, 2


class PlacesProof(wiring.Component):
    """Everything that an ingress may do with its slots."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.places = places = Places(_SLOTS, _QUEUES)
        without_reset(m)
        slots = range(_SLOTS)
        out = Signal(_SLOTS)  # handed out and not freed
        used = Signal(_SLOTS)  # handed out and not returned
        record = places.drop_record
        m.d.comb += [
            places.take.eq(AnySeq(1)),
            places.sent.eq(AnySeq(1)),
            places.sent_slot.eq(AnySeq(len(places.sent_slot.as_value()))),
            places.sent_queue.eq(AnySeq(1)),
            places.drop.eq(AnySeq(1)),
            record.eq(AnySeq(len(record.as_value()))),
            places.drop_queue.eq(AnySeq(1)),
        ]
        returned = [Signal(_SLOTS, name=f"returned_{n}") for n in range(UNIT_FLITS_MAX + 1)]
        sent = returned[UNIT_FLITS_MAX]
        with m.If(places.sent):
            m.d.comb += [sent.eq(1 << places.sent_slot.index), Assume((sent & used) != 0)]
        gone = sent
        for n in range(UNIT_FLITS_MAX):
            with m.If(places.drop & (record.flits > n)):
                m.d.comb += [returned[n].eq(1 << record.slots[n].index), Assume((returned[n] & used & ~gone) != 0)]
            gone = gone | returned[n]
        m.d.comb += Assume(~places.drop | ((record.flits != 0) & (record.flits <= UNIT_FLITS_MAX)))
        back = Signal(_SLOTS)
        taken, freed = Signal(_SLOTS), Signal(_SLOTS)
        m.d.comb += [
            back.eq(gone),
            taken.eq((places.take & places.stored) << places.index),
            freed.eq(places.freed << places.slot.index),
            Assert((taken & out) == 0),
            Assert((freed & ~out) == 0),
            Assert((freed & used & ~back) == 0),
        ]
        m.d.sync += [out.eq(out & ~freed | taken), used.eq(used & ~back | taken)]
        count = Array(bin(n).count("1") for n in range(1 << _SLOTS))[out]
        m.d.comb += [
            Assert(count + places.places.level == places.fresh),
            Assert((out == used) | (places.drops.level != 0)),
        ]
        again = Signal()
        with m.If(out.all()):
            m.d.sync += again.eq(1)
        m.d.comb += [
            Cover(again & (out == 0)),
            Cover(Cat(returned[n].any() for n in slots).all() & (places.fresh == _SLOTS)),
            Cover(again & places.take & ~places.stored & places.sent),
        ]
        return m


PROOFS = (
    Proof(
        name="switch_places",
        make=PlacesProof,
        engine="abc pdr",
        depth=1,
        cover_depth=16,
        fault_depth=10,
        # the other one names a wrong account, which is not a matter of slots
        faults=(
            "a slot that was sent is not used again",
            "a slot that was sent is freed twice",
            "the first flit of what is dropped is not freed",
        ),
        sources=("plexus_ram.sv",),
    ),
)
