"""Credits to grant: slots of the pool by account, and which count the next flit tells."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import lowest
from rtl.base.fault import fault
from rtl.contract.link import DEDICATED_FLITS
from rtl.contract.link_config import LinkConfig
from rtl.link.rules.credit_sender import COUNT_BITS

__all__ = ["CreditReceiver"]


class CreditReceiver(wiring.Component):
    """Counts what each account's partner may have sent in all since the session began, modulo 4096.

    `clear` starts a session: the counts begin with the slots that are free then. Told next is an account whose count
    has changed, but every second flit, and every flit if none has, goes round all of them: without changes all
    accounts are told in cfg.accounts flits, else in twice as many.
    Timing: `room` is combinational from `account`; `credit_kind` to `count` come from registers and move on after
    `slot`. One arrival and one freed slot a cycle; both are seen in a cycle of `clear`, too.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.sizes = [DEDICATED_FLITS] * cfg.queues + [cfg.shared_flits] * 2
        # seen by proofs too
        self.held = [Signal(range(size + 1), name=f"held_{n}") for n, size in enumerate(self.sizes)]
        self.counts = [Signal(COUNT_BITS, name=f"count_{n}", init=size) for n, size in enumerate(self.sizes)]
        super().__init__(
            {
                "clear": In(1),
                "account": In(range(cfg.accounts)),
                "room": Out(1),
                "arrive": In(1),
                "freed": In(1),
                "freed_account": In(range(cfg.accounts)),
                "slot": In(1),
                "credit_kind": Out(2),
                "dedicated": Out(1),
                "vc": Out(3),
                "count": Out(COUNT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        accounts = cfg.accounts
        changed = Signal(accounts)
        rooms = Signal(accounts)
        for n, (size, held, count) in enumerate(zip(self.sizes, self.held, self.counts)):
            arrives = self.arrive & (self.account == n)
            leaves = self.freed & (self.freed_account == n)
            after = Signal.like(held, name=f"after_{n}")
            m.d.comb += [
                rooms[n].eq((held != size) | fault("there is always room in the receiver")),
                after.eq(
                    held
                    + (arrives & ~(fault("an arrival in the cycle of a freed slot is not counted") & leaves))
                    - leaves
                ),
            ]
            m.d.sync += held.eq(after)
            with m.If(self.clear):
                m.d.sync += count.eq(
                    Mux(fault("slots held through a new session are granted again"), size, size - after)
                )
            with m.Elif(leaves & ~fault("a credit is not returned to the sender")):
                m.d.sync += count.eq(count + 1)
        m.d.comb += self.room.eq(rooms.bit_select(self.account, 1))

        turn, round_ = Signal(range(accounts)), Signal(range(accounts))
        favour = Signal()  # the account told now was chosen because it had changed
        waiting, later, first = Signal(accounts), Signal(accounts), Signal(accounts)
        told = Signal(accounts)
        m.d.comb += [
            told.eq(self.slot << turn),
            waiting.eq(changed & ~(1 << turn)),
            later.eq(waiting & Cat(turn < n for n in range(accounts))),
            first.eq(lowest(Mux(later.any(), later, waiting))[:accounts]),
        ]
        m.d.sync += changed.eq((changed & ~told) | (self.freed << self.freed_account))
        with m.If(self.slot):
            with m.If(waiting.any() & ~favour):
                for n in range(accounts):
                    with m.If(first[n]):
                        m.d.sync += turn.eq(n)
                m.d.sync += favour.eq(1)
            with m.Else():
                following = Mux(round_ == accounts - 1, 0, round_ + 1)
                m.d.sync += [round_.eq(following), favour.eq(0)]
                m.d.sync += turn.eq(Mux(fault("an account is told only when it has changed"), turn, following))
        with m.If(self.clear):
            m.d.sync += [changed.eq(0), turn.eq(0), round_.eq(0), favour.eq(0)]

        shared = turn >= cfg.queues
        m.d.comb += [
            self.credit_kind.eq(1 + turn[0]),
            self.dedicated.eq(~shared),
            self.vc.eq(Mux(shared, 0, turn >> 1)),
            self.count.eq(Array(self.counts)[turn]),
        ]
        return m
