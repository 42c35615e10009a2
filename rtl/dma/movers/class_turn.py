"""Which of the traffic classes that share a mover's lane is next."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import lowest
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.dma.layouts import UNITS_BITS, fast_class, units_max

__all__ = ["ClassTurn"]


class ClassTurn(wiring.Component):
    """Of dma.classes without the one that has a lane of its own (layouts.fast_class). `there`: those that have a piece.
    `chosen`: one-hot, the one that goes; 0 if there is none, or none yet.

    By weights, deficit round robin in units of 16 bytes: of the classes with a deficit above 0 the next one in turn. If
    several wait and none has any, in each cycle all that wait are raised by their weights, until one is above 0. One
    that waits alone goes at once and pays nothing. A class that is not there loses what is above 0.
    With `priority` the lowest class goes, always.
    Timing: combinational. `take`: a piece of the chosen class leaves; its `units` are `charged` in the next cycle, to
    `of`, one-hot. A piece of n units takes n cycles to move, and no class needs more raises than that to pay for it;
    pieces of a few units that several classes bring wait for a raise after each turn of all of them.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg.dma
        self.weights = [w for c, w in enumerate(cfg.dma.weights[: cfg.dma.classes]) if c != fast_class(cfg)]
        self.count = count = len(self.weights)
        shape = signed(max(max(cfg.dma.weights).bit_length(), ceil_log2(units_max(cfg))) + 1)
        # seen by proofs too
        self.deficits = [Signal(shape, name=f"deficit{c}") for c in range(count)]
        self.pays = Signal()  # what leaves is charged to its class
        self.raises = Signal()
        super().__init__(
            {
                "there": In(count),
                "take": In(1),
                "charged": In(1),
                "of": In(count),
                "units": In(UNITS_BITS),
                "chosen": Out(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        if cfg.priority or self.count == 1:
            m.d.comb += self.chosen.eq(lowest(self.there))
            return m
        pays, raises = self.pays, self.raises
        active, rich = self.there, Signal(self.count)
        alone = Signal()  # at most one waits
        counts = Signal()  # others waited as well when the piece that is charged was taken
        owed = Signal.like(self.deficits[0])
        later = Signal(self.count)  # classes after the one served last
        soon = Signal(self.count)
        m.d.comb += [
            alone.eq((active & (active - 1)) == 0),
            pays.eq(self.charged & counts & ~fault("the deficit of a class is not charged")),
            raises.eq(~alone & ~rich.any()),
            rich.eq(active),
            soon.eq(lowest(rich & later)),
            self.chosen.eq(Mux(soon.any(), soon, lowest(rich))),
        ]
        for c, deficit in enumerate(self.deficits):
            with m.If(self.of[c]):
                m.d.comb += owed.eq(deficit - self.units)
        with m.If(~alone):
            m.d.comb += rich.eq(active & Cat(Mux(pays & self.of[c], owed, d) > 0 for c, d in enumerate(self.deficits)))
        flat = fault("all weights of a mover's classes are 1")
        for c, (deficit, weight) in enumerate(zip(self.deficits, self.weights, strict=True)):
            paying, raised = pays & self.of[c], raises & active[c]
            with m.If(paying | raised):
                m.d.sync += deficit.eq(Mux(paying, owed, deficit) + Mux(raised, Mux(flat, 1, weight), 0))
            with m.Elif(~active[c] & (deficit > 0)):
                m.d.sync += deficit.eq(0)
        with m.If(self.take):
            m.d.sync += [counts.eq(~alone), later.eq(~(self.chosen | (self.chosen - 1)))]
        return m
