"""Credits to spend: how many flits of each account the partner's pool still takes."""

from amaranth.hdl import Array, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
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

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
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
        cfg = self.cfg
        queues = cfg.queues
        response = self.credit_kind == CreditKind.RESPONSE
        account = Signal(range(max(cfg.accounts, 16)))
        exists, counts, take = Signal(), Signal(), Signal()
        gained, free, total = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal(COUNT_BITS)
        stale, wrong = Signal(), Signal()
        dedicated = self.dedicated | fault("a shared count of credits goes to the dedicated account")
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
            stale.eq(
                (gained >= CREDIT_MODULUS - STALE_CREDITS) & ~fault("a repeated old count of credits is believed")
            ),
            wrong.eq((gained[-1] & ~fault("a repeated old count of credits is believed")) | total[-1]),
            take.eq(counts & exists & ~stale & (~wrong | fault("a bad count of credits is believed"))),
            self.bad_credit.eq(
                self.update
                & ((self.credit_kind == 3) | (counts & (~exists | (~stale & wrong))))
                & ~fault("a bad count of credits is believed")
            ),
        ]
        for n in range(cfg.accounts):
            spent = self.spend & (self.spend_account == n)
            with m.If(take & (account == n) & ~(fault("an update in the cycle of a spend is lost") & spent)):
                m.d.sync += [self.limit[n].eq(self.count), self.free[n].eq(total)]
            with m.Elif(spent):
                m.d.sync += self.free[n].eq(self.free[n] - 1)
            with m.If(self.clear):
                m.d.sync += [self.limit[n].eq(0), self.free[n].eq(0)]
        return m
