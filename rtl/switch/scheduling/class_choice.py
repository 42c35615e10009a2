"""Which class an output of a switch serves."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import lowest
from rtl.base.fault import fault
from rtl.contract.switch_config import SwitchConfig

__all__ = ["CAP_WINDOW", "DEBT_MAX", "ClassChoice"]

CAP_WINDOW = 64
"""Flits in which a strict class has its cap."""
DEBT_MAX = 32
"""Deepest debt of a class that was served out of its turn."""


class ClassChoice(wiring.Component):
    """The class of one output, a slot at a time.

    held, free: classes that any input, that any idle input holds for this output. chosen: one-hot, the strict class
    while it has flits of its cap left or nobody else waits (`strict`), else the one whose turn it is of the free
    ones with a deficit above 0, else of the free ones. All deficits are raised by their weights (at most to them)
    in a slot in which no class held or under way has any left.
    When a unit begins (`begin`, of an input that holds `queues` for this output): queue is the one it comes from,
    of the chosen class if it is there, else by turns; its kind is the one not served last. Each flit (`begin` or
    `hold`) is charged to its class. `urgent`: it begins for its patience, so a strict unit is charged too.
    Timing: chosen and strict combinational from held, free and registers; queue from these and `queues`;
    `step` ends the slot.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg.link
        classes = self.cfg.classes
        super().__init__(
            {
                "held": In(classes),
                "free": In(classes),
                "chosen": Out(classes),
                "strict": Out(1),
                "step": In(1),
                "hold": In(1),
                "begin": In(1),
                "urgent": In(1),
                "queues": In(cfg.link.queues),
                "queue": Out(range(cfg.link.queues)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n = cfg.classes
        everything = (1 << n) - 1
        strict = 1 << cfg.strict_class if cfg.strict_class >= 0 else 0
        shape = signed(max(*cfg.weights, DEBT_MAX - 1).bit_length() + 2)
        deficits = [Signal(shape, name=f"deficit_{c}", init=cfg.weights[c]) for c in range(n)]
        later = Signal(n)  # classes after the one served last
        kinds = Signal(n)  # served last, by class
        serving = Signal(n)  # class of the unit under way
        first, waits = Signal(), Signal()

        def turn(classes: Value, name: str) -> Signal:
            asking, soon, one = (Signal(n, name=f"{name}_{what}") for what in ("asking", "soon", "one"))
            m.d.comb += [
                asking.eq(classes),
                soon.eq(lowest(asking & later)),
                one.eq(Mux(soon.any(), soon, lowest(asking))),
            ]
            return one

        raised = [Signal(shape, name=f"raised_{c}") for c in range(n)]
        left, active, rich = Signal(n), Signal(n), Signal(n)  # rich: with a deficit after a raise
        raises = Signal()
        m.d.comb += [
            left.eq(Cat(d > 0 for d in deficits)),
            active.eq((self.held | Mux(self.hold, serving, 0)) & ~Const(strict, n)),
            raises.eq(active.any() & ~(active & left).any()),
            rich.eq(Cat(d > 0 for d in raised)),
        ]
        for c in range(n):
            weight = Mux(fault("all weights of an output's classes are 1"), 1, cfg.weights[c])
            more = deficits[c] + weight
            bound = (more > weight) & ~fault("deficits of an output are raised without a bound")
            m.d.comb += raised[c].eq(Mux(raises, Mux(bound, weight, more), deficits[c]))

        others = Signal(n)
        m.d.comb += [
            others.eq(self.free & ~Const(strict, n)),
            waits.eq((self.held & ~Const(strict, n)).any()),
            self.strict.eq(first),
            self.chosen.eq(Mux(first, strict, turn(Mux((others & rich).any(), others & rich, others), "class"))),
        ]

        # the unit that begins
        there, own, served = Signal(n), Signal(n), Signal(n)
        m.d.comb += [
            there.eq(Cat(self.queues[2 * c : 2 * c + 2].any() for c in range(n))),
            own.eq(there & ~Const(strict, n)),
        ]
        by_turn = turn(Mux((own & rich).any(), own & rich, Mux(own.any(), own, there)), "unit")
        m.d.comb += served.eq(Mux((there & self.chosen).any(), self.chosen, by_turn))
        kind = Signal()
        of_class = [self.queues[2 * c : 2 * c + 2] & served[c].replicate(2) for c in range(n)]
        pair = Signal(2)
        total: Value = of_class[0]
        for other in of_class[1:]:
            total = total | other
        m.d.comb += [
            pair.eq(total),
            kind.eq(
                Mux(
                    pair.all() & ~fault("requests to an output go before responses, always"),
                    ~(kinds & served).any(),
                    ~pair[0],
                )
            ),
            self.queue.eq(
                Cat(kind, *(Cat(served[c] for c in range(n) if c >> b & 1).any() for b in range((n - 1).bit_length())))
            ),
        ]

        charged = Mux(
            self.begin, served, Mux(self.hold & ~fault("flits of a unit after the first are not charged"), serving, 0)
        ) & ~Const(strict, n)
        with m.If(self.step):
            for c in range(n):
                pays = charged[c] & (raised[c] > -DEBT_MAX)
                m.d.sync += deficits[c].eq(raised[c] - pays)
            with m.If(self.begin):
                m.d.sync += [serving.eq(served), kinds.eq((kinds & ~served) | (served & kind.replicate(n)))]
                with m.If(~(served & Const(strict, n)).any()):
                    m.d.sync += later.eq(~(served | (served - 1))[:n] & everything)
        if strict:
            self._cap(m, first, waits, served, serving)
        return m

    def _cap(self, m: Module, first: Signal, waits: Signal, served: Signal, serving: Signal) -> None:
        """Flits of the strict class that others waited for, in a window of 64 flits of this output."""
        cfg = self.cfg
        strict = cfg.strict_class
        spent = Signal(range(CAP_WINDOW + 2 * cfg.strict_cap))
        window = Signal(range(CAP_WINDOW))
        paying = Signal()  # others waited when this strict unit began
        pays = Signal()
        spent_next = Signal.like(spent)
        m.d.comb += [
            first.eq(
                self.held[strict]
                & ((spent < cfg.strict_cap) | ~waits | fault("the strict class of an output has no cap"))
            ),
            pays.eq(Mux(self.begin, served[strict] & waits & (first | self.urgent), self.hold & paying)),
            spent_next.eq(Mux(pays & ~spent.all(), spent + 1, spent)),
        ]
        with m.If(self.step & (self.begin | self.hold)):
            m.d.sync += [window.eq(window + 1), spent.eq(spent_next), paying.eq(pays)]
            with m.If(window == CAP_WINDOW - 1):
                m.d.sync += spent.eq(Mux(spent_next > cfg.strict_cap, spent_next - cfg.strict_cap, 0))
