"""Who goes next: fair choice among equals, and a bounded wait for one that comes last."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted

__all__ = ["Aged", "RoundRobin", "lowest"]


def lowest(requests: Value) -> Value:
    """One-hot: the lowest bit that is set."""
    return (requests & (~requests + 1))[: len(requests)]


class RoundRobin(wiring.Component):
    """One grant among `count` requests; the one granted last comes last.

    Timing: `grant` is combinational from `requests`, one-hot, 0 without a request. A cycle with `accept`
    moves the turn on; without it the choice stays while the requests stay.
    A request that stays is granted after at most count - 1 accepted grants to others.
    """

    FAULTS = {
        1: "the turn never moves on",
        2: "grants the lowest request beside the one whose turn it is",
        3: "the turn moves on without accept",
    }

    def __init__(self, count: int, plant: ValueLike = 0):
        if count < 1:
            raise ValueError(f"an arbiter has at least 1 request, not {count}")
        self.count = count
        self.plant = plant
        self.later = Signal(count)  # the requests above the one granted last; seen by proofs too
        super().__init__({"requests": In(count), "accept": In(1), "grant": Out(count)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        later = self.later
        first = Signal(self.count)

        m.d.comb += [
            first.eq(lowest(self.requests & later)),
            self.grant.eq(Mux(first.any(), first, lowest(self.requests))),
        ]
        with m.If(planted(self.plant, 2)):
            m.d.comb += self.grant.eq(first | lowest(self.requests))
        advance = self.grant.any() & (self.accept | planted(self.plant, 3)) & ~planted(self.plant, 1)
        with m.If(advance):
            m.d.sync += later.eq(Cat(self.grant[:n].any() for n in range(self.count)))
        return m


class Aged(wiring.Component):
    """Watches one request of low priority and says when it has waited long enough to go first.

    `urgent` rises after `limit` refused cycles in a row and falls with the grant or when the request
    goes away. Who arbitrates gives an urgent request the highest priority in that cycle.
    """

    FAULTS = {1: "never becomes urgent"}

    def __init__(self, limit: int = 8, plant: ValueLike = 0):
        if limit < 1:
            raise ValueError(f"an age limit is at least 1 cycle, not {limit}")
        self.limit = limit
        self.plant = plant
        super().__init__({"request": In(1), "grant": In(1), "urgent": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        age = Signal(range(self.limit + 1))
        m.d.comb += self.urgent.eq((age == self.limit) & ~planted(self.plant, 1))
        with m.If(~self.request | self.grant):
            m.d.sync += age.eq(0)
        with m.Elif(~self.urgent):
            m.d.sync += age.eq(age + 1)
        return m
