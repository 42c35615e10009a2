"""BN_STATS, BN_AGGR and RECIPROCAL: one sequence of steps for all lanes, and the lanes."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.placed import Repeated
from rtl.contract.config import Config
from rtl.contract.isa import Opcode
from rtl.numeric.fp32.reciprocal import Reciprocal
from rtl.numeric.fp32.view import BIAS
from rtl.vector.bn_lane import SHARED, BnLane
from rtl.vector.bn_program import (
    INVERT_FIRST,
    INVERT_LAST,
    MERGE_FIRST,
    MERGE_LAST,
    MERGED_LAST,
    STATS_FIRST,
    STATS_LAST,
    STEPS,
)
from rtl.vector.bn_steps import BN_STEP, Divide, Give, Multiply, Shift, Spread, Total

__all__ = ["BatchNorm"]

_TRIPLE = 3


def _fp32(integer: Value) -> Value:
    """FP32 code of 0 to 511."""
    code: Value = Const(0, 32)
    for bit in range(9):
        code = Mux(integer[bit], Const((BIAS + bit) << 23, 32) | (integer << (23 - bit))[:23], code)
    return code


class BatchNorm(wiring.Component):
    """One of the three instructions from `start` to `done`, the cycle of the last `out_valid`. `opcode` stays.

    Timing: BN_STATS takes a beat a cycle and gives six results in the ENDING cycles after the last. BN_AGGR takes
    three beats in 13 cycles, RECIPROCAL one in 8; a triple or an element can wait, so a beat comes only if it was
    `granted` in a cycle with `room`. Results come in cycles in which `place` is 1.
    """

    ENDING = 20

    def __init__(self, cfg: Config):
        self.cfg = cfg
        wide = 32 * cfg.partitions
        super().__init__(
            {
                "start": In(1),
                "opcode": In(8),
                "granted": In(1),
                "room": Out(1),
                "valid": In(1),
                "last": In(1),
                "x": In(wide),
                "place": In(1),
                "out_valid": Out(1),
                "out": Out(wide),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = Signal(BN_STEP)
        count = Signal(32)
        blank = Signal()  # a result that is 0
        partitions = self.cfg.partitions
        lanes = Repeated(f"plexus_bn_lanes_{partitions}", BnLane, partitions, shared=SHARED)
        m.submodules.lanes = lanes
        m.d.comb += [
            lanes.step.eq(step),
            lanes.x.eq(self.x),
            lanes.count.eq(count),
            self.out.eq(lanes.out),
        ]
        m.d.comb += step.clear.eq(self.start)
        now = Signal(range(len(STEPS)))  # 0: none
        go = Signal()  # the step is made in this cycle
        waiting = self._arrivals(m, step)
        self._make(m, step, now, go, waiting, blank)
        self._sums(m, step, count, blank, now)  # the last sums are made while the first step is: theirs counts

        ended = Signal()  # the last beat has come
        over = ended & ~waiting.any()
        with m.If(self.valid & self.last):
            m.d.sync += ended.eq(1)
            with m.If(self.opcode == Opcode.BN_STATS):
                m.d.sync += now.eq(STATS_FIRST)
        with m.If(go):
            m.d.sync += now.eq(now + 1)
            with m.Switch(now):
                with m.Case(STATS_LAST, MERGED_LAST):
                    m.d.comb += self.done.eq(1)
                with m.Case(MERGE_LAST):
                    with m.If(~over):
                        m.d.sync += now.eq(MERGE_FIRST)
                with m.Case(INVERT_LAST):
                    m.d.comb += [self.done.eq(over), step.divide.eq(Mux(waiting[0], Divide.CAME, Divide.NONE))]
                    m.d.sync += now.eq(Mux(waiting[0], INVERT_LAST, INVERT_FIRST))
        with m.If(self.done):
            m.d.sync += now.eq(0)
        with m.If(self.start):
            m.d.sync += [now.eq(0), ended.eq(0)]
            with m.If(self.opcode == Opcode.BN_AGGR):
                m.d.sync += now.eq(MERGE_FIRST)
            with m.If(self.opcode == Opcode.RECIPROCAL):
                m.d.sync += now.eq(INVERT_FIRST)
        return m

    def _make(self, m: Module, step: Any, now: Value, go: Value, waiting: Value, blank: Value) -> None:
        """The steps of the sequence."""
        dividing = Signal(range(Reciprocal.LATENCY))  # cycles until the reciprocal is there
        with m.If(step.divide != Divide.NONE):
            m.d.sync += dividing.eq(Reciprocal.LATENCY - 1)
        with m.Elif(dividing != 0):
            m.d.sync += dividing.eq(dividing - 1)
        between = Signal()  # the product that has just been made
        m.d.sync += between.eq(step.multiply == Multiply.BETWEEN)
        with m.If(between):
            m.d.comb += step.spread.eq(Spread.BETWEEN)
        turned = fault("the tree joins parts 0 and 4 first")
        with m.Switch(now):
            for n, made in enumerate(STEPS[1:], 1):
                with m.Case(n):
                    m.d.comb += [go.eq(1), step.to.eq(made.half)]
                    if made.divided:
                        with m.If(dividing != 0):
                            m.d.comb += go.eq(0)
                    if made.came is not None:
                        with m.If(~waiting[made.came]):
                            m.d.comb += go.eq(0)
                    if made.gives is not None:
                        with m.If(
                            ~(self.place | fault("results of batch statistics are given without a place for them"))
                        ):
                            m.d.comb += go.eq(0)
                        m.d.comb += [self.out_valid.eq(go), step.give.eq(Mux(blank, Give.NOTHING, made.gives))]
                    with m.If(go):
                        does = dict(made.does)
                        if "settle" in does:
                            does["settle"] = ~fault("the count of a merge is that of the merge before")
                        if (made.half, does.get("other")) in ((0, 2), (0, 4)):
                            does["other"] = Mux(turned, 6 - does["other"], does["other"])
                        if (made.half, does.get("other")) == (4, 6):
                            m.d.comb += step.to.eq(Mux(turned, 2, 4))
                        m.d.comb += [step[name].eq(value) for name, value in does.items()]

    def _arrivals(self, m: Module, step: Any) -> Signal:
        """Elements of BN_AGGR and RECIPROCAL on their way to the lanes; bit i: came[i] waits for its step."""
        waiting = Signal(_TRIPLE)
        used = Signal(_TRIPLE)
        which = Signal(range(_TRIPLE))
        held = Signal(range(_TRIPLE + 2))
        stats = self.opcode == Opcode.BN_STATS
        triples = self.opcode == Opcode.BN_AGGR
        limit = Mux(triples, _TRIPLE, 1) + fault("more is asked of batch statistics than can wait")
        m.d.comb += [
            used[0].eq(step.advance | (step.divide == Divide.CAME)),
            used[1].eq(step.shift == Shift.BETWEEN),
            used[2].eq(step.spread == Spread.CAME),
            self.room.eq(stats | (held < limit)),
        ]
        with m.If(self.valid & ~stats):
            m.d.comb += step.store.eq(1 << which)
            with m.If(triples):
                m.d.sync += which.eq(Mux(which == _TRIPLE - 1, 0, which + 1))
        m.d.sync += waiting.eq(waiting & ~used | step.store)
        m.d.sync += held.eq(held + (self.granted & ~stats) - used.any())
        with m.If(self.start):
            m.d.sync += [waiting.eq(0), held.eq(0), which.eq(0)]
        return waiting

    def _sums(self, m: Module, step: Any, count: Value, blank: Value, now: Value) -> None:
        """BN_STATS while elements come: three operations on each, one a cycle. Sets how many they were."""
        seen = Signal(10)
        odd = Signal()
        last_half = Signal()
        shifted = Signal()
        squared = Signal()
        part = Signal(3)
        part_behind = Signal(3)
        taken = self.valid & (self.opcode == Opcode.BN_STATS)
        with m.Switch(now):
            for n, made in enumerate(STEPS):
                if n and (made.odd or made.half):
                    with m.Case(n):
                        m.d.comb += [odd.eq(made.odd), last_half.eq(n > STATS_LAST - 4)]
        m.d.comb += [
            count.eq(_fp32((seen + (~odd | fault("odd elements are as many as even ones")))[1:])),
            blank.eq(last_half & (seen == 1) & ~fault("the odd half of one element is not zero")),
        ]
        m.d.sync += [shifted.eq(taken), squared.eq(shifted), part.eq(seen), part_behind.eq(part)]
        with m.If(taken):
            m.d.comb += step.shift.eq(Mux(seen == 0, Shift.FIRST, Shift.APART))
            m.d.sync += seen.eq(seen + 1)
        with m.If(shifted):
            m.d.comb += [step.total.eq(Total.ADD), step.to.eq(part), step.multiply.eq(Multiply.SQUARE)]
        with m.If(squared):
            m.d.comb += [step.spread.eq(Spread.ADD), step.square_to.eq(part_behind)]
        with m.If(self.start):
            m.d.sync += [seen.eq(0), shifted.eq(0), squared.eq(0)]
