"""ClassTurn: whenever a class has a piece one of them goes, and no debt or credit is beyond its bound: a class owes
less than a piece, and has at most its weight in pieces. So who waits is lifted above 0 by raises that give the others
at most their weights in pieces each, which is the bound that bench_class_queues holds the waits to."""

from dataclasses import replace

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.utils import ceil_log2

from rtl.contract.config import Config, named
from rtl.dma.layouts import CLASSES, units_max
from rtl.dma.movers.class_turn import ClassTurn
from verif.formal.arbiter import ones
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "ClassTurnProof"]


class ClassTurnProof(wiring.Component):
    """Any classes, any pieces of up to units_max; each piece is charged in the cycle after it was taken."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg.dma
        longest = units_max(self.cfg)
        lift = 1 << ceil_log2(longest)
        m.submodules.turn = turn = ClassTurn(self.cfg)
        without_reset(m)
        charged, owner = Signal(), Signal(CLASSES)
        units: Value = AnySeq(len(turn.units))
        m.d.comb += [
            turn.there.eq(AnySeq(CLASSES)),
            turn.take.eq(AnySeq(1) & turn.there.any()),
            turn.charged.eq(charged),
            turn.of.eq(owner),
            turn.units.eq(units),
            Assume((turn.units >= 1) & (turn.units <= longest)),
        ]
        m.d.sync += [charged.eq(turn.take), owner.eq(turn.chosen)]

        m.d.comb += [
            Assert((turn.chosen & (turn.chosen - 1)) == 0),
            Assert((turn.chosen & ~turn.there) == 0),
            Assert(turn.chosen.any() == turn.there.any()),
            Assert(~charged | (ones(owner) == 1)),
        ]
        for c, deficit in enumerate(turn.deficits):
            if c == cfg.strict_class:
                continue
            m.d.comb += [
                Assert(turn.paid[c] == Mux(charged & owner[c], deficit - turn.units, deficit)),
                Assert(deficit > Mux(charged & owner[c], 0, -longest)),
                Assert(deficit <= cfg.weights[c] * lift),
            ]
        if cfg.strict_class < 0:
            m.d.comb += Cover(turn.chosen[3] & turn.there.all())
        return m


def _config(**changes: object) -> Config:
    tiny = named("tiny")
    return replace(tiny, dma=replace(tiny.dma, slice_bytes=512, **changes))  # type: ignore[arg-type]


PROOFS = (
    Proof(
        name="class_turn",
        make=lambda: ClassTurnProof(_config(weights=(8, 4, 2, 1))),
        depth=2,
        cover_depth=12,
        fault_depth=6,
        short=True,
        faults=("the deficit of a class is not charged",),
    ),
    Proof(
        name="class_turn_strict",
        make=lambda: ClassTurnProof(_config(weights=(3, 1, 5, 2), strict_class=2)),
        depth=2,
        cover_depth=4,
        fault_depth=6,
        short=True,
        faults=("the deficit of a class is not charged",),
    ),
)
