"""Which unit goes next: the class first, then the kind."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import RoundRobin
from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig

__all__ = ["CAP_WINDOW", "Scheduler"]

CAP_WINDOW = 64
"""Flits in which a strict class has its cap."""


class Scheduler(wiring.Component):
    """Chooses among the queues that are `eligible` (a unit is there, with credits for its `flits`).

    The strict class goes first until, in a window of 64 flits, it has taken `strict_cap` flits that others waited
    for; beyond that it goes only when nobody else can. Among the others each class has a deficit: its flits are
    charged to it. When no class that could go has any left, all are raised by their weights (at most to them), as many
    rounds as the first of them needs. Classes with a deficit above 0 take turns. In a class, requests and responses
    alternate. Timing: `valid` and `queue` are combinational from the inputs and registers; `accept` raises and charges.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "eligible": In(cfg.queues),
                "flits": In(data.ArrayLayout(range(UNIT_FLITS_MAX + 1), cfg.queues)),
                "accept": In(1),
                "valid": Out(1),
                "queue": Out(range(cfg.queues)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n = cfg.classes
        strict = cfg.strict_class
        weights = {c: weight for c, weight in enumerate(cfg.weights[:n]) if c != strict}
        bits = max(*cfg.weights, UNIT_FLITS_MAX).bit_length() + 2
        deficits = {c: Signal(signed(bits), name=f"deficit_{c}", init=weight) for c, weight in weights.items()}
        asks = Signal(n)  # classes that could go
        may = Signal(n)  # and have a deficit, or have one first
        rounds = Signal(UNIT_FLITS_MAX)  # of raising before anybody has one: bit n, more than n
        chosen = Signal(n)
        kind_last = Signal(n)
        spent = Signal(range(CAP_WINDOW + 2 * UNIT_FLITS_MAX))  # flits of the strict class that others waited for
        window = Signal(range(CAP_WINDOW))
        m.submodules.turn = turn = RoundRobin(n)

        everybody = (1 << n) - 1
        others = everybody & ~(1 << strict) if strict >= 0 else everybody
        needs = [Signal(UNIT_FLITS_MAX, name=f"needs_{c}") for c in range(n)]  # rounds, as above
        for c, weight in weights.items():
            # a deficit is 1 - UNIT_FLITS_MAX at the least
            enough = [k * weight >= UNIT_FLITS_MAX for k in range(UNIT_FLITS_MAX)]
            m.d.comb += needs[c].eq(
                Cat(Const(0, 1) if e else deficits[c] + k * weight <= 0 for k, e in enumerate(enough))
            )
        for k in range(UNIT_FLITS_MAX):
            without = Cat(needs[c][k] for c in range(n))
            m.d.comb += rounds[k].eq((asks & others).any() & ~(asks & others & ~without).any())
        m.d.comb += [
            asks.eq(Cat(self.eligible[2 * c : 2 * c + 2].any() for c in range(n))),
            may.eq(Cat(asks[c] & ~(needs[c] & ~rounds).any() for c in range(n)) & others),
            turn.requests.eq(may),
        ]
        waits = Signal()  # somebody else than the strict class
        m.d.comb += [waits.eq((asks & others).any()), chosen.eq(turn.grant)]
        if strict >= 0:
            first = asks[strict] & ((spent < cfg.strict_cap) | ~waits | fault("the strict class of a link has no cap"))
            with m.If(first):
                m.d.comb += chosen.eq(1 << strict)
        else:
            first = Const(0, 1)
        m.d.comb += [self.valid.eq(chosen.any()), turn.accept.eq(self.accept & ~first)]

        flits = Signal(range(UNIT_FLITS_MAX + 1))
        for c in range(n):
            pair = self.eligible[2 * c : 2 * c + 2]
            kind = Signal(name=f"kind_{c}")
            m.d.comb += kind.eq(
                Mux(pair.all() & ~fault("requests of a link go before responses, always"), ~kind_last[c], ~pair[0])
            )
            with m.If(chosen[c]):
                m.d.comb += self.queue.eq(Cat(kind, Const(c, 3)))
                with m.If(self.accept):
                    m.d.sync += kind_last[c].eq(kind)
        m.d.comb += flits.eq(Mux(fault("a unit is charged as one flit"), 1, Array(list(self.flits))[self.queue]))

        for c, deficit in deficits.items():
            weight = weights[c]
            raised = Signal(signed(len(deficit) + 2), name=f"raised_{c}")
            bounded = rounds[0] & (raised > weight) & ~fault("deficits of a link are raised without a bound")
            m.d.comb += raised.eq(deficit + sum((Mux(rounds[k], weight, 0) for k in range(UNIT_FLITS_MAX)), start=0))
            with m.If(self.accept & waits & ~first):
                m.d.sync += deficit.eq(Mux(bounded, weight, raised) - Mux(chosen[c], flits, 0))

        if strict >= 0:
            paid = Mux(first & waits, flits, 0)
            with m.If(self.accept & self.valid):
                with m.If(window + flits >= CAP_WINDOW):
                    m.d.sync += [
                        window.eq(window + flits - CAP_WINDOW),
                        spent.eq(Mux(spent + paid > cfg.strict_cap, spent + paid - cfg.strict_cap, 0)),
                    ]
                with m.Else():
                    m.d.sync += [window.eq(window + flits), spent.eq(spent + paid)]
        return m
