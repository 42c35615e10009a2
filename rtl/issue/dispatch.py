"""Holds the next instruction until its semaphores allow it, then hands it to who executes it."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import COMMAND, SEQUENCE_BITS
from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, RELEASE, SEMAPHORE_INDEX_BITS
from rtl.base.fault import fault
from rtl.base.layouts import DESCRIPTOR_LAYOUT
from rtl.contract.isa import COPY_AT, INSTRUCTION, Cause, Opcode, Wait
from rtl.issue.check import CHECKED

__all__ = ["OUTSTANDING", "Dispatch"]

OUTSTANDING = data.StructLayout(
    {
        "local": 1,  # nothing to wait for: it is done as soon as those before it are
        "update": 2,
        "semaphore": SEMAPHORE_INDEX_BITS,
        "value": signed(32),
        "cause": CAUSE_BITS,
        "sequence": SEQUENCE_BITS,
    }
)
"""What retiring needs to know of an instruction that has been dispatched, or of the fault that halts."""


_FIRST_OF_ENGINES = 16  # opcode


class Dispatch(wiring.Component):
    """In order, one instruction at a time; the next is checked meanwhile.

    A checked instruction whose cause is not 0 halts the queue at once, whatever it waits for. Otherwise
    both conditions must hold in the same cycle; from then on it may go. It goes when `command` (engine),
    `release` (DMA_TRIGGER) or `outstanding` (always needed) take it. `refused` with a transfer of
    `release`: the ring does not have so many descriptors left, BAD_RING. `copies`: this queue has DMA_COPY, which goes
    when `copy` takes it.
    Timing: 2 cycles an instruction if nothing waits.
    """

    def __init__(self, copies: bool = False):
        self.copies = copies
        # seen by proofs too
        self.current = Signal(CHECKED)
        self.full = Signal()
        self.cleared = Signal()  # its conditions have held
        # what the instruction is, decided when it enters
        self.local = Signal()
        self.trigger = Signal()
        self.copying = Signal()
        self.faulty = Signal()
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(CHECKED)),
                "fetch_cause": In(CAUSE_BITS),  # no further word will come
                "fetch_address": In(64),
                "halt": In(1),  # the engine has failed: nothing more is dispatched
                "index": Out(SEMAPHORE_INDEX_BITS).array(2),
                "value": In(signed(32)).array(2),
                "command": Out(stream.Signature(COMMAND)),
                "release": Out(stream.Signature(RELEASE)),
                "refused": In(1),
                **({"copy": Out(stream.Signature(DESCRIPTOR_LAYOUT))} if copies else {}),
                "outstanding": Out(stream.Signature(OUTSTANDING)),
                "issued": Out(COUNT_BITS),  # without a faulty one
                "issues": Out(1),  # it goes up at the end of this cycle
                "fault_address": Out(64),
                "halted": Out(1),
                "waiting": Out(1),  # for a semaphore
                "empty": Out(1),  # no instruction here
            }
        )

    def _holds(self, number: int) -> Value:
        word = self.current.word
        kind = word[f"wait{number}"]
        value = self.value[number]
        limit = word[f"wait{number}_value"]
        reached = Mux(fault("GE compares with greater"), value > limit, value >= limit)
        return Mux(kind == Wait.GE, reached, (kind == Wait.NONE) | (value == limit))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        current, full, cleared = self.current, self.full, self.cleared
        local, trigger, faulty = self.local, self.trigger, self.faulty
        incoming = self.i.payload.word
        word = current.word

        go = Signal()
        done = Signal()  # it leaves in this cycle
        push = self.outstanding
        to_engine = full & go & ~local
        to_ring = full & go & trigger
        bad = Signal()
        m.d.comb += [
            self.index[0].eq(word.wait0_semaphore),
            self.index[1].eq(word.wait1_semaphore),
            go.eq(
                cleared
                & push.ready
                & ~self.halt
                & (~faulty | fault("the faulty instruction is dispatched to the engine too"))
            ),
            self.command.valid.eq(to_engine),
            self.command.payload.word.eq(word),
            self.command.payload.sequence.eq(self.issued[:SEQUENCE_BITS]),
            self.release.valid.eq(to_ring & ~faulty),
            self.release.payload.ring.eq(word.imm0),
            self.release.payload.count.eq(word.imm1),
            bad.eq(full & faulty),
            self.waiting.eq(full & ~cleared & ~faulty),
            self.empty.eq(~full),
        ]
        with m.If(bad & ~fault("the faulty instruction is dispatched to the engine too")):
            m.d.comb += done.eq(push.ready)
        with m.Elif(trigger):
            m.d.comb += done.eq(to_ring & self.release.ready)
        if self.copies:
            with m.Elif(self.copying):
                m.d.comb += done.eq(full & go & self.copy.ready)
        with m.Elif(local):
            m.d.comb += done.eq(full & go)
        with m.Else():
            m.d.comb += done.eq(to_engine & self.command.ready)

        if self.copies:
            m.d.comb += [
                self.copy.valid.eq(full & (go | fault("a copy does not wait")) & self.copying & ~faulty),
                self.copy.payload.eq(Value.cast(word)[COPY_AT : INSTRUCTION.offset("imm2")]),
            ]
        refused = to_ring & self.refused
        starved = ~full & ~self.i.valid & (self.fetch_cause != 0) & ~self.halted
        m.d.comb += [
            push.valid.eq(done | starved),
            push.payload.local.eq(local),
            push.payload.update.eq(word.update),
            push.payload.semaphore.eq(word.update_semaphore),
            push.payload.value.eq(word.update_value),
            push.payload.sequence.eq(self.issued[:SEQUENCE_BITS]),
        ]
        with m.If(starved):
            m.d.comb += push.payload.cause.eq(self.fetch_cause)
        with m.Elif(refused):
            m.d.comb += push.payload.cause.eq(Cause.BAD_RING)
        with m.Else():
            m.d.comb += push.payload.cause.eq(current.cause)

        holds0 = self._holds(0)
        holds1 = self._holds(1)
        both = Mux(fault("only one of two conditions has to hold"), holds0 | holds1, holds0 & holds1)
        with m.If(full & both):
            m.d.sync += cleared.eq(1)

        faulted = (push.valid & push.ready) & (push.payload.cause != 0)
        with m.If(done):
            m.d.sync += full.eq(0)
        m.d.comb += self.issues.eq(push.valid & push.ready & (push.payload.cause == 0))
        with m.If(self.issues):
            m.d.sync += self.issued.eq(self.issued + 1)
        with m.If(faulted & ~fault("a fault does not halt the queue")):
            m.d.sync += [
                self.halted.eq(1),
                self.fault_address.eq(Mux(starved, self.fetch_address, current.address)),
            ]
        # A cycle between two instructions keeps ready free of what the engine says.
        m.d.comb += self.i.ready.eq(~full & ~self.halted)
        with m.If(self.i.valid & self.i.ready):
            opcode = incoming.opcode
            m.d.sync += [
                current.eq(self.i.payload),
                full.eq(1),
                cleared.eq((incoming.wait0 == Wait.NONE) & (incoming.wait1 == Wait.NONE)),
                faulty.eq(self.i.payload.cause != 0),
                local.eq(opcode < _FIRST_OF_ENGINES),
                trigger.eq(opcode == Opcode.DMA_TRIGGER),
                self.copying.eq(opcode == Opcode.DMA_COPY),
            ]
        with m.If(self.halt):
            m.d.sync += self.halted.eq(1)
        with m.If(self.start):
            m.d.sync += [full.eq(0), self.issued.eq(0), self.halted.eq(0), self.fault_address.eq(0)]
        return m
