"""One lane of the vector engine: conversion, operators, exp, reciprocal, sums, and conversion back."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import passed_on, planted
from rtl.contract.isa import AluOp, Reduce
from rtl.numeric.alu import Alu
from rtl.numeric.exp import Exp
from rtl.numeric.from_fp32 import FromFp32
from rtl.numeric.partial_sums import PartialSums
from rtl.numeric.reciprocal import Reciprocal
from rtl.numeric.to_fp32 import ToFp32

__all__ = ["CONTROL", "RESULT_FROM", "Lane"]

RESULT_FROM = {"copy": 0, "alu": 1, "exp": 2, "sums": 3, "accumulator": 4, "reciprocal": 5}
"""What `result` of CONTROL chooses."""

CONTROL = data.StructLayout(
    {
        "src": 4,  # format of the element that is picked in this cycle
        "raw": 1,  # its bits pass
        # of the converted element, a cycle later
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
        "dst": 4,
        "raw_out": 1,
    }
)
"""What all lanes do in this cycle."""


class Lane(wiring.Component):
    """`x` is the code of an element; `control` says what happens. `out` shows in the next cycle what `result` chose.

    `mine`: the lane's partition belongs to the instruction; the accumulators of others stay.
    Timing of an element picked in cycle t: converted in t + 1; results of the operators can be chosen in t + 3, of
    exp in t + 5, a copy in t + 1. `plant` chooses a planted fault.
    """

    FAULTS = {
        1: "the second operator is left out",
        2: "exp takes another element",
        3: "the accumulator forgets what it held",
        4: "`reverse` is ignored",
        5: "a difference is a sum",
    }

    plant: In(4)
    x: In(32)
    control: In(CONTROL)
    mine: In(1)
    out: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self.control
        m.submodules.enter = enter = ToFp32()
        m.submodules.leave = leave = FromFp32()
        m.submodules.first = first = Alu(passed_on(self.plant, 0, 0, 0, 0, 4, 0, 5))
        m.submodules.second = second = Alu()
        m.submodules.exp = exp = Exp()
        m.submodules.sums = sums = PartialSums(slots=1)
        m.submodules.reciprocal = reciprocal = Reciprocal()

        value = Signal(32, reset_less=True)
        kept = Signal(32, reset_less=True)
        a = Signal(32, reset_less=True)
        b = Signal(32, reset_less=True)
        m.d.comb += [enter.x.eq(self.x), enter.src.eq(c.src), enter.raw.eq(c.raw)]
        m.d.sync += value.eq(enter.out)
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

        chosen = Signal(32)
        nan = (sums.out[:31] > 0x7F800000) | ~c.negate
        with m.Switch(c.result):
            with m.Case(RESULT_FROM["alu"]):
                m.d.comb += chosen.eq(second.out)
            with m.Case(RESULT_FROM["exp"]):
                m.d.comb += chosen.eq(exp.out)
            with m.Case(RESULT_FROM["sums"]):
                m.d.comb += chosen.eq(sums.out ^ Mux(nan, 0, 1 << 31))
            with m.Case(RESULT_FROM["accumulator"]):
                m.d.comb += chosen.eq(accumulator)
            with m.Case(RESULT_FROM["reciprocal"]):
                m.d.comb += chosen.eq(reciprocal.out)
            with m.Default():
                m.d.comb += chosen.eq(value)
        m.d.comb += [leave.x.eq(chosen), leave.dst.eq(c.dst), leave.raw.eq(c.raw_out), leave.saturate.eq(0)]
        m.d.sync += self.out.eq(leave.out)
        return m
