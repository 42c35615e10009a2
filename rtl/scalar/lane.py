"""One lane of the scalar engine: a number in, scale and bias, the function, a reduction, a number out."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.activation_tables import ROW_BITS, ROW_WORDS
from rtl.contract.isa import AluOp
from rtl.numeric.formats.from_fp32 import FromFp32
from rtl.numeric.formats.to_fp32 import ToFp32
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.multiply_comb import Fp32MultiplyComb
from rtl.numeric.fp32.partial_sums import PartialSums
from rtl.numeric.functions.activation import ActivationLane
from rtl.numeric.functions.activation_table import ENTRY, FUNCTION_BITS

__all__ = ["OPERATION", "REDUCTION", "SHARED", "Lane"]

SHARED = ("src", "take_a", "take_b", "first", "second", "func", "slope", "reduction", "dst")
"""Ports that are the same for all lanes."""

OPERATION = data.StructLayout({"op": 6, "reverse": 1, "column": 1, "constant": 32})
"""One operation before the function: running value op constant, or op the lane's column."""

REDUCTION = data.StructLayout(
    {
        "valid": 1,  # a beat for the reduction
        "position": 3,
        "first": 1,
        "last": 1,
        "op": 6,
        "own": 1,  # the beat is what the reduction gave, not an element
        "earlier": 1,  # the beat is the accumulator, or b
        "from_b": 1,
        "b": 32,
        "b_column": 1,
    }
)
"""What the reduction does in a cycle; rtl.scalar.reducer makes it."""


class Lane(wiring.Component):
    """out = dst(func((src(x) op0 a) op1 b)), a number a cycle; `total` is the result of the reduction.

    Operators are MULTIPLY, ADD, SUBTRACT and BYPASS first, ADD, SUBTRACT and BYPASS second.
    Timing: inputs belong to the cycle of their stage, counted from that of `x` and `src`: `first` in stage 1,
    `second` in 2, `func` and `slope` in 3 (FUNCTION), `reduction` and `dst` in RESULT; `out` is of stage RESULT + 1.
    `take_a` and `take_b` keep `x` (in its cycle) as the lane's columns; `take_total` keeps `total` as accumulator.
    Reset: the accumulator is 0.
    """

    FUNCTION = 3
    RESULT = FUNCTION + ActivationLane.LATENCY

    def __init__(self) -> None:
        super().__init__(
            {
                "x": In(32),
                "src": In(4),
                "take_a": In(1),
                "take_b": In(1),
                "first": In(OPERATION),
                "second": In(OPERATION),
                "func": In(6),
                "slope": In(32),
                "entry_address": Out(FUNCTION_BITS + 9),
                "entry": In(ENTRY),
                "row_address": Out(ROW_BITS),
                "row": In(32 * ROW_WORDS),
                "reduction": In(REDUCTION),
                "take_total": In(1),
                "dst": In(4),
                "out": Out(32),
                "total": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a = Signal(32, reset_less=True)
        b = Signal(32, reset_less=True)
        with m.If(self.take_a):
            m.d.sync += a.eq(self.x)
        with m.If(self.take_b):
            m.d.sync += b.eq(self.x)

        m.submodules.enter = enter = ToFp32()
        entered = Signal(32, reset_less=True)
        m.d.comb += [enter.x.eq(self.x), enter.src.eq(self.src)]
        m.d.sync += entered.eq(enter.out)

        m.submodules.product = product = Fp32MultiplyComb()
        m.submodules.sum0 = sum0 = Fp32AddComb()
        m.submodules.sum1 = sum1 = Fp32AddComb()
        scaled = Signal(32, reset_less=True)
        biased = Signal(32, reset_less=True)
        turned = self.first.reverse & ~fault("the first operation of a scalar lane is not reversed")
        m.d.sync += [
            scaled.eq(self._stage(m, self.first, entered, a, turned, sum0, product)),
            biased.eq(
                self._stage(
                    m,
                    self.second,
                    scaled,
                    Mux(fault("the column of the second operation is that of the first"), a, b),
                    self.second.reverse,
                    sum1,
                )
            ),
        ]

        m.submodules.function = function = ActivationLane()
        m.d.comb += [
            function.x.eq(biased),
            function.func.eq(self.func),
            function.slope.eq(self.slope),
            self.entry_address.eq(function.entry_address),
            function.entry.eq(self.entry),
            self.row_address.eq(function.row_address),
            function.row.eq(self.row),
        ]
        m.submodules.leave = leave = FromFp32()
        left = Signal(32, reset_less=True)
        m.d.comb += [leave.x.eq(function.out), leave.dst.eq(self.dst), self.out.eq(left)]
        m.d.sync += left.eq(leave.out)

        accumulator = Signal(32)
        beat = self.reduction
        before = Mux(beat.from_b, Mux(beat.b_column, b, beat.b), accumulator)
        m.submodules.partials = partials = PartialSums(1)
        m.d.comb += [
            partials.x[0].eq(function.out),
            partials.valid.eq(
                beat.valid & ~(beat.earlier & fault("a scalar lane leaves out the accumulator") & ~beat.from_b)
            ),
            partials.position.eq(beat.position),
            partials.first.eq(beat.first),
            partials.last.eq(beat.last),
            partials.op.eq(beat.op),
            self.total.eq(partials.out),
        ]
        with m.If(beat.own):
            m.d.comb += partials.x[0].eq(partials.out)
        with m.If(beat.earlier):
            m.d.comb += partials.x[0].eq(before)
        with m.If(self.take_total):
            m.d.sync += accumulator.eq(partials.out)
        return m

    def _stage(
        self,
        m: Module,
        operation: data.View,
        running: Value,
        column: Value,
        reverse: Value,
        total: Fp32AddComb,
        product: Fp32MultiplyComb | None = None,
    ) -> Value:
        """The result of an operation; the units it uses are submodules already."""
        name = "second" if product is None else "first"
        other = Signal(32, name=f"other_{name}")
        x = Signal(32, name=f"x_{name}")
        y = Signal(32, name=f"y_{name}")
        result = Signal(32, name=f"result_{name}")
        m.d.comb += [
            other.eq(Mux(operation.column, column, operation.constant)),
            x.eq(Mux(reverse, other, running)),
            y.eq(Mux(reverse, running, other)),
            total.a.eq(x),
            total.b.eq(y),
            total.subtract.eq((operation.op == AluOp.SUBTRACT) & ~fault("a difference is a sum in a scalar lane")),
            result.eq(x),
        ]
        with m.Switch(operation.op):
            with m.Case(AluOp.ADD, AluOp.SUBTRACT):
                m.d.comb += result.eq(total.out)
            if product is not None:
                with m.Case(AluOp.MULTIPLY):
                    m.d.comb += result.eq(product.out)
        if product is not None:
            m.d.comb += [product.a.eq(x), product.b.eq(y)]
        return result
