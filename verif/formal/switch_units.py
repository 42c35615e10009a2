"""Open units of a switch's input: every flit that was stored is in one record that is pushed or dropped, once.

The prover chooses what arrives and a slot. Flits stored, less those of all records that left, are those of the open
units and of a refused one that is about to be judged; the slot chosen is in one of these places if it was stored and
has not left, else in none; and no record leaves with it twice or without its having been stored.
"""

import dataclasses

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LINKS
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.input.open_units import OpenUnits
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "UnitsProof"]

_CFG = SwitchConfig(ports=4, link=dataclasses.replace(LINKS["x8"], classes=1, shared_flits=0))


class UnitsProof(wiring.Component):
    """Flits of any header, any number of beats and pauses between them, two at least; `clear` at any time."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.units = units = OpenUnits(_CFG)
        without_reset(m)
        queues, pool = _CFG.link.queues, _CFG.link.pool_flits
        inside = Signal()  # a flit is under way
        stores = Signal()
        m.d.comb += [
            units.valid.eq(AnySeq(1)),
            units.first.eq(~inside),
            units.last.eq(inside & AnySeq(1)),
            units.header.eq(AnySeq(32)),
            units.stored.eq(AnySeq(1)),
            units.index.eq(AnySeq(len(units.index))),
            units.route.eq(AnySeq(len(units.route))),
            units.refused.eq(AnySeq(1)),
            units.reads.eq(AnySeq(1)),
            units.clear.eq(AnySeq(1)),
            stores.eq(units.valid & units.first & units.stored),
            Assume(units.header.class_ == 0),
        ]
        with m.If(units.valid):
            m.d.sync += inside.eq(~units.last)

        chosen = Signal(range(pool))
        m.d.comb += chosen.eq(AnyConst(len(chosen)))

        def times(slots: data.View, flits: Value) -> Value:
            """How often the slot chosen is among the first `flits`."""
            total = (slots[0].index == chosen) & (flits > 0)
            for n in range(1, len(slots)):
                total = total + ((slots[n].index == chosen) & (flits > n))
            return total

        owned, comes, judged = Signal(), Signal(), Signal()
        there = Signal(range(4 * queues + 8))  # how often it is in what has not left
        open_flits = Signal(range(4 * queues + 8))
        m.d.comb += [
            judged.eq(units.judging & inside),
            comes.eq(stores & (units.index == chosen)),
            Assume(~(comes & owned)),
        ]
        places: Value = Mux(judged, times(units.record_kept.slots, units.record_kept.flits), 0)
        total: Value = Mux(judged, units.record_kept.flits, 0)
        for q in range(queues):
            port = units.units.read_port(domain="comb")
            m.d.comb += port.addr.eq(q)
            places = places + Mux(units.kept[q], times(port.data.slots, port.data.flits), 0)
            total = total + Mux(units.kept[q], port.data.flits, 0)
            m.d.comb += [Assert(~units.kept[q] | (port.data.flits != 0)), Assert(~units.stale[q] | units.kept[q])]
        m.d.comb += [there.eq(places), open_flits.eq(total), Assert(there == owned)]
        with m.If(judged):
            m.d.comb += Assert((units.record_kept.flits != 0) & (units.record_kept.flits <= UNIT_FLITS_MAX))

        leaves = Signal(4)
        flits = Signal(4)
        held = Signal.like(open_flits)
        pushed, dropped = units.record, units.drop_record
        m.d.comb += [
            leaves.eq(
                Mux(units.push, times(pushed.slots, pushed.flits), 0)
                + Mux(units.drop, times(dropped.slots, dropped.flits), 0)
            ),
            flits.eq(Mux(units.push, pushed.flits, 0) + Mux(units.drop, dropped.flits, 0)),
            Assert(leaves <= (owned | comes)),
            Assert(held == open_flits),
            Assert(~units.push | ((pushed.flits != 0) & (pushed.flits <= UNIT_FLITS_MAX))),
            Assert(~units.drop | ((dropped.flits != 0) & (dropped.flits <= UNIT_FLITS_MAX))),
        ]
        m.d.sync += [owned.eq((owned | comes) & (leaves == 0)), held.eq(held + stores - flits)]

        m.d.comb += [
            Cover(units.push & (pushed.flits == UNIT_FLITS_MAX)),
            Cover(units.push & units.drop),
            Cover(units.answered & (pushed.flits == 2)),
            Cover(units.drop & (units.stale != 0) & ~units.valid & (dropped.flits == 2)),
        ]
        return m


PROOFS = (
    Proof(
        name="switch_units",
        make=UnitsProof,
        depth=2,
        cover_depth=12,
        fault_depth=12,
        # those that lose a flit; what the others do wrong is not a matter of slots
        faults=(
            "a fifth flit is taken into the unit at a switch's input",
            "flits of a unit cut short by a head are forgotten",
        ),
    ),
)
