"""RoundRobin and Aged: one grant at most, only to who asks, and a bounded wait."""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.arbiter import Aged, RoundRobin
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "AgedProof", "RoundRobinProof", "ones", "turn_comes"]


def ones(bits: Value) -> Value:
    """How many bits are set."""
    total: Value = bits[0]
    for bit in bits[1:]:
        total = total + bit
    return total


def turn_comes(m: Module, arbiter: RoundRobin, chosen: Value) -> Value:
    """How many grants to others may come before the turn of `chosen` does; with what an induction must know of whose
    turn it is: `later` is a run of ones at the top."""
    count, later = arbiter.count, arbiter.later
    m.d.comb += Assert(Cat(later == (((1 << count) - 1) >> n << n if n else 0) for n in range(count)).any())
    below = (1 << chosen) - 1
    return Mux(
        later.bit_select(chosen, 1),
        ones((later & below)[:count]),
        ones(later) + chosen,
    )


class RoundRobinProof(wiring.Component):
    """All laws of the arbiter, the wait of one requester chosen by the prover."""

    def __init__(self, count: int):
        self.count = count
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = RoundRobin(self.count)
        without_reset(m)
        requests, grant = arbiter.requests, arbiter.grant
        m.d.comb += [requests.eq(AnySeq(self.count)), arbiter.accept.eq(AnySeq(1))]

        m.d.comb += [
            Assert((grant & (grant - 1)) == 0),
            Assert((grant & ~requests) == 0),
            Assert(grant.any() == requests.any()),
        ]

        # grants to others that were accepted while the chosen one waited
        chosen = Signal(range(self.count))
        picked = AnyConst(range(self.count))
        m.d.comb += chosen.eq(Mux(picked < self.count, picked, 0))
        mine = requests.bit_select(chosen, 1) & ~grant.bit_select(chosen, 1)
        others = Signal(range(self.count + 2))
        with m.If(~mine):
            m.d.sync += others.eq(0)
        with m.Elif(arbiter.accept):
            m.d.sync += others.eq(others + 1)
        m.d.comb += Assert(others <= self.count - 1)

        # the induction must know whose turn comes before
        m.d.comb += Assert(others + turn_comes(m, arbiter, chosen) <= self.count - 1)

        # without accept the choice stays
        before = Signal(self.count)
        held = Signal()
        same = Signal(self.count)
        m.d.sync += [before.eq(grant), held.eq(~arbiter.accept), same.eq(requests)]
        with m.If(held & (same == requests)):
            m.d.comb += Assert(grant == before)

        m.d.comb += [
            Cover((others == self.count - 1) & grant.bit_select(chosen, 1)),
            Cover(requests.all() & grant[1]),
            Cover(requests.all() & grant[self.count - 1]),
        ]
        return m


class AgedProof(wiring.Component):
    """A request is urgent exactly after `limit` refused cycles in a row."""

    def __init__(self, limit: int):
        self.limit = limit
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.aged = aged = Aged(self.limit)
        without_reset(m)
        m.d.comb += [aged.request.eq(AnySeq(1)), aged.grant.eq(AnySeq(1))]
        refused = Signal(self.limit)  # the last cycles, newest at bit 0
        m.d.sync += refused.eq((refused << 1) | (aged.request & ~aged.grant))
        m.d.comb += [
            Assert(aged.urgent == refused.all()),
            Cover(aged.urgent & aged.grant),
            Cover(refused.all() & ~aged.request),
        ]
        return m


PROOFS = (
    Proof(
        name="round_robin",
        make=lambda: RoundRobinProof(5),
        depth=3,
        cover_depth=12,
        faults=(
            "the turn of a round robin never moves on",
            "a round robin grants the lowest request beside the one whose turn it is",
            "the turn of a round robin moves on without accept",
        ),
        short=True,
    ),
    Proof(
        name="aged",
        make=lambda: AgedProof(4),
        depth=8,
        cover_depth=10,
        faults=("a request that is refused never becomes urgent",),
        short=True,
    ),
)
