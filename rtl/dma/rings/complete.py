"""Completion: a descriptor ends when all its rows have committed and it is the oldest of its ring."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import RoundRobin
from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.dma_port import SEMAPHORE_UPDATE, RingStatusSignature, ring_count
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.isa import Cause, Update
from rtl.dma.layouts import SLOTS, done_layout, outcome_layout, slot_bits

__all__ = ["Complete"]

_ROWS_BITS = 13  # rows of one descriptor that may be under way: all FIFOs of 16 movers and more


class Complete(wiring.Component):
    """Slots of descriptors under way: SLOTS for each ring, a window that moves from oldest to youngest.

    In: `opened` (a ring takes its tail slot), `report` with `outcome` (it was checked), `issued` (a row of
    `issued_slot` left the row generator; `last`: the last one), `done[e]` (a row has committed;
    with a link one more, whose rows are the pieces of Initiator).
    Out: `signal`, then `ring_status[r].completed`; after a refusal or a bus error the fault of the ring instead.
    What follows a fault in its ring ends without signal or count. `stop`: rings that have halted.
    Timing: one row a cycle; a descriptor in 2 cycles or as long as `signal` is refused.
    """

    def __init__(self, cfg: Config, *, link: bool = False):
        self.cfg = cfg
        self.sources = cfg.dma.engines + link
        rings = ring_count(cfg)
        slot = slot_bits(cfg)
        super().__init__(
            {
                "start": In(1),
                "room": Out(rings),
                "tail": Out(data.ArrayLayout(range(SLOTS), rings)),
                "opened": In(rings),
                "report": In(1),
                "refused": In(1),
                "report_slot": In(slot),
                "outcome": In(outcome_layout()),
                "issued": In(1),
                "last": In(1),
                "issued_slot": In(slot),
                "done": In(stream.Signature(done_layout(cfg))).array(self.sources),
                "signal": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "ring_status": Out(RingStatusSignature().flip()).array(rings),
                "waiting": In(rings),
                "stop": Out(rings),
                "busy": Out(1),
                "faulted": Out(1),
            }
        )

    def _collect(self, m: Module) -> tuple[Value, data.View]:
        """One committed row a cycle: (valid, row)."""
        movers = self.sources
        m.submodules.turn = turn = RoundRobin(movers)
        row = Signal(done_layout(self.cfg))
        bits = Value.cast(row)
        offers = self.done
        m.d.comb += [turn.requests.eq(Cat(o.valid for o in offers)), turn.accept.eq(1)]
        chosen: Value = Value.cast(offers[0].payload) & turn.grant[0].replicate(len(bits))
        for e in range(1, movers):
            chosen = chosen | (Value.cast(offers[e].payload) & turn.grant[e].replicate(len(bits)))
        m.d.comb += bits.eq(chosen)
        m.d.comb += [o.ready.eq(turn.grant[e]) for e, o in enumerate(offers)]
        return turn.grant.any(), row

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rings = ring_count(cfg)
        slots = rings * SLOTS
        arrived, row = self._collect(m)

        outcomes = memory.Memory(shape=outcome_layout(), depth=slots, init=[])
        m.submodules.outcomes = outcomes
        keep = outcomes.write_port()
        look = outcomes.read_port(domain="comb")
        m.d.comb += [
            keep.en.eq(self.report),
            keep.addr.eq(self.report_slot),
            keep.data.eq(self.outcome),
        ]

        ends = Signal(slots)  # all rows have committed, or there are none
        bad_read = Signal(slots)
        bad_write = Signal(slots)
        for s in range(slots):
            rows = Signal(_ROWS_BITS, name=f"rows{s}")
            sent = Signal(name=f"sent{s}")
            leaves = Signal(name=f"leaves{s}")
            commits = Signal(name=f"commits{s}")
            ring, place = divmod(s, SLOTS)
            m.d.comb += [
                leaves.eq(self.issued & (self.issued_slot == s)),
                commits.eq(arrived & (row.slot == s)),
                ends[s].eq(
                    sent & ((rows == 0) | ((rows == 1) & fault("a descriptor may end while its last row is under way")))
                ),
            ]
            with m.If(leaves & ~commits):
                m.d.sync += rows.eq(rows + 1)
            with m.Elif(commits & ~leaves):
                m.d.sync += rows.eq(rows - 1)
            with m.If(self.opened[ring] & (self.tail[ring] == place)):
                m.d.sync += [sent.eq(0), bad_read[s].eq(0), bad_write[s].eq(0)]
            with m.If((leaves & self.last) | (self.refused & self.report & (self.report_slot == s))):
                m.d.sync += sent.eq(1)
            with m.If(commits & ~fault("a bus error of a DMA is not seen")):
                m.d.sync += [
                    bad_read[s].eq(bad_read[s] | row.read_error),
                    bad_write[s].eq(bad_write[s] | row.write_error),
                ]

        # The oldest of each ring, and then one of those that have ended.
        heads = [Signal(range(SLOTS), name=f"head{r}") for r in range(rings)]
        used = [Signal(range(SLOTS + 1), name=f"used{r}") for r in range(rings)]
        m.submodules.pick = pick = RoundRobin(rings)
        ending = Signal()
        at = Signal(slot_bits(cfg))
        owner = Signal(rings)
        closes = Signal()  # the descriptor at `at` ends in this cycle
        for r in range(rings):
            m.d.comb += [
                pick.requests[r].eq((used[r] != 0) & Array(ends[r * SLOTS : (r + 1) * SLOTS])[heads[r]]),
                self.room[r].eq(used[r] != SLOTS),
                self.tail[r].eq(heads[r] + used[r]),
            ]
            with m.If(pick.grant[r] & ~ending):
                m.d.sync += at.eq(r * SLOTS + heads[r])
            with m.If(closes & owner[r]):
                m.d.sync += heads[r].eq(heads[r] + 1)
            m.d.sync += used[r].eq(used[r] + self.opened[r] - (closes & owner[r]))
        m.d.comb += [pick.accept.eq(~ending), look.addr.eq(at)]
        with m.If(~ending):
            m.d.sync += [ending.eq(pick.grant.any()), owner.eq(pick.grant)]
        with m.Elif(closes):
            m.d.sync += ending.eq(0)

        outcome = look.data
        failed = Signal()
        halted = Signal(rings)  # the fault is told; what follows ends in silence
        stopped = Signal(rings)  # the fault is known; nothing more is taken
        silent = (owner & halted).any()
        write_failed = Signal()
        read_failed = Signal()
        bus = Signal()
        m.d.comb += [
            read_failed.eq((bad_read >> at)[0]),
            write_failed.eq((bad_write >> at)[0]),
            bus.eq(read_failed | write_failed),
            failed.eq(ending & ~silent & ((outcome.cause != Cause.NONE) | bus)),
            self.signal.valid.eq(ending & ~silent & ~failed & (outcome.signal_update != Update.NONE)),
            self.signal.payload.index.eq(outcome.signal_index),
            self.signal.payload.update.eq(outcome.signal_update),
            self.signal.payload.value.eq(outcome.signal_value),
            closes.eq(ending & (~self.signal.valid | self.signal.ready)),
            self.stop.eq(stopped),
            self.faulted.eq(halted.any()),
            self.busy.eq(Cat(u != 0 for u in used).any() | ending),
        ]
        for r, status in enumerate(self.ring_status):
            sequence = Signal(SEQUENCE_BITS, name=f"sequence{r}")
            cause = Signal(8, name=f"cause{r}")
            address = Signal(64, name=f"address{r}")
            m.d.comb += [
                status.completed.eq(closes & owner[r] & ~silent & ~failed),
                status.busy.eq(self.waiting[r] | (used[r] != 0)),
                status.cause.eq(cause),
                status.sequence.eq(sequence),
                status.address.eq(address),
            ]
            refused = self.refused & self.report & (self.report_slot // SLOTS == r)
            with m.If(self.start):
                m.d.sync += stopped[r].eq(0)
            with m.Elif((refused | (failed & owner[r])) & ~fault("rings of a DMA do not halt")):
                m.d.sync += stopped[r].eq(1)
            with m.If(self.start):
                m.d.sync += [sequence.eq(0), cause.eq(Cause.NONE), address.eq(0), halted[r].eq(0)]
            with m.Elif(failed & owner[r]):
                m.d.sync += [
                    cause.eq(Mux(bus, Cause.BUS_ERROR, outcome.cause)),
                    address.eq(Mux(write_failed & ~read_failed, outcome.destination, outcome.address)),
                    halted[r].eq(~fault("rings of a DMA do not halt")),
                ]
            with m.Elif(status.completed):
                m.d.sync += sequence.eq(sequence + 1)
        return m
