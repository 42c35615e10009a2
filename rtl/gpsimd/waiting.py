"""What a GPSIMD core waits for: its timer, a semaphore, a barrier, its copies."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import SEMAPHORE_INDEX_BITS
from rtl.base.fault import fault
from rtl.contract.gpsimd import Mailbox, WaitFor

__all__ = ["TIME_BITS", "Waiting"]

TIME_BITS = 48
"""Of the root clock's cycles."""

_WAIT = (Mailbox.WAIT_SEMAPHORE, Mailbox.WAIT_VALUE, Mailbox.WAIT_COMPARE)


class Waiting(wiring.Component):
    """MTIMECMP and WAIT_*: `store` puts `new` at `offset` of the mailbox, if it is one of theirs.

    looked: `value` is that of `semaphore`. now: whether the condition holds, of a semaphore in cycles with `looked`
    only; `holds`: whether it did when it was last looked at. due: the timer. for_others: a semaphore or a barrier.
    """

    store: In(1)
    offset: In(14)
    new: In(32)
    mtime: In(TIME_BITS)
    barriers: In(signed(32))
    copies: In(signed(32))
    looked: In(1)
    value: In(signed(32))
    semaphore: Out(SEMAPHORE_INDEX_BITS)
    wait_value: Out(signed(32))
    compare: Out(3)
    mtimecmp: Out(64, init=(1 << 64) - 1)
    due: Out(1)
    now: Out(1)
    holds: Out(1)
    for_others: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        of_semaphore, seen = Signal(), Signal()
        with m.If(self.looked):
            m.d.sync += seen.eq(self.now)
        with m.If(self.store), m.Switch(self.offset):
            with m.Case(Mailbox.WAIT_SEMAPHORE):
                m.d.sync += self.semaphore.eq(self.new)
            with m.Case(Mailbox.WAIT_VALUE):
                m.d.sync += self.wait_value.eq(self.new)
            with m.Case(Mailbox.WAIT_COMPARE):
                m.d.sync += self.compare.eq(self.new)
            with m.Case(Mailbox.MTIMECMP):
                m.d.sync += self.mtimecmp.eq(Cat(self.new, self.mtimecmp[32:]))
            with m.Case(Mailbox.MTIMECMPH):
                m.d.sync += self.mtimecmp.eq(Cat(self.mtimecmp[:32], self.new))
        changes = self.store & Cat(self.offset == one for one in _WAIT).any()
        with m.If(changes):
            m.d.sync += seen.eq(0)
        with m.Switch(self.compare):
            with m.Case(WaitFor.SEMAPHORE_GE):
                m.d.comb += [self.now.eq(self.value >= self.wait_value), of_semaphore.eq(1)]
            with m.Case(WaitFor.SEMAPHORE_EQ):
                m.d.comb += [self.now.eq(self.value == self.wait_value), of_semaphore.eq(1)]
            with m.Case(WaitFor.TIMER):
                m.d.comb += self.now.eq(self.due)
            with m.Case(WaitFor.DMA):
                m.d.comb += self.now.eq(self.copies >= self.wait_value)
            with m.Case(WaitFor.BARRIER):
                m.d.comb += [self.now.eq(self.barriers >= self.wait_value)]
        m.d.comb += [
            self.due.eq((self.mtime >= self.mtimecmp) & ~fault("the timer of a core is never due")),
            self.holds.eq(Mux(of_semaphore, seen, self.now)),
            self.for_others.eq(of_semaphore | (self.compare == WaitFor.BARRIER)),
        ]
        return m
