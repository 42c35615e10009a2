"""Copies that GPSIMD cores ask for: descriptors out of local memory into a ring of the DMA, and how they end."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.dma_port import CAUSE_BITS
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.layouts import DESCRIPTOR_LAYOUT
from rtl.contract.config import Config
from rtl.contract.gpsimd import COPIES_MAX, FAULT, cores, lanes
from rtl.contract.isa import INSTRUCTION_BYTES, Cause
from rtl.gpsimd.reach import in_local

__all__ = ["ENDED_BITS", "Copies", "Stage"]

ENDED_BITS = 4
"""Copies that may end between two edges of the engine's clock."""

_UNDER_WAY = 8  # descriptors that the DMA has taken, at most: all may end between two edges of the engine's clock
_WHY_BITS = FAULT.offset("core") - FAULT.offset("cause")
_OWNER = data.StructLayout({"core": 3, "pc": 32})


class Stage(enum.IntEnum, shape=2):
    """Of the descriptor in hand."""

    FIND = 0
    READ = 1
    OFFER = 2
    WRONG = 3


class Copies(wiring.Component):
    """push[k]: core k stores `address[k]` to DMA_PUSH, with the instruction at pc[k], until `taken[k]`; then its
    descriptor has been read. While line_en[k] row `row` of its local memory is read, and `line[k]` has it in the next
    cycle. o: the descriptors, in the order in which they were taken. ended: how many the ring has completed since the
    cycle before; busy, cause: of that ring. done[k]: how many of core k have completed, all its own since a reset;
    free[k]: how many it may push. failed: one that has not completed never will; told: gpsimd.FAULT of it.
    active: something is under way. Timing: a descriptor is read in 3 cycles and one more for each line; the next when
    the DMA has taken it.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.cores = count = cores(cfg.partitions)
        self.row_bytes = 4 * lanes(cfg.partitions)
        lines = INSTRUCTION_BYTES // self.row_bytes
        # the descriptor in hand; seen by proofs too
        self.stage = Signal(Stage)
        self.owner = Signal(count)  # one bit a core
        self.kept = Signal(_OWNER)
        self.first = Signal(exact_log2(cfg.gpsimd.local_bytes // self.row_bytes))
        self.asked, self.came, self.arrives = Signal(range(lines + 1)), Signal(range(lines + 1)), Signal()
        self.held = Signal(8 * INSTRUCTION_BYTES)
        self.halted = Signal()
        self.due = Signal(ENDED_BITS + 1)
        super().__init__(
            {
                "push": In(count),
                "address": In(32).array(count),
                "pc": In(32).array(count),
                "taken": Out(count),
                "line_en": Out(count),
                "row": Out(exact_log2(cfg.gpsimd.local_bytes // self.row_bytes)),
                "line": In(8 * self.row_bytes).array(count),
                "o": Out(stream.Signature(DESCRIPTOR_LAYOUT)),
                "ended": In(ENDED_BITS),
                "busy": In(1),
                "cause": In(CAUSE_BITS),
                "done": Out(32).array(count),
                "free": Out(range(COPIES_MAX + 1)).array(count),
                "failed": Out(1),
                "told": Out(FAULT.width),
                "active": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lines = INSTRUCTION_BYTES // self.row_bytes
        m.submodules.turn = turn = RoundRobin(self.cores)
        m.submodules.owners = owners = Fifo(_OWNER, _UNDER_WAY)
        stage, owner, kept, first, held = self.stage, self.owner, self.kept, self.first, self.held
        asked, came, arrives = self.asked, self.came, self.arrives
        address, mine = Signal(32), Signal(_OWNER)

        # read one, line by line
        for k in range(self.cores):
            m.d.comb += turn.requests[k].eq(self.push[k] & (self.free[k] != 0))
            with m.If(turn.grant[k]):
                m.d.comb += [address.eq(self.address[k]), mine.core.eq(k), mine.pc.eq(self.pc[k])]
        unaligned = address[: exact_log2(INSTRUCTION_BYTES)] != 0
        outside = ~in_local(address, self.cfg.gpsimd.local_bytes)
        wrong, anywhere = Signal(CAUSE_BITS), fault("a descriptor is read from anywhere")
        pushed = (self.push & owner).any()
        m.d.comb += [
            turn.accept.eq(stage == Stage.FIND),
            self.line_en.eq(Mux((stage == Stage.READ) & (asked != lines), owner & self.push, 0)),
            self.row.eq(first + (asked ^ fault("a line of a descriptor is read in another's place"))),
            self.o.valid.eq((stage == Stage.OFFER) & owners.i.ready),
            self.o.payload.eq(held),
            owners.i.valid.eq((stage == Stage.OFFER) & self.o.ready),
            owners.i.payload.eq(kept),
        ]
        m.d.sync += arrives.eq(self.line_en.any())
        with m.If(arrives):
            m.d.sync += [
                held.eq(Cat(held[8 * self.row_bytes :], Array(self.line)[kept.core])),
                came.eq(came + 1),
            ]
        with m.Switch(stage):
            with m.Case(Stage.FIND):
                with m.If(turn.grant.any()):
                    m.d.sync += [
                        owner.eq(turn.grant),
                        kept.eq(mine),
                        first.eq(address >> exact_log2(self.row_bytes)),
                        asked.eq(0),
                        came.eq(0),
                        wrong.eq(Mux(unaligned, Cause.MISALIGNED, Cause.OUT_OF_RANGE)),
                        stage.eq(Mux((unaligned | outside) & ~anywhere, Stage.WRONG, Stage.READ)),
                    ]
            with m.Case(Stage.READ):
                with m.If(self.line_en.any()):
                    m.d.sync += asked.eq(asked + 1)
                with m.If(~pushed):  # the core was stopped
                    m.d.sync += stage.eq(Stage.FIND)
                with m.Elif(came == lines):
                    m.d.comb += self.taken.eq(owner)
                    m.d.sync += stage.eq(Stage.OFFER)
            with m.Case(Stage.OFFER):
                with m.If(self.o.valid & self.o.ready):
                    m.d.sync += stage.eq(Stage.FIND)

        # the ends of those under way, one a cycle
        halted, due, ends = self.halted, self.due, Signal()
        m.d.comb += [ends.eq(due != 0), owners.o.ready.eq(ends)]
        m.d.sync += [due.eq(due + self.ended - ends), halted.eq(self.cause != 0)]
        for k in range(self.cores):
            under_way = Signal(range(COPIES_MAX + 1), name=f"under_way_{k}")
            of_core = ends & (owners.o.payload.core == k)
            with m.If(of_core & ~fault("a copy of a core that has completed is not counted")):
                m.d.sync += self.done[k].eq(self.done[k] + 1)
            m.d.sync += under_way.eq(under_way + self.taken[k] - of_core)
            m.d.comb += self.free[k].eq(COPIES_MAX - under_way)
        for failed, why, of in ((stage == Stage.WRONG, wrong, kept), (halted & ~ends, self.cause, owners.o.payload)):
            with m.If(failed):
                m.d.comb += [self.failed.eq(1), self.told.eq(Cat(of.pc, why[:_WHY_BITS], of.core))]
        waits = (stage == Stage.OFFER) | (owners.level != 0)
        early = fault("a run is done before its copies")
        # of a ring that has halted what completed before is still to be counted; then one has failed, not before
        m.d.comb += self.active.eq((((~halted | ends) & waits) | self.busy) & ~early)
        return m
