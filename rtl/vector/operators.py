"""What is computed on one of the elements that a lane handles at once: two operators, exp, selections."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.formats import FORMATS
from rtl.contract.isa import AluOp
from rtl.numeric.fp32.alu import Alu
from rtl.numeric.fp32.view import Fp32
from rtl.numeric.functions.exp import Exp

__all__ = ["FIRST", "OPERATION", "Operators"]

FIRST = {"element": 0, "a": 1, "index": 2, "scan": 3, "selected": 4, "fold": 5}
"""What the first operator takes first: the element, a, the element's number, the result before, the element or a,
what the lane folds."""

OPERATION = data.StructLayout(
    {
        "keep": 1,  # the element is the first of two
        "keep_a": 1,
        "keep_b": 1,
        "set_a": 1,  # to constant_a
        "set_b": 1,
        "constant_a": 32,
        "constant_b": 32,
        "kept": 1,  # the first element is the kept one, this one the second
        "both": 1,  # the second element is `other`
        "go": 1,  # the operators start on what is here
        "first": 3,  # of FIRST
        "begins": 1,  # of a scan
        "pairs": 1,  # the first operator takes the second element second
        "then": 1,  # the second operator does
        "op0": 6,
        "op1": 6,
        "reverse0": 1,
        "reverse1": 1,
        "index": 32,  # of the element, FP32
        "ranges": 1,  # the second operator takes the index first
        "exp": 1,  # what goes out: exp, else what the operators give
    }
)
"""What all lanes do in this cycle."""

_LEAST = 0xFF7FFFFF  # the least FP32 number


class Operators(wiring.Component):
    """`value` is a converted element, `other` that of the next slot; `operation` says what happens to it.

    `column` is the element that may be kept as `a` or b. `fold_x`, `fold_y`: what the operators take instead, `folded`
    the first one's result in the next cycle. `chosen`: the second element is not 0, in the cycle of its result.
    Timing, from the cycle of `value`: `out` is the operators' result 2 cycles later, that of exp 4 later.
    """

    SELECTED = 3  # cycles from `value` to `chosen`, when the result has been converted

    def __init__(self, exp: bool):
        self.has_exp = exp
        super().__init__(
            {
                "value": In(32),
                "other": In(32),
                "column": In(32),
                "fold_x": In(32),
                "fold_y": In(32),
                "operation": In(OPERATION),
                "a": Out(32),
                "b": Out(32),
                "folded": Out(32),
                "chosen": Out(1),
                "out": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        o = self.operation
        m.submodules.first = first = Alu()
        m.submodules.second = second = Alu()
        kept = Signal(32, reset_less=True)
        a = Signal(32, reset_less=True)
        b = Signal(32, reset_less=True)
        with m.If(o.keep):
            m.d.sync += kept.eq(self.value)
        for register, name in ((a, "a"), (b, "b")):
            with m.If(o[f"keep_{name}"]):
                m.d.sync += register.eq(self.column)
            with m.Elif(o[f"set_{name}"]):
                m.d.sync += register.eq(o[f"constant_{name}"])

        x = Signal(32)
        y = Signal(32)
        true = Signal()
        held = Signal(32, reset_less=True)  # the second element, for the second operator
        index = Signal(32, reset_less=True)
        m.d.comb += [
            x.eq(Mux(o.kept, kept, self.value)),
            y.eq(Mux(o.both, self.other, self.value)),
            true.eq(Mux(fault("a predicate is the sign of its number"), Fp32(y).sign, ~Fp32(y).is_zero)),
            first.x.eq(x),
            first.y.eq(Mux(o.pairs, y, a)),
            first.op.eq(o.op0),
            first.reverse.eq(o.reverse0),
            first.enable.eq(o.go),
            second.x.eq(Mux(o.ranges, index, first.out)),
            second.y.eq(Mux(o.then, held, b)),
            second.op.eq(Mux(fault("the second operator is left out"), AluOp.BYPASS, o.op1)),
            second.reverse.eq(o.reverse1),
            self.a.eq(a),
            self.b.eq(b),
            self.folded.eq(first.out),
        ]
        with m.Switch(o.first):
            with m.Case(FIRST["a"]):
                m.d.comb += first.x.eq(a)
            with m.Case(FIRST["index"]):
                m.d.comb += first.x.eq(o.index)
            with m.Case(FIRST["scan"]):
                m.d.comb += [
                    first.x.eq(Mux(o.begins | fault("a scan begins anew with every element"), a, second.out)),
                    first.y.eq(x),
                ]
            with m.Case(FIRST["selected"]):
                m.d.comb += first.x.eq(Mux(true, x, a))
            with m.Case(FIRST["fold"]):
                m.d.comb += [first.x.eq(self.fold_x), first.y.eq(self.fold_y)]
        goes = Signal()
        m.d.sync += goes.eq(o.go)
        m.d.comb += second.enable.eq(goes)
        m.d.sync += [held.eq(y), index.eq(o.index)]

        predicate = [Signal(name=f"true{n}") for n in range(self.SELECTED)]
        m.d.sync += [later.eq(now) for later, now in zip(predicate, [true, *predicate[:-1]], strict=True)]
        m.d.comb += self.chosen.eq(predicate[-1])
        m.d.comb += self.out.eq(Mux(o.ranges, self._bounded(m, first.out, second.out, x), second.out))
        if self.has_exp:
            m.submodules.exp = exp = Exp()
            m.d.comb += [exp.x.eq(Mux(fault("exp takes another element"), kept, x)), exp.m.eq(a)]
            with m.If(o.exp):
                m.d.comb += self.out.eq(exp.out)
        return m

    def _bounded(self, m: Module, above: Value, below: Value, x: Value) -> Value:
        """RANGE_SELECT: the element of two cycles ago, if both comparisons of its number held."""
        held = [Signal(32, name=f"x{n}", reset_less=True) for n in range(2)]
        inside = Signal()
        m.d.sync += [held[0].eq(x), held[1].eq(held[0]), inside.eq(above.any())]
        both = (inside & below.any()) | fault("a number outside its bounds stays")
        return Mux(both, held[1], Const(_LEAST, FORMATS["fp32"].bits))
