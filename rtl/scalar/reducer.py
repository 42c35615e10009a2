"""When the lanes of the scalar engine reduce: beats of elements, then of the accumulator, then the result."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.isa import Reduce
from rtl.numeric.fp32.partial_sums import PARTIALS, PartialSums
from rtl.scalar.lane import REDUCTION

__all__ = ["REDUCED", "Reducer"]

REDUCED = data.StructLayout(
    {
        "valid": 1,
        "first": 1,
        "last": 1,
        "reduce": 2,
        "op": 6,
        "store": 1,
        "b": 32,
        "b_column": 1,
        "start": 8,  # partitions of the accumulator
        "count": 8,
    }
)
"""An element that leaves the function, and what its instruction does with its reduction."""

_TREE = PartialSums.TREE[1] + 1  # from the last beat to the result
_FOLD = _TREE + 1  # from the last beat to that of the accumulator


class Reducer(wiring.Component):
    """Gives the lanes their `beat` in the cycle of `element`.

    An instruction's own reduction r comes first; `accumulator op r` and `b op r` are a second reduction, of the
    two values, so that the lanes need no further adder. `take`: the lanes' total is the accumulator now.
    `store`: it goes to memory. After the last element of a reduction the next element, of whatever instruction,
    must stay away for GAP[False] cycles, GAP[True] if there is a second reduction. `start`, `count`: its partitions.
    """

    GAP = {False: _TREE - 1, True: _FOLD + _TREE - 1}

    def __init__(self):
        super().__init__(
            {"element": In(REDUCED), "beat": Out(REDUCTION), "take": Out(1), "store": Out(1), "busy": Out(1)}
            | {"start": Out(8), "count": Out(8)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        element = self.element
        kept = Signal(REDUCED)
        step = Signal(range(_FOLD + _TREE + 1))  # cycles since the last beat
        position = Signal(range(PARTIALS))
        reset = (kept.reduce == Reduce.RESET_REDUCE) & ~fault("a new reduction goes on from the accumulator")
        counts = element.valid & (element.reduce != Reduce.IDLE)
        m.d.comb += self.busy.eq(step != 0)
        with m.If(self.take):
            m.d.sync += step.eq(0)
        with m.Elif(self.busy):
            m.d.sync += step.eq(step + 1)
        with m.If(counts):
            m.d.sync += position.eq(self.beat.position + 1)
            with m.If(element.last):
                m.d.sync += [step.eq(1), kept.eq(element)]

        m.d.comb += [
            self.take.eq(step == Mux(reset, _TREE, _FOLD + _TREE)),
            self.store.eq(self.take & kept.store),
            self.start.eq(kept.start),
            self.count.eq(kept.count),
            self.beat.valid.eq(counts),
            self.beat.position.eq(Mux(element.first, 0, position)),
            self.beat.first.eq(element.first | fault("every element is the first of its partial result")),
            self.beat.last.eq(element.last),
            self.beat.op.eq(Mux(element.valid, element.op, kept.op)),
            self.beat.from_b.eq((kept.reduce == Reduce.LOAD_REDUCE) | fault("b takes the place of the accumulator")),
            self.beat.b.eq(kept.b),
            self.beat.b_column.eq(kept.b_column),
        ]
        with m.If((step == _TREE) & ~reset):
            m.d.comb += [
                self.beat.own.eq(1),
                self.beat.valid.eq(1),
                self.beat.position.eq(0),
                self.beat.first.eq(1),
                self.beat.last.eq(0),
            ]
        with m.If((step == _FOLD) & ~reset):
            m.d.comb += [
                self.beat.earlier.eq(1),
                self.beat.valid.eq(1),
                self.beat.position.eq(1),
                self.beat.first.eq(0),
                self.beat.last.eq(1),
            ]
        return m
