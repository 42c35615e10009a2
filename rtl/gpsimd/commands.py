"""Instructions of the GPSIMD queue, one after the other: what is wrong with one, which cores run, and how it ended."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.dispatch import COMMAND
from rtl.base.dma_port import CAUSE_BITS
from rtl.base.fault import fault
from rtl.base.layouts import INSTRUCTION_LAYOUT, layout
from rtl.base.pattern import operand
from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.config import Config
from rtl.contract.gpsimd import FAULT, LOAD, RUN, WATCHDOG_CYCLES, cores, lanes
from rtl.contract.isa import Cause, Opcode
from rtl.contract.memmap import Space

__all__ = ["ENDS", "Commands", "Stage"]


class Stage(enum.IntEnum, shape=3):
    """Of the instruction."""

    NONE = 0
    CHECK = 1
    MOVE = 2  # GP_LOAD, GP_STORE
    START = 3  # cores are reset
    RUN = 4
    END = 5  # stores are on their way


ENDS = data.StructLayout({"ended": 1, "trapped": 1, "lost": 1, "result": 32, "cause": 5, "pc": 32})
"""What a core tells in its last cycle: an exit value, a trap that its handler tells, or one that nobody handles."""


class Commands(wiring.Component):
    """Takes an instruction when the one before is done. `word` is the one in hand.

    filled: cores that have an image; fills: those that get one now. move, in the first cycle of MOVE; `moved` ends it.
    run: cores that run. ends: what each tells, looked at while it runs. busy: a store or a copy of any has not
    committed. copy_failed: one that a core pushed never will; copy_fault: gpsimd.FAULT of it. done, with `cause` and
    `address`: as EngineSignature has them. Timing: a run begins 3 cycles after its instruction was taken, and is done 2
    cycles after its last core.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.cores = cores(cfg.partitions)
        super().__init__(
            {
                "command": In(stream.Signature(COMMAND)),
                "word": Out(INSTRUCTION_LAYOUT),
                "stage": Out(Stage),
                "filled": In(self.cores),
                "fills": Out(self.cores),
                "chosen": Out(self.cores),
                "move": Out(1),
                "moved": In(1),
                "run": Out(self.cores),
                "ends": In(ENDS).array(self.cores),
                "busy": In(1),
                "copy_failed": In(1),
                "copy_fault": In(FAULT.width),
                "done": Out(1),
                "cause": Out(CAUSE_BITS),
                "address": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word, stage = self.word, self.stage
        assert LOAD.offset("cores") == RUN.offset("cores")
        named = data.View(layout(LOAD), word.imm0).cores
        told = data.View(layout(RUN), word.imm0).watchdog
        cycles = Signal(24)
        limit = Mux(told == 0, WATCHDOG_CYCLES, told)
        late = (cycles >= limit) & ~fault("the watchdog of a run sleeps")
        wrong, failure = Signal(CAUSE_BITS), Signal(CAUSE_BITS)
        where = Signal(FAULT.width)
        self._check(m, wrong)
        self._failure(m, failure, where, late)
        still = Signal(self.cores)
        m.d.comb += [
            self.command.ready.eq(stage == Stage.NONE),
            self.chosen.eq(named[: self.cores]),
            still.eq(self.run & ~Cat(end.ended for end in self.ends)),
        ]
        with m.Switch(stage):
            with m.Case(Stage.NONE):
                m.d.sync += [self.cause.eq(0), self.address.eq(0)]
                with m.If(self.command.valid):
                    m.d.sync += [word.eq(self.command.payload.word), stage.eq(Stage.CHECK)]
            with m.Case(Stage.CHECK):
                m.d.sync += self.cause.eq(wrong)
                with m.If(wrong != 0):
                    m.d.sync += stage.eq(Stage.END)
                with m.Elif(word.opcode == Opcode.GP_RUN):
                    m.d.sync += stage.eq(Stage.START)
                with m.Else():
                    m.d.comb += self.move.eq(1)
                    m.d.sync += stage.eq(Stage.MOVE)
            with m.Case(Stage.MOVE):
                with m.If(self.moved):
                    m.d.comb += self.fills.eq(Mux(word.opcode == Opcode.GP_LOAD, self.chosen, 0))
                    m.d.sync += stage.eq(Stage.END)
            with m.Case(Stage.START):
                m.d.sync += [self.run.eq(self.chosen), cycles.eq(1), stage.eq(Stage.RUN)]
            with m.Case(Stage.RUN):
                m.d.sync += [cycles.eq(cycles + 1), self.run.eq(still)]
                with m.If(failure != 0):
                    m.d.sync += [
                        self.run.eq(fault("other cores go on behind a failure").replicate(self.cores) & still),
                        self.cause.eq(failure),
                        self.address.eq(Space.GPSIMD << 40 | where),
                        stage.eq(Stage.END),
                    ]
                with m.Elif(still == 0):
                    m.d.sync += stage.eq(Stage.END)
            with m.Case(Stage.END):
                lost = fault("a copy that fails behind the last core is not told")
                with m.If(self.copy_failed & (self.cause == 0) & ~lost):
                    m.d.sync += [self.cause.eq(failure), self.address.eq(Space.GPSIMD << 40 | where)]
                with m.Elif(~self.busy | fault("a run is done before its stores have committed")):
                    m.d.comb += self.done.eq(1)
                    m.d.sync += stage.eq(Stage.NONE)
        return m

    def _check(self, m: Module, wrong: Signal) -> None:
        """What only the engine knows of an instruction."""
        cfg, word = self.cfg, self.word
        load = data.View(layout(LOAD), word.imm0)
        row_bits = exact_log2(4 * lanes(cfg.partitions))
        moves, stores = word.opcode != Opcode.GP_RUN, word.opcode == Opcode.GP_STORE
        source, target = operand(word, "src0"), operand(word, "dst")
        pattern = data.View(source.shape(), Mux(stores, target.as_value(), source.as_value()))
        many = Cat(pattern[f"count{k}"] != 1 for k in range(1, DIMENSIONS)).any()
        end = (load.offset >> row_bits) + pattern.count0
        foreign = load.cores >> self.cores != 0
        with m.If((load.cores == 0) | foreign | (stores & ((load.cores & (load.cores - 1)) != 0))):
            m.d.comb += wrong.eq(Cause.GP_CORES)
        with m.Elif(moves & (pattern.partition_count != lanes(cfg.partitions))):
            m.d.comb += wrong.eq(Cause.BAD_PARTITION)
        with m.Elif(moves & many):
            m.d.comb += wrong.eq(Cause.BAD_PATTERN)
        with m.Elif(moves & (load.offset[:row_bits] != 0)):
            m.d.comb += wrong.eq(Cause.MISALIGNED)
        with m.Elif(moves & (end > cfg.gpsimd.local_bytes >> row_bits) & ~fault("an image leaves local memory")):
            m.d.comb += wrong.eq(Cause.OUT_OF_RANGE)
        with m.Elif(~moves & (self.chosen & ~self.filled).any() & ~fault("a core without an image runs")):
            m.d.comb += wrong.eq(Cause.GP_NO_IMAGE)

    def _failure(self, m: Module, failure: Signal, where: Signal, late: Value) -> None:
        """Why a run fails in this cycle, and gpsimd.FAULT: of the lowest core that fails, else of a copy, else the
        watchdog's."""
        for k in reversed(range(self.cores)):
            with m.If(self.run[k] & late):
                m.d.comb += [failure.eq(Cause.GP_WATCHDOG), where.eq(FAULT.pack(low=0, cause=0, core=k))]
        with m.If(self.copy_failed):
            m.d.comb += [failure.eq(Cause.GP_DMA), where.eq(self.copy_fault)]
        for k in reversed(range(self.cores)):
            end = self.ends[k]
            core = FAULT.pack(low=0, cause=0, core=k)
            trap = FAULT.offset("cause")
            with m.If(self.run[k] & end.ended & (end.result != 0)):
                m.d.comb += [failure.eq(Cause.GP_EXIT), where.eq(core | end.result)]
            with m.If(self.run[k] & (end.trapped | end.lost)):
                m.d.comb += [failure.eq(Cause.GP_TRAP), where.eq(core | end.pc | end.cause << trap)]
