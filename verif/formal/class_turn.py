"""ClassTurn: whenever a class has a piece one of them goes or all that wait are raised by their weights. Who goes
beside others pays for it, and no deficit changes otherwise, but that who has no piece loses its credit. No debt or
credit is beyond its bound: a class owes less than a piece, and has at most its weight. So who waits is above 0 after as
many raises as a piece has units at the most, which give each other class its weight: the bound that bench_class_queues
holds the waits to."""

from dataclasses import replace

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.contract.config import Config, named
from rtl.dma.layouts import units_max
from rtl.dma.movers.class_turn import ClassTurn
from verif.formal.arbiter import ones
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "ClassTurnProof", "config"]


class ClassTurnProof(wiring.Component):
    """Any classes, any pieces of up to units_max; each piece is charged in the cycle after it was taken."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        longest = units_max(self.cfg)
        m.submodules.turn = turn = ClassTurn(self.cfg)
        without_reset(m)
        classes = turn.count
        charged, owner = Signal(), Signal(classes)
        units: Value = AnySeq(len(turn.units))
        m.d.comb += [
            turn.there.eq(AnySeq(classes)),
            turn.take.eq(AnySeq(1) & turn.chosen.any()),
            turn.charged.eq(charged),
            turn.of.eq(owner),
            turn.units.eq(units),
            Assume((turn.units >= 1) & (turn.units <= longest)),
        ]
        m.d.sync += [charged.eq(turn.take), owner.eq(turn.chosen)]
        contested = Signal()
        after = [
            Mux(charged & contested & owner[c], deficit - units, deficit) for c, deficit in enumerate(turn.deficits)
        ]
        poor = (ones(turn.there) > 1) & ~(turn.there & Cat(value > 0 for value in after)).any()
        with m.If(turn.take):
            m.d.sync += contested.eq(ones(turn.there) > 1)

        m.d.comb += [
            Assert((turn.chosen & (turn.chosen - 1)) == 0),
            Assert((turn.chosen & ~turn.there) == 0),
            Assert(turn.chosen.any() | ~turn.there.any() | poor),
            Assert(~charged | (ones(owner) == 1)),
        ]
        for c, deficit in enumerate(turn.deficits):
            weight = turn.weights[c]
            m.d.comb += [
                Assert(deficit > Mux(charged & contested & owner[c], 0, -longest)),
                Assert(deficit <= weight),
            ]
            paid, waits = charged & contested & owner[c], turn.there[c]
            want, known = Signal(12, name=f"want{c}"), Signal(name=f"known{c}")
            forfeits = ~waits & ~paid & (deficit > 0)
            m.d.sync += [
                want.eq(Mux(waits & poor, after[c] + weight, Mux(forfeits, 0, after[c]))),
                known.eq(1),
            ]
            m.d.comb += Assert(~known | (deficit == want.as_signed()))
        m.d.comb += Cover(turn.chosen[-1] & turn.there.all())
        return m


def config(**changes: object) -> Config:
    """`tiny` with short pieces and changes of its DMA."""
    tiny = named("tiny")
    return replace(tiny, dma=replace(tiny.dma, slice_bytes=512, **changes))  # type: ignore[arg-type]


PROOFS = (
    Proof(
        name="class_turn",
        make=lambda: ClassTurnProof(config(weights=(8, 4, 2, 1))),
        depth=2,
        cover_depth=12,
        fault_depth=6,
        short=True,
        faults=("the deficit of a class is not charged", "all weights of a mover's classes are 1"),
    ),
    Proof(
        name="class_turn_two",
        make=lambda: ClassTurnProof(config(weights=(1, 3, 1, 1), classes=2)),
        depth=2,
        cover_depth=12,
        fault_depth=6,
        short=True,
        faults=("the deficit of a class is not charged",),
    ),
    Proof(
        name="class_turn_strict",
        make=lambda: ClassTurnProof(config(weights=(3, 1, 5, 2), strict_class=2)),
        depth=2,
        cover_depth=12,
        fault_depth=6,
        short=True,
        faults=("the deficit of a class is not charged",),
    ),
)
