"""StrictCap: from any cycle on, of what leaves while others wait the class that goes first has its cap and what it may
be ahead, at the most. It is never held back where nobody waits; once it is, others that pay enough let it go again."""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.contract.timing import DMA_STRICT_WINDOW
from rtl.dma.layouts import units_max
from rtl.dma.movers.strict_cap import StrictCap
from verif.formal.class_turn import config
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "StrictCapProof"]

_BITS = 24  # of sums kept here


class StrictCapProof(wiring.Component):
    """Any pieces, any time to wait. `mine`, `others`: units that left since a cycle that the prover chooses, times what
    the others have of 64, and the cap: equal when it has its cap."""

    def __init__(self, cap: int):
        self.cfg = config(strict_class=2, strict_cap=cap)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        share, rest = self.cfg.dma.strict_cap, DMA_STRICT_WINDOW - self.cfg.dma.strict_cap
        longest = units_max(self.cfg)
        m.submodules.cap = cap = StrictCap(self.cfg)
        without_reset(m)
        for port in (cap.waits, cap.goes, cap.passes, cap.units, cap.other_units):
            m.d.comb += port.eq(AnySeq(len(port)))
        m.d.comb += [
            Assume((cap.units >= 1) & (cap.units <= longest)),
            Assume((cap.other_units >= 1) & (cap.other_units <= longest)),
            Assume(~cap.goes | cap.open),
        ]
        begun = Signal()
        mine, others = Signal(_BITS), Signal(_BITS)
        ahead = 16 * share * rest  # of 64 x units
        m.d.sync += begun.eq(begun | AnySeq(1))
        with m.If(begun):
            m.d.sync += [
                mine.eq(mine + Mux(cap.goes & cap.waits, cap.units * rest, 0)),
                others.eq(others + Mux(cap.passes, cap.other_units * share, 0)),
            ]
        m.d.comb += [
            Assume(~mine[-1] & ~others[-1]),
            Assert(begun | ((mine == 0) & (others == 0))),
            Assert(cap.over <= ahead + longest * rest),
            Assert(mine <= others + cap.over),
            Assert(mine <= others + ahead + longest * rest),
            Assert(cap.open | (cap.waits & (cap.over > ahead))),
            Cover(~cap.open & (others != 0)),
        ]
        # what is owed shrinks by all that others have: it opens after so much
        was, paid, had = Signal.like(cap.over), Signal(_BITS), Signal()
        m.d.sync += [was.eq(cap.over), paid.eq(Mux(cap.passes, cap.other_units * share, 0)), had.eq(~cap.goes)]
        m.d.comb += Assert(~had | (cap.over + paid <= was) | (cap.over == 0))
        return m


PROOFS = tuple(
    Proof(
        name=name,
        make=lambda cap=cap: StrictCapProof(cap),
        depth=2,
        cover_depth=14,
        fault_depth=14,
        faults=("the strict class of a mover has no cap",),
    )
    for name, cap in (("strict_cap", 16), ("strict_cap_one", 1))
)
