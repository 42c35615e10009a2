"""Who goes next: fair choice among equals, and a bounded wait for one that comes last."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

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

    def __init__(self, count: int):
        if count < 1:
            raise ValueError(f"an arbiter has at least 1 request, not {count}")
        self.count = count
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
        with m.If(fault("a round robin grants the lowest request beside the one whose turn it is")):
            m.d.comb += self.grant.eq(first | lowest(self.requests))
        advance = (
            self.grant.any()
            & (self.accept | fault("the turn of a round robin moves on without accept"))
            & ~fault("the turn of a round robin never moves on")
        )
        with m.If(advance):
            m.d.sync += later.eq(Cat(self.grant[:n].any() for n in range(self.count)))
        return m


class Aged(wiring.Component):
    """Watches one request of low priority and says when it has waited long enough to go first.

    `urgent` rises after `limit` refused cycles in a row and falls with the grant or when the request
    goes away. Who arbitrates gives an urgent request the highest priority in that cycle. `what` is it that is
    refused, in names of faults.
    """

    def __init__(self, limit: int = 8, what: str = "request"):
        if limit < 1:
            raise ValueError(f"an age limit is at least 1 cycle, not {limit}")
        self.limit = limit
        self.what = what
        super().__init__({"request": In(1), "grant": In(1), "urgent": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        age = Signal(range(self.limit + 1))
        m.d.comb += self.urgent.eq((age == self.limit) & ~fault(f"a {self.what} that is refused never becomes urgent"))
        with m.If(~self.request | self.grant):
            m.d.sync += age.eq(0)
        with m.Elif(~self.urgent):
            m.d.sync += age.eq(age + 1)
        return m
