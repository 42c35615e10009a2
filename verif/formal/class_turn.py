"""ClassTurn: one class that has a piece goes whenever there is any, and none waits for more than its bound."""

from dataclasses import replace

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring

from rtl.contract.config import Config, named
from rtl.dma.layouts import CLASSES
from rtl.dma.movers.class_turn import ClassTurn
from verif.formal.arbiter import ones
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "ClassTurnProof", "wait_units"]


def wait_units(weights: tuple[int, ...], class_: int, longest: int) -> int:
    """Units of 16 bytes that others may have had while the class waited: what they had left and a piece each, and what
    the raises gave them that lift the class from its debt, below one piece, to the most that it may have."""
    rest = sum(weights) - weights[class_]
    return 2 * rest * longest + rest * longest // weights[class_] + 3 * longest


class ClassTurnProof(wiring.Component):
    """Any classes, any pieces of 1 to 32 units; each piece is charged in the cycle after it was taken."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg.dma
        longest = cfg.slice_bytes // 16
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
        if cfg.priority:
            m.d.comb += Assert(turn.chosen == (turn.there & (~turn.there + 1))[:CLASSES])
            return m
        for c, deficit in enumerate(turn.deficits):
            if c == cfg.strict_class:
                continue
            m.d.comb += [
                Assert(deficit > Mux(charged & owner[c], 0, -longest)),
                Assert(deficit <= cfg.weights[c] * longest),
            ]
        if cfg.strict_class >= 0:
            return m
        for c in range(CLASSES):
            self._waits(m, turn, c, charged, owner, units, longest)
        m.d.comb += Cover(turn.chosen[3] & turn.there.all())
        return m

    def _waits(
        self, m: Module, turn: ClassTurn, c: int, charged: Value, owner: Signal, units: Value, longest: int
    ) -> None:
        """What others are charged for while class c is there and does not go. For the induction: that, and what they
        may still spend, weighed against what lifts class c."""
        weights = self.cfg.dma.weights
        own = weights[c]
        rest = sum(weights) - own
        bound = wait_units(weights, c, longest)
        spent = Signal(signed(24), name=f"spent{c}")
        waits = Signal(name=f"waits{c}")
        m.d.sync += waits.eq(turn.there[c] & ~(turn.take & turn.chosen[c]))
        pays = charged & ~owner[c]
        with m.If(~waits):
            m.d.sync += spent.eq(Mux(pays, units, 0))
        with m.Elif(pays):
            m.d.sync += spent.eq(spent + units)
        theirs = [d for n, d in enumerate(turn.deficits) if n != c]
        total: Value = theirs[0]
        for d in theirs[1:]:
            total = total + d
        with m.If(waits):
            m.d.comb += [
                Assert(own * (spent + total) - rest * turn.deficits[c] <= own * rest * longest + rest * longest),
                Assert(spent <= bound),
            ]
        m.d.comb += Cover(spent > longest)


def _config(**changes: object) -> Config:
    tiny = named("tiny")
    return replace(tiny, dma=replace(tiny.dma, slice_bytes=512, **changes))  # type: ignore[arg-type]


PROOFS = (
    Proof(
        name="class_turn",
        make=lambda: ClassTurnProof(_config(weights=(8, 4, 2, 1))),
        depth=2,
        cover_depth=12,
        fault_depth=12,
        short=True,
        faults=("the deficit of a class is not charged",),
    ),
    Proof(
        name="class_turn_strict",
        make=lambda: ClassTurnProof(_config(weights=(3, 1, 5, 2), strict_class=2)),
        depth=2,
        cover_depth=4,
        short=True,
    ),
    Proof(
        name="class_turn_priority",
        make=lambda: ClassTurnProof(_config(priority=True)),
        depth=1,
        cover_depth=2,
        short=True,
    ),
)
