"""Complete: a descriptor ends when all its rows have committed, or with its refusal, in its ring's order, and soon.

One ring of two slots, the others, those of queues, empty; up to six rows of a descriptor. Rows come from any mover, and
commit a cycle after they left at the earliest; the signal may be refused. One that left with a bad index has none.
"""

import dataclasses

from amaranth.asserts import AnySeq
from amaranth.hdl import Array, Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.contract.config import named
from rtl.dma.rings.complete import Complete
from verif.formal.free import drive, ports
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "CompleteProof"]

_TINY = named("tiny")
_CFG = dataclasses.replace(
    _TINY,
    dma=dataclasses.replace(_TINY.dma, rings=1, ring_depth=2),
    gpsimd=dataclasses.replace(_TINY.gpsimd, enabled=False),
)
_SLOTS, _MOST, _SOON = 2, 6, 3


class CompleteProof(wiring.Component):
    """Counts of its own for each slot: rows that have left, and that have committed."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        complete = Complete(_CFG)
        seen = [[store.read_port(domain="comb") for _ in range(_SLOTS)] for store in complete.counts]
        m.submodules.complete = complete
        without_reset(m)
        for _, member, port in ports(complete):
            if not member.is_signature and member.flow == wiring.In:
                drive(m, port)
        m.d.comb += [Assume(~complete.start), complete.signal.ready.eq(AnySeq(1))]

        head = Signal(range(_SLOTS))
        under_way = [Signal(name=f"under_way{s}") for s in range(_SLOTS)]
        whole = [Signal(name=f"whole{s}") for s in range(_SLOTS)]  # refused, or its last row has left
        refused = [Signal(name=f"refused{s}") for s in range(_SLOTS)]
        left = [Signal(3, name=f"rows_left{s}") for s in range(_SLOTS)]
        came = [Signal(3, name=f"rows_came{s}") for s in range(_SLOTS)]
        m.d.comb += Assume(~complete.opened[0] | complete.room[0])
        for done in complete.done:
            for name in ("slot", "read_error", "write_error"):
                drive(m, getattr(done.payload, name))
            m.d.comb += done.valid.eq(AnySeq(1))
        m.d.comb += [
            Assume(~complete.opened[1:].any()),
            Assume(~complete.issued | (complete.issued_slot < _SLOTS)),
            Assume(~complete.bad | complete.issued),
            Assume(~complete.report | (complete.report_slot < _SLOTS)),
            *(Assume(~done.valid | (done.payload.slot < _SLOTS)) for done in complete.done),
            *(Assert(used == 0) for used in complete.used[1:]),
        ]
        for s in range(_SLOTS):
            mine = complete.issued & (complete.issued_slot == s)
            refuses = complete.report & complete.refused & (complete.report_slot == s)
            offers = sum(done.valid & (done.payload.slot == s) for done in complete.done)
            takes = Signal(name=f"takes{s}")
            bad = Signal(name=f"bad{s}")
            opens = complete.opened[0] & (complete.tail[0] == s)
            closes = complete.closes & (complete.at == s)
            m.d.comb += [
                takes.eq(sum(d.valid & d.ready & (d.payload.slot == s) for d in complete.done) != 0),
                Assume(~mine | (under_way[s] & ~whole[s] & (left[s] < _MOST))),
                Assume(~refuses | (under_way[s] & ~whole[s] & (left[s] == 0) & ~mine)),
                Assume(offers <= left[s] - came[s]),
                Assert(~(complete.signal.valid & (complete.at == s)) | ~bad),
                Assert(~closes | (under_way[s] & whole[s] & (left[s] == came[s]) & (head == s))),
            ]
            with m.If(opens):
                m.d.sync += [
                    under_way[s].eq(1),
                    bad.eq(0),
                    whole[s].eq(0),
                    refused[s].eq(0),
                    left[s].eq(0),
                    came[s].eq(0),
                ]
            with m.Else():
                m.d.sync += [
                    left[s].eq(left[s] + mine),
                    came[s].eq(came[s] + takes),
                    bad.eq(bad | (mine & complete.bad)),
                    whole[s].eq(whole[s] | (mine & complete.last) | refuses),
                    refused[s].eq(refused[s] | refuses),
                    under_way[s].eq(under_way[s] & ~closes),
                ]
            # for the induction
            for reads in seen:
                m.d.comb += reads[s].addr.eq(s)
            m.d.comb += Assert(under_way[s] | (left[s] == came[s]))
            with m.If(under_way[s]):
                m.d.comb += [
                    Assert(complete.bad_index[0][s] == bad),
                    Assert(complete.left[0][s] == (left[s] != 0)),
                    Assert(complete.came[0][s] == (came[s] != 0)),
                    Assert(complete.sent[0][s] == (whole[s] & ~refused[s])),
                    Assert(complete.ends[0][s] == (whole[s] & (left[s] == came[s]))),
                    Assert((came[s] <= left[s]) & (left[s] <= _MOST)),
                    Assert(~refused[s] | (whole[s] & (left[s] == 0))),
                    Assert((left[s] == 0) | (seen[0][s].data == left[s])),
                    Assert((came[s] == 0) | (seen[1][s].data == came[s])),
                ]
        with m.If(complete.closes):
            m.d.sync += head.eq(head + 1)

        # The oldest one ends within a few cycles in which its signal would be taken.
        waits = Signal(range(_SOON + 2))
        over = Array(flag & w & (a == b) for flag, w, a, b in zip(under_way, whole, left, came, strict=True))[head]
        m.d.sync += waits.eq(Mux(~over | complete.closes, 0, waits + (complete.signal.ready & (waits <= _SOON))))
        both = under_way[0] & under_way[1]
        m.d.comb += [
            Assert(waits <= _SOON),
            Assert(complete.heads[0] == head),
            Assert(complete.used[0] == under_way[0] + under_way[1]),
            Assert((complete.used[0] == 0) | Array(under_way)[head]),
            Assert(~complete.ending | (over & (complete.at == head) & (complete.owner == 1))),
            Assert(waits <= 1 + complete.ending),
            Cover(both & complete.closes & (left[0] == 3) & (left[1] == 2)),
            Cover(complete.closes & complete.signal.valid & complete.opened[0]),
        ]
        return m


PROOFS = (
    Proof(
        name="dma_complete",
        make=CompleteProof,
        depth=3,
        cover_depth=16,
        fault_depth=14,
        short=True,
        faults=(
            "a descriptor may end while its last row is under way",
            "a row that leaves as one of its descriptor commits is not counted",
            "what has left of a descriptor stays with its slot",
            "a bad index is not seen",
        ),
    ),
)
