"""Credits to spend: how many flits of each account the partner's pool still takes."""

from amaranth.hdl import Array, Module, Mux, Signal, ValueLike, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.plant import planted
from rtl.contract.link import CREDIT_MODULUS, CreditKind
from rtl.contract.link_config import LinkConfig

__all__ = ["COUNT_BITS", "STALE_CREDITS", "CreditSender"]

COUNT_BITS = ceil_log2(CREDIT_MODULUS)
STALE_CREDITS = 256
"""A count so little behind the last one comes from a repeated flit and says nothing."""


class CreditSender(wiring.Component):
    """`free` credits by account (class * 2 + kind: dedicated; then the shared one of each kind); 0 after `clear`.

    The partner counts what it has room for since the session began; the last count of an account less what was
    spent is free. A count that would leave 2,048 or more free is a bad one and ignored.
    Timing: `free` is a register; `bad_credit` is combinational with `update`. One update and one spend a cycle.
    Spending what is not free is an error of the user.
    """

    FAULTS = {
        1: "an update in the cycle of a spend is lost",
        2: "a repeated old count is believed",
        3: "a shared count goes to the dedicated account",
        4: "a bad count is believed",
    }

    def __init__(self, cfg: LinkConfig, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        self.limit = [Signal(COUNT_BITS, name=f"limit_{n}") for n in range(cfg.accounts)]
        super().__init__(
            {
                "clear": In(1),
                "update": In(1),
                "credit_kind": In(2),
                "dedicated": In(1),
                "vc": In(3),
                "count": In(COUNT_BITS),
                "spend": In(1),
                "spend_account": In(range(cfg.accounts)),
                "free": Out(data.ArrayLayout(unsigned(COUNT_BITS), cfg.accounts)),
                "bad_credit": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg, plant = self.cfg, self.plant
        queues = cfg.queues
        response = self.credit_kind == CreditKind.RESPONSE
        account = Signal(range(max(cfg.accounts, 16)))
        exists, counts, take = Signal(), Signal(), Signal()
        gained, free, total = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal(COUNT_BITS)
        stale, wrong = Signal(), Signal()
        dedicated = self.dedicated | planted(plant, 3)
        m.d.comb += [
            account.eq(Mux(dedicated, (self.vc << 1) | response, queues + response)),
            exists.eq(~dedicated | (self.vc < cfg.classes)),
            counts.eq(self.update & ((self.credit_kind == CreditKind.REQUEST) | response)),
            gained.eq(self.count - Array(self.limit)[account]),
            free.eq(
                Array(self.free[n] for n in range(cfg.accounts))[account]
                - (self.spend & (self.spend_account == account))
            ),
            total.eq(free + gained),
            stale.eq((gained >= CREDIT_MODULUS - STALE_CREDITS) & ~planted(plant, 2)),
            wrong.eq((gained[-1] & ~planted(plant, 2)) | total[-1]),
            take.eq(counts & exists & ~stale & (~wrong | planted(plant, 4))),
            self.bad_credit.eq(
                self.update & ((self.credit_kind == 3) | (counts & (~exists | (~stale & wrong)))) & ~planted(plant, 4)
            ),
        ]
        for n in range(cfg.accounts):
            spent = self.spend & (self.spend_account == n)
            with m.If(take & (account == n) & ~(planted(plant, 1) & spent)):
                m.d.sync += [self.limit[n].eq(self.count), self.free[n].eq(total)]
            with m.Elif(spent):
                m.d.sync += self.free[n].eq(self.free[n] - 1)
            with m.If(self.clear):
                m.d.sync += [self.limit[n].eq(0), self.free[n].eq(0)]
        return m
