"""Which traffic class a mover serves next."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import lowest
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.timing import DMA_STRICT_WINDOW
from rtl.dma.layouts import UNITS_BITS, units_max

__all__ = ["ClassTurn"]


class ClassTurn(wiring.Component):
    """`there`: classes that have a piece. `chosen`: one-hot, the one that goes; 0 if there is none, or none yet.

    By weights, deficit round robin in units of 16 bytes: of the classes with a deficit above 0 the next one in turn. If
    several wait and none has any, in each cycle all that wait are raised by their weights, until one is above 0. One
    that waits alone goes at once and pays nothing. A class that is not there loses what is above 0.
    The strict class goes before, unless others wait and it is over its cap: of 64 units that leave while others wait it
    has `strict_cap`, and what it leaves unused is kept for a burst of up to 16 times the cap. With `priority` the
    lowest class goes, always.
    Timing: combinational. `take`: a piece of the chosen class leaves; its `units` are `charged` in the next cycle, to
    `of`, one-hot. A piece of n units takes n cycles to move, and no class needs more raises than that to pay for it;
    pieces of a few units that several classes bring wait for a raise after each turn of all of them.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg.dma
        self.count = count = cfg.dma.classes
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
        strict = 1 << cfg.strict_class if cfg.strict_class >= 0 else 0
        pays, raises = self.pays, self.raises
        active, rich = Signal(self.count), Signal(self.count)
        alone = Signal()  # at most one waits by its weight
        counts = Signal()  # others waited as well when the piece that is charged was taken
        owed = Signal.like(self.deficits[0])
        later = Signal(self.count)  # classes after the one served last
        soon = Signal(self.count)
        first = Signal()
        m.d.comb += [
            active.eq(self.there & ~Const(strict, self.count)),
            alone.eq((active & (active - 1)) == 0),
            pays.eq(self.charged & counts & ~fault("the deficit of a class is not charged")),
            raises.eq(~alone & ~rich.any()),
            rich.eq(active),
            soon.eq(lowest(rich & later)),
            self.chosen.eq(Mux(first, strict, Mux(soon.any(), soon, lowest(rich)))),
        ]
        for c, deficit in enumerate(self.deficits):
            with m.If(self.of[c]):
                m.d.comb += owed.eq(deficit - self.units)
        with m.If(~alone):
            m.d.comb += rich.eq(active & Cat(Mux(pays & self.of[c], owed, d) > 0 for c, d in enumerate(self.deficits)))
        flat = fault("all weights of a mover's classes are 1")
        for c, (deficit, weight) in enumerate(zip(self.deficits, cfg.weights, strict=False)):
            paying, raised = pays & self.of[c], raises & active[c]
            with m.If(paying | raised):
                m.d.sync += deficit.eq(Mux(paying, owed, deficit) + Mux(raised, Mux(flat, 1, weight), 0))
            with m.Elif(~active[c] & (deficit > 0)):
                m.d.sync += deficit.eq(0)
        with m.If(self.take):
            m.d.sync += counts.eq(~first & ~alone)
        with m.If(self.take & ~first):
            m.d.sync += later.eq(~(self.chosen | (self.chosen - 1)))
        if strict:
            self._cap(m, first, active)
        return m

    def _cap(self, m: Module, first: Signal, active: Value) -> None:
        """What the strict class has had beyond its cap while others waited, in parts of a unit."""
        cfg = self.cfg
        cap, rest = cfg.strict_cap, DMA_STRICT_WINDOW - cfg.strict_cap
        limit = 16 * cap * rest
        over = Signal(range(limit + (rest << UNITS_BITS) + 1))
        now = Signal.like(over)
        waited = Signal()  # others did when the piece that is charged was taken
        m.d.comb += first.eq(
            self.there[cfg.strict_class]
            & ((now <= limit) | ~active.any() | fault("the strict class of a mover has no cap"))
        )
        with m.If(self.take):
            m.d.sync += waited.eq(first & active.any())
        mine = self.of[cfg.strict_class]
        m.d.comb += now.eq(over)
        with m.If(self.charged & mine & waited):
            m.d.comb += now.eq(over + self.units * rest)
        with m.Elif(self.charged & ~mine):
            m.d.comb += now.eq(Mux(over > self.units * cap, over - self.units * cap, 0))
        m.d.sync += over.eq(now)
