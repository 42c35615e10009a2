"""What a lane of the vector engine computes: operators, exp, reciprocal, sums, the accumulator."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import passed_on, planted
from rtl.contract.isa import AluOp, Reduce
from rtl.numeric.alu import Alu
from rtl.numeric.exp import Exp
from rtl.numeric.partial_sums import PartialSums
from rtl.numeric.reciprocal import Reciprocal

__all__ = ["CONTROL", "RESULT_FROM", "LaneMaths"]

RESULT_FROM = {"alu": 0, "exp": 1, "sums": 2, "accumulator": 3, "reciprocal": 4}
"""What `result` of CONTROL chooses."""

CONTROL = data.StructLayout(
    {
        "keep_x": 1,  # it is the first operand, the second comes in a later cycle
        "keep_a": 1,
        "keep_b": 1,
        "set_a": 1,  # to constant_a, at any time
        "set_b": 1,
        "constant_a": 32,
        "constant_b": 32,
        "held": 1,  # the first operand is the kept one, this element the second
        "op0": 6,
        "op1": 6,
        "reverse0": 1,
        "reverse1": 1,
        "second": 1,  # op1 takes the element instead of b, op0 takes a; else op0 takes the element, if held
        "sum_op": 6,
        "sum_exp": 1,  # sums take results of exp instead of elements
        "sum_valid": 1,
        "sum_first": 1,
        "sum_last": 1,
        "sum_position": 3,
        "invert": 1,  # the reciprocal starts on the element
        "negate": 1,  # of the sums' result
        "fold": 1,  # op0 joins the accumulator, or b, and the sums' result
        "folded": 1,  # the accumulator takes it, a cycle later
        "fold_from": 2,  # isa.Reduce
        "result": 3,  # what goes out
    }
)
"""What all lanes do in this cycle."""


class LaneMaths(wiring.Component):
    """`value` is a converted element; `control`, a cycle behind what the lane gets, says what happens to it.

    It runs on a clock of its own, which stands still while elements are only copied. `mine`: the lane's partition
    belongs to the instruction; the accumulators of others stay. `plant` chooses a planted fault.
    Timing, from the cycle in which `value` is the element, which is registered first: `out` can be the operators'
    result 3 cycles later, that of exp 5 cycles later.
    """

    FAULTS = {
        1: "the second operator is left out",
        2: "exp takes another element",
        3: "the accumulator forgets what it held",
        4: "`reverse` is ignored",
        5: "a difference is a sum",
    }

    plant: In(4)
    value: In(32)
    control: In(CONTROL)
    mine: In(1)
    out: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self.control
        m.submodules.first = first = Alu(passed_on(self.plant, 0, 0, 0, 0, 4, 0, 5))
        m.submodules.second = second = Alu()
        m.submodules.exp = exp = Exp()
        m.submodules.sums = sums = PartialSums(slots=1)
        m.submodules.reciprocal = reciprocal = Reciprocal()

        value = Signal(32, reset_less=True)
        m.d.sync += value.eq(self.value)
        kept = Signal(32, reset_less=True)
        a = Signal(32, reset_less=True)
        b = Signal(32, reset_less=True)
        with m.If(c.keep_x):
            m.d.sync += kept.eq(value)
        for register, name in ((a, "a"), (b, "b")):
            with m.If(c[f"keep_{name}"]):
                m.d.sync += register.eq(value)
            with m.Elif(c[f"set_{name}"]):
                m.d.sync += register.eq(c[f"constant_{name}"])

        x = Mux(c.held, kept, value)
        accumulator = Signal(32, reset_less=True)
        other = Signal(32, reset_less=True)
        m.d.comb += [
            first.x.eq(Mux(c.fold, Mux(c.fold_from[0], b, accumulator), x)),
            first.y.eq(Mux(c.fold, sums.out, Mux(c.held & ~c.second, value, a))),
            first.op.eq(c.op0),
            first.reverse.eq(c.reverse0),
            first.enable.eq(1),
            second.enable.eq(1),
            second.x.eq(first.out),
            second.y.eq(other),
            second.op.eq(Mux(planted(self.plant, 1), AluOp.BYPASS, c.op1)),
            second.reverse.eq(c.reverse1),
            exp.x.eq(Mux(planted(self.plant, 2), kept, x)),
            exp.m.eq(a),
            sums.x[0].eq(Mux(c.sum_exp, exp.out, value)),
            sums.op.eq(c.sum_op),
            sums.valid.eq(c.sum_valid),
            sums.first.eq(c.sum_first),
            sums.last.eq(c.sum_last),
            sums.position.eq(c.sum_position),
            reciprocal.x.eq(value),
            reciprocal.start.eq(c.invert),
        ]
        m.d.sync += other.eq(Mux(c.second, value, b))
        with m.If(c.folded & self.mine):
            alone = (c.fold_from == Reduce.RESET_REDUCE) | planted(self.plant, 3)
            m.d.sync += accumulator.eq(Mux(alone, sums.out, first.out))

        nan = (sums.out[:31] > 0x7F800000) | ~c.negate
        with m.Switch(c.result):
            with m.Case(RESULT_FROM["exp"]):
                m.d.comb += self.out.eq(exp.out)
            with m.Case(RESULT_FROM["sums"]):
                m.d.comb += self.out.eq(sums.out ^ Mux(nan, 0, 1 << 31))
            with m.Case(RESULT_FROM["accumulator"]):
                m.d.comb += self.out.eq(accumulator)
            with m.Case(RESULT_FROM["reciprocal"]):
                m.d.comb += self.out.eq(reciprocal.out)
            with m.Default():
                m.d.comb += self.out.eq(second.out)
        return m
