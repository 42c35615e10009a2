"""Credits of one account: sent + free + in flight + held = size, whatever is lost on the way back.

Both units together, for the account the prover chooses: flits that the sender spends a credit for travel (they arrive
in order and are never lost here: replay sees to that), arrive, and are read out; counts are told in flits of which any
may be lost. Free credits, credits told but lost or under way, flits under way and flits held make up the size.
"""

import dataclasses

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cover, Module, Signal
from amaranth.lib import wiring

from rtl.contract.link_config import LINKS
from rtl.link.rules.credit_receiver import CreditReceiver
from rtl.link.rules.credit_sender import CreditSender
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "CreditsProof"]

_CFG = dataclasses.replace(LINKS["x8"], classes=1, shared_flits=5)


class CreditsProof(wiring.Component):
    """A sender, a receiver, a wire that keeps one count under way and may lose it."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = _CFG
        m.submodules.spends = spends = CreditSender(cfg)
        m.submodules.grants = grants = CreditReceiver(cfg)
        without_reset(m)
        accounts = range(cfg.accounts)
        counts, held, limits = Array(grants.counts), Array(grants.held), Array(spends.limit)
        free = Array(spends.free[n] for n in accounts)
        sizes = grants.sizes

        # the way there: flits sent and not arrived, by account
        travel = [Signal(4, name=f"travel_{n}") for n in accounts]
        spend, arrive, freed = Signal(), Signal(), Signal()
        m.d.comb += [
            spends.spend.eq(spend),
            spends.spend_account.eq(AnySeq(2)),
            spend.eq(AnySeq(1) & (free[spends.spend_account] != 0)),
            grants.account.eq(AnySeq(2)),
            arrive.eq(AnySeq(1) & (Array(travel)[grants.account] != 0)),
            grants.arrive.eq(arrive),
            grants.freed_account.eq(AnySeq(2)),
            freed.eq(AnySeq(1) & (held[grants.freed_account] != 0)),
            grants.freed.eq(freed),
            Assert(~arrive | grants.room),
        ]
        for n in accounts:
            m.d.sync += travel[n].eq(
                travel[n] + (spend & (spends.spend_account == n)) - (arrive & (grants.account == n))
            )

        # the way back: one count under way, which arrives, is lost, or comes again later
        way = Signal()
        kind, dedicated, vc, count = Signal(2), Signal(), Signal(3), Signal(12)
        take = Signal()
        m.d.comb += [
            grants.slot.eq(AnySeq(1)),
            take.eq(way & AnySeq(1)),
            spends.update.eq(take),
            spends.credit_kind.eq(kind),
            spends.dedicated.eq(dedicated),
            spends.vc.eq(vc),
            spends.count.eq(count),
            Assert(~spends.bad_credit),
        ]
        told = (grants.credit_kind, grants.dedicated, grants.vc, grants.count)
        with m.If(grants.slot & AnySeq(1)):
            m.d.sync += [way.eq(1), *(mine.eq(value) for mine, value in zip((kind, dedicated, vc, count), told))]

        # The laws, for every account; the count under way is between what the sender has heard and what is true.
        for n in accounts:
            lag = Signal(12, name=f"lag_{n}")  # credits returned and not heard of yet
            m.d.comb += [
                lag.eq(counts[n] - limits[n]),
                Assert(free[n] + travel[n] + held[n] + lag == sizes[n]),
                Assert(lag <= sizes[n]),
                Assert(travel[n] <= sizes[n]),
                Assert(held[n] <= sizes[n]),
                Assert(free[n] <= sizes[n]),
            ]
            shared = n >= cfg.queues
            here = way & (kind == 1 + n % 2) & (dedicated == (not shared)) & (vc == 0)
            behind = Signal(12, name=f"behind_{n}")
            m.d.comb += behind.eq(counts[n] - count)
            # an old count may come again: at most as far behind as the link's delay allows
            with m.If(here):
                m.d.comb += Assume(behind < 128)
        m.d.comb += [Assert(~way | ((kind == 1) | (kind == 2))), Assert(~way | (vc == 0))]

        chosen = AnyConst(2)
        m.d.comb += [
            Cover((free[chosen] == 0) & (held[chosen] == Array(sizes)[chosen])),
            Cover(take & spend & arrive & freed),
            Cover((counts[chosen] == 7) & (limits[chosen] == 7)),
        ]
        return m


PROOFS = (
    Proof(
        name="link_credits",
        make=CreditsProof,
        depth=2,
        cover_depth=14,
        fault_depth=14,
        # those that break a law; a lost update is told again and breaks none, and who spends no more than is free
        # never meets a full account
        faults=(
            "a shared count of credits goes to the dedicated account",
            "a credit is not returned to the sender",
            "an arrival in the cycle of a freed slot is not counted",
        ),
    ),
)
