"""Which traffic class a mover serves next."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import lowest
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.timing import DMA_STRICT_WINDOW
from rtl.dma.layouts import CLASSES, UNITS_BITS, units_max

__all__ = ["ClassTurn"]


class ClassTurn(wiring.Component):
    """`there`: classes that have a piece. `chosen`: one-hot, the one that goes; 0 if there is none.

    By weights, deficit round robin in units of 16 bytes: of the classes with a deficit above 0 the next one in turn.
    If no class that is there has any, all that are there are first raised by their weights times the least power of
    two that lifts one of them above 0. A class that is not there loses what is above 0.
    The strict class goes before, unless others wait and it is over its cap: of 64 units that leave while others wait it
    has `strict_cap`, and what it leaves unused is kept for a burst of up to 16 times the cap. With `priority` the
    lowest class goes, always.
    Timing: combinational. `take`: a piece of the chosen class leaves; its `units` are `charged` in a later cycle, to
    `of`, one-hot, before the next one is chosen.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg.dma
        most = ceil_log2(units_max(cfg))
        self.shifts = most + 1
        # seen by proofs too
        shape = signed(max(cfg.dma.weights).bit_length() + most + 2)
        self.deficits = [Signal(shape, name=f"deficit{c}") for c in range(CLASSES)]
        self.paid = [Signal(shape, name=f"paid{c}") for c in range(CLASSES)]  # with the charge of this cycle
        super().__init__(
            {
                "there": In(CLASSES),
                "take": In(1),
                "charged": In(1),
                "of": In(CLASSES),
                "units": In(UNITS_BITS),
                "chosen": Out(CLASSES),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        if cfg.priority:
            m.d.comb += self.chosen.eq(lowest(self.there))
            return m
        strict = 1 << cfg.strict_class if cfg.strict_class >= 0 else 0
        paid = self.paid
        raised = [Signal.like(d, name=f"raised{c}") for c, d in enumerate(self.deficits)]
        active, rich = Signal(CLASSES), Signal(CLASSES)
        raises = Signal()
        step = Signal(range(self.shifts))
        m.d.comb += active.eq(self.there & ~Const(strict, CLASSES))
        pays = self.charged & ~fault("the deficit of a class is not charged")
        owing = self.of & ~Const(strict, CLASSES)
        for c, deficit in enumerate(self.deficits):
            m.d.comb += paid[c].eq(Mux(pays & owing[c], deficit - self.units, deficit))
        m.d.comb += raises.eq(active.any() & ~(active & Cat(p > 0 for p in paid)).any())
        with m.If(raises):
            for s in reversed(range(self.shifts)):
                with m.If(Cat((p + (w << s) > 0) & active[c] for c, (p, w) in enumerate(self._weighted(paid))).any()):
                    m.d.comb += step.eq(s)
        for c, (p, weight) in enumerate(self._weighted(paid)):
            m.d.comb += raised[c].eq(Mux(raises & active[c], p + (weight << step), p))
            kept = Mux((p > 0) & ~active[c], 0, p)
            m.d.sync += self.deficits[c].eq(Mux(self.take, Mux(active[c], raised[c], kept), kept))
        m.d.comb += rich.eq(active & Cat(r > 0 for r in raised))

        later = Signal(CLASSES)  # classes after the one served last
        soon = Signal(CLASSES)
        first = Signal()
        m.d.comb += [
            soon.eq(lowest(rich & later)),
            self.chosen.eq(Mux(first, strict, Mux(soon.any(), soon, lowest(rich)))),
        ]
        with m.If(self.take & ~first):
            m.d.sync += later.eq(~(self.chosen | (self.chosen - 1)))
        if strict:
            self._cap(m, first, active)
        return m

    def _weighted(self, values: list[Signal]) -> list[tuple[Signal, int]]:
        flat = fault("all weights of a mover's classes are 1")
        return [(v, Mux(flat, 1, w)) for v, w in zip(values, self.cfg.weights, strict=True)]

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
