"""What happens to an element in a lane of the scalar engine: to FP32, scale and bias, the function, out again."""

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
from rtl.numeric.functions.activation import ActivationLane
from rtl.numeric.functions.activation_table import ENTRY, FUNCTION_BITS

__all__ = ["OPERATION", "Slot"]

OPERATION = data.StructLayout({"op": 6, "reverse": 1, "column": 1, "constant": 32})
"""One operation before the function: running value op constant, or op the lane's column."""


class Slot(wiring.Component):
    """out = dst(result), result = func((src(x) op0 a) op1 b), a number a cycle; `a` and `b` are the lane's columns.

    Operators are MULTIPLY, ADD, SUBTRACT and BYPASS first, ADD, SUBTRACT and BYPASS second.
    Timing: inputs belong to the cycle of their stage, counted from that of `x` and `src`: `first` in stage 1, `second`
    in 2, `func` and `slope` in 3 (FUNCTION), `dst` in RESULT, that of `result`; `out` is of stage RESULT + 1.
    """

    FUNCTION = 3
    RESULT = FUNCTION + ActivationLane.LATENCY

    def __init__(self) -> None:
        super().__init__(
            {
                "x": In(32),
                "src": In(4),
                "a": In(32),
                "b": In(32),
                "first": In(OPERATION),
                "second": In(OPERATION),
                "func": In(6),
                "slope": In(32),
                "entry_address": Out(FUNCTION_BITS + 9),
                "entry": In(ENTRY),
                "row_address": Out(ROW_BITS),
                "row": In(32 * ROW_WORDS),
                "dst": In(4),
                "result": Out(32),
                "out": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
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
            scaled.eq(self._stage(m, self.first, entered, self.a, turned, sum0, product)),
            biased.eq(
                self._stage(
                    m,
                    self.second,
                    scaled,
                    Mux(fault("the column of the second operation is that of the first"), self.a, self.b),
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
            self.result.eq(function.out),
        ]
        m.submodules.leave = leave = FromFp32()
        left = Signal(32, reset_less=True)
        m.d.comb += [leave.x.eq(function.out), leave.dst.eq(self.dst), self.out.eq(left)]
        m.d.sync += left.eq(leave.out)
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
