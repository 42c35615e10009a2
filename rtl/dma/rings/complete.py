"""Completion: a descriptor ends when all its rows have committed and it is the oldest of its ring."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import RoundRobin
from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.dma_port import SEMAPHORE_UPDATE, RingStatusSignature, ring_count
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.isa import Cause, Update
from rtl.contract.memmap import CoreId, Space
from rtl.dma.layouts import INDEX_PLACE_BITS, SPACE_LSB, done_layout, outcome_layout, slot_bits

__all__ = ["Complete"]

_ROWS_BITS = 13  # rows of one descriptor that may be under way: all FIFOs of 16 movers and more


def _one(event: Value, slot: Value, ring: int, depth: int) -> Value:
    """A bit a slot of the ring: that of `slot` in a cycle of `event`, if it is the ring's."""
    return Mux(event & (slot // depth == ring), 1 << (slot % depth), 0)


def _bit(vectors: list[Signal], slot: Value) -> Value:
    """The bit of a slot in vectors of a bit a slot, one of each ring."""
    depth = len(vectors[0])
    return Array(vectors)[slot // depth].bit_select(slot % depth, 1)


class Complete(wiring.Component):
    """Slots of descriptors under way: dma.ring_depth for each ring, a window that moves from oldest to youngest.

    In: `opened` (a ring takes its tail slot), `report` with `outcome` (it was checked), `issued` (a row of
    `issued_slot` left the row generator; `last`: the last one), `done[e]` (a row has committed;
    with a link one more, whose rows are the pieces of Initiator; with dma.indirect the last, whose rows were left out).
    `bad`: the row that is issued has a bad index, at `bad_at`.
    Out: `signal`, of the descriptor in `signal_slot`, then `ring_status[r].completed`; after a refusal, a bus error or
    a bad index the fault of the ring instead. What follows a fault in its ring ends without signal or count. `stop`:
    rings that have halted.
    Timing: one row a cycle; a descriptor in 2 cycles or as long as `signal` is refused.
    """

    def __init__(self, cfg: Config, *, link: bool = False):
        self.cfg = cfg
        self.sources = cfg.dma.engines + link + cfg.dma.indirect
        self.depth = cfg.dma.ring_depth
        rings = ring_count(cfg)
        slot = slot_bits(cfg)
        # seen by proofs too; the vectors have a bit a slot of the ring
        self.ends, self.sent, self.left, self.came = (
            [Signal(self.depth, name=f"{name}{r}") for r in range(rings)] for name in ("ends", "sent", "left", "came")
        )
        self.bad_index = [Signal(self.depth, name=f"bad_index{r}") for r in range(rings)]
        self.counts = tuple(memory.Memory(shape=_ROWS_BITS, depth=rings * self.depth, init=[]) for _ in range(2))
        self.heads = [Signal(range(self.depth), name=f"head{r}") for r in range(rings)]
        self.used = [Signal(range(self.depth + 1), name=f"used{r}") for r in range(rings)]
        self.ending = Signal()
        self.at = Signal(slot)
        self.owner = Signal(rings)
        self.closes = Signal()  # the descriptor at `at` ends in this cycle
        super().__init__(
            {
                "start": In(1),
                "room": Out(rings),
                "tail": Out(data.ArrayLayout(range(self.depth), rings)),
                "opened": In(rings),
                "report": In(1),
                "refused": In(1),
                "report_slot": In(slot),
                "outcome": In(outcome_layout()),
                "issued": In(1),
                "last": In(1),
                "issued_slot": In(slot),
                **({"bad": In(1), "bad_at": In(INDEX_PLACE_BITS)} if cfg.dma.indirect else {}),
                "done": In(stream.Signature(done_layout(cfg))).array(self.sources),
                "signal": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "signal_slot": Out(slot),
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

    def _only(self, m: Module, commits: Value, slot: Value, left: Value, came: Value) -> Value:
        """Whether the row of `slot` that commits is the only one of its descriptor under way. `left`, `came`: rows of
        the descriptor at issued_slot have left before, of that at `slot` have committed: what is counted counts."""
        issued, committed = self.counts
        m.submodules.issued, m.submodules.committed = issued, committed
        both = issued.read_port(domain="comb"), committed.read_port(domain="comb")
        now = [Signal(_ROWS_BITS, name=f"{name}_now") for name in ("issued", "committed")]
        enables = self.issued, commits
        for store, read, en, at, known, after in zip(
            (issued, committed), both, enables, (self.issued_slot, slot), (left, came), now, strict=True
        ):
            write = store.write_port()
            m.d.comb += [
                read.addr.eq(at),
                after.eq(Mux(known, read.data, 0) + 1),
                write.en.eq(en),
                write.addr.eq(at),
                write.data.eq(after),
            ]
        others = issued.read_port(domain="comb")
        m.d.comb += others.addr.eq(slot)
        lost = fault("a row that leaves as one of its descriptor commits is not counted")
        return now[1] == Mux(self.issued & (self.issued_slot == slot) & ~lost, now[0], others.data)

    def _bad_indices(self, m: Module) -> tuple[Value, Value]:
        """Of the descriptor at `at`: whether a row's index was bad, and where the first of them lies in the core."""
        if not self.cfg.dma.indirect:
            return Const(0), Const(0)
        rings = len(self.heads)
        seen = self.bad_index
        for r in range(rings):
            opens, bad = self.opened[r] << self.tail[r], _one(self.bad, self.issued_slot, r, self.depth)
            m.d.sync += seen[r].eq((seen[r] & ~opens) | Mux(fault("a bad index is not seen"), 0, bad))
        places = memory.Memory(shape=INDEX_PLACE_BITS, depth=rings * self.depth, init=[])
        m.submodules.bad_places = places
        keep, look = places.write_port(), places.read_port(domain="comb")
        m.d.comb += [
            keep.en.eq(self.bad & ~_bit(seen, self.issued_slot)),
            keep.addr.eq(self.issued_slot),
            keep.data.eq(self.bad_at),
            look.addr.eq(self.at),
        ]
        in_sbuf = Const(Space.SBUF, CoreId.LSB - SPACE_LSB)
        return _bit(seen, self.at), Cat(Const(0, 2), look.data, Const(0, SPACE_LSB - INDEX_PLACE_BITS - 2), in_sbuf)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rings = ring_count(cfg)
        slots = rings * self.depth
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

        # A descriptor ends with its refusal, or with the commit of a row when the last one has left and no other is
        # under way. All vectors: one bit a slot of the ring.
        depth = self.depth
        ends, sent, left, came = self.ends, self.sent, self.left, self.came
        bad_read, bad_write = (
            [Signal(depth, name=f"{name}{r}") for r in range(rings)] for name in ("bad_read", "bad_write")
        )
        only = self._only(m, arrived, row.slot, _bit(left, self.issued_slot), _bit(came, row.slot))
        unseen = fault("a bus error of a DMA is not seen")
        stays = fault("what has left of a descriptor stays with its slot")
        early = fault("a descriptor may end while its last row is under way")
        for r in range(rings):
            opens, leaves, commits, refuses = (
                Signal(depth, name=f"{name}{r}") for name in ("opens", "leaves", "commits", "refuses")
            )
            last = Mux(self.last, leaves, 0)
            m.d.comb += [
                opens.eq(self.opened[r] << self.tail[r]),
                leaves.eq(_one(self.issued, self.issued_slot, r, depth)),
                commits.eq(_one(arrived, row.slot, r, depth)),
                refuses.eq(_one(self.refused & self.report, self.report_slot, r, depth)),
            ]
            m.d.sync += [
                left[r].eq((left[r] & Mux(stays, -1, ~opens)) | leaves),
                came[r].eq((came[r] & ~opens) | commits),
                sent[r].eq((sent[r] & ~opens) | last),
                ends[r].eq(
                    (ends[r] & ~opens) | Mux(only, commits & (sent[r] | last), 0) | Mux(early, last, 0) | refuses
                ),
                bad_read[r].eq((bad_read[r] & ~opens) | Mux(row.read_error & ~unseen, commits, 0)),
                bad_write[r].eq((bad_write[r] & ~opens) | Mux(row.write_error & ~unseen, commits, 0)),
            ]

        # The oldest of each ring, and then one of those that have ended.
        heads, used = self.heads, self.used
        m.submodules.pick = pick = RoundRobin(rings)
        ending, at, owner, closes = self.ending, self.at, self.owner, self.closes
        for r in range(rings):
            m.d.comb += [
                pick.requests[r].eq((used[r] != 0) & ends[r].bit_select(heads[r], 1)),
                self.room[r].eq(used[r] != self.depth),
                self.tail[r].eq(heads[r] + used[r]),
            ]
            with m.If(pick.grant[r] & ~ending):
                m.d.sync += at.eq(r * self.depth + heads[r])
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
        none, none_at = self._bad_indices(m)
        m.d.comb += [
            read_failed.eq(_bit(bad_read, at)),
            write_failed.eq(_bit(bad_write, at)),
            bus.eq(read_failed | write_failed),
            failed.eq(ending & ~silent & ((outcome.cause != Cause.NONE) | bus | none)),
            self.signal.valid.eq(ending & ~silent & ~failed & (outcome.signal_update != Update.NONE)),
            self.signal_slot.eq(at),
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
            refused = self.refused & self.report & (self.report_slot // self.depth == r)
            with m.If(self.start):
                m.d.sync += stopped[r].eq(0)
            with m.Elif((refused | (failed & owner[r])) & ~fault("rings of a DMA do not halt")):
                m.d.sync += stopped[r].eq(1)
            with m.If(self.start):
                m.d.sync += [sequence.eq(0), cause.eq(Cause.NONE), address.eq(0), halted[r].eq(0)]
            with m.Elif(failed & owner[r]):
                m.d.sync += [
                    cause.eq(Mux(bus, Cause.BUS_ERROR, Mux(none, Cause.BAD_INDEX, outcome.cause))),
                    address.eq(Mux(write_failed & ~read_failed, outcome.destination, outcome.address)),
                    halted[r].eq(~fault("rings of a DMA do not halt")),
                ]
                with m.If(none & ~bus):
                    m.d.sync += address[: CoreId.LSB].eq(none_at)
            with m.Elif(status.completed):
                m.d.sync += sequence.eq(sequence + 1)
        return m
