"""Who does what in which cycle, for all lanes of the vector engine at once."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.formats import FORMATS
from rtl.contract.isa import AluOp, Opcode, Reduce
from rtl.numeric.formats.to_fp32 import ToFp32
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.partial_sums import PartialSums
from rtl.numeric.functions.exp import Exp
from rtl.vector.operators import FIRST, OPERATION
from rtl.vector.plan import PLAN
from rtl.vector.reader import ELEMENT, ROLES
from rtl.vector.sums import RESULT_FROM, SUMMING

__all__ = ["CLOCKS", "LEAVING", "Timetable"]

LEAVING = data.StructLayout({"computed": 1, "special": 1, "dst": 4, "raw": 1, "width": 2})
"""How results are converted: from the element itself or from what was computed, or what a special unit gives; the
logarithm of how many there are."""

CLOCKS = ("convert", "convert_wide", "maths", "maths_wide", "sums", "special", "quantize")
"""Clocks of the lanes' parts, which stand still while an instruction does without them; `wide`: all slots but one."""

_CONVERTED = 1  # cycles from the data of an element to the cycle before its value
_OPERATED = _CONVERTED + 2
_RAISED = _CONVERTED + Exp.LATENCY
_FILLED = (Opcode.MEMSET, FIRST["a"]), (Opcode.RANGE_SELECT, FIRST["index"])
_TAKES = (*_FILLED, (Opcode.TENSOR_SCAN, FIRST["scan"]), (Opcode.SELECT, FIRST["selected"]))


class Timetable(wiring.Component):
    """`element` is on the read ports; the other outputs say what happens in the next cycle: registers of the parts'
    clocks take them.

    Timing, in cycles from the data: `operation` and `summing` meet the value in cycle 2; results of operators are
    converted in 4, those of exp in 6, copies in 2, sums 4 after the last one; `result_valid` is the cycle after.
    `release`: the reader may send the next group. `special_valid`: the value in this cycle is for the special units.
    """

    element: In(ELEMENT)
    plan: In(PLAN)
    begins: In(1)
    special_out: In(1)
    operation: Out(OPERATION)
    summing: Out(SUMMING)
    result: Out(2)
    leaving: Out(LEAVING)
    special_valid: Out(1)
    special_value: Out(1)
    special_last: Out(1)
    result_valid: Out(1)
    release: Out(1)
    working: Out(1)
    clocks: Out(len(CLOCKS))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan = self.plan
        stages: list[data.View] = [self.element]
        for n in range(_RAISED):
            stage = Signal(ELEMENT, name=f"element_{n + 1}")
            m.d.sync += stage.eq(stages[-1])
            stages.append(stage)
        converted, operated, raised = stages[_CONVERTED], stages[_OPERATED], stages[_RAISED]

        def role(stage: data.View, *names: str) -> Value:
            return stage.valid & Cat(*(stage.role == ROLES[name] for name in names)).any()

        def final(stage: data.View) -> Value:
            """Whether a stage holds an element that completes its operands."""
            return role(stage, "only", "second")

        plain = plan.opcode == Opcode.TENSOR_COPY
        beside = plan.bits | plan.quantizes  # goes past the lanes
        exp = plan.opcode == Opcode.EXP
        reduces = plan.opcode == Opcode.TENSOR_REDUCE
        ranges = plan.opcode == Opcode.RANGE_SELECT
        folds = (exp | ranges) & (plan.reduce != Reduce.IDLE)

        # the last element of a group in its sums, a cycle a bit
        tree = Signal(PartialSums.TREE[PartialSums.SLOTS] + 1)
        fold = Signal()
        folded = Signal()
        stored = Signal()
        comes = Signal()
        comes_later = Signal()
        summed = Signal()  # what is in `tap` goes to the sums
        tap = Signal(ELEMENT)
        m.d.comb += [
            tap.eq(Mux(exp, raised, Mux(ranges, operated, converted))),
            summed.eq(final(tap) & (folds | reduces)),
            fold.eq(tree[-1] & folds),
        ]
        m.d.sync += [
            tree.eq(Cat(summed & tap.ends, tree)),
            folded.eq(fold),
            stored.eq(folded),
            comes_later.eq(comes),
            self.result_valid.eq(comes_later | (self.special_out & plan.special)),
        ]
        after = Signal(ELEMENT)  # the element whose result is converted in the next cycle
        m.d.comb += after.eq(Mux(plain, converted, Mux(exp, raised, operated)))
        with m.If(reduces):
            m.d.comb += comes.eq(tree[-1])
        with m.Else():
            m.d.comb += comes.eq((final(after) & ~plan.special & ~beside) | (stored & plan.store))

        operation, summing = self.operation, self.summing
        position = Signal(3)
        m.d.comb += [
            operation.keep.eq(role(converted, "first")),
            operation.keep_a.eq(role(converted, "a")),
            operation.keep_b.eq(role(converted, "b")),
            operation.set_a.eq(self.begins & ~plan.column_a),
            operation.set_b.eq(self.begins & ~plan.column_b),
            operation.constant_a.eq(plan.a),
            operation.constant_b.eq(plan.b),
            operation.kept.eq(converted.role == ROLES["second"]),
            operation.both.eq(plan.both),
            operation.go.eq(final(converted) | fold),
            operation.begins.eq(converted.starts),
            operation.pairs.eq(plan.opcode == Opcode.TENSOR_TENSOR),
            operation.then.eq((plan.opcode == Opcode.SCALAR_TENSOR_TENSOR) | (plan.opcode == Opcode.TENSOR_SCAN)),
            operation.op0.eq(plan.op0),
            operation.op1.eq(plan.op1),
            operation.reverse0.eq(plan.reverse0),
            operation.reverse1.eq(plan.reverse1),
            operation.index.eq(self._index(m, final(converted))),
            operation.ranges.eq(ranges),
            operation.exp.eq(exp),
            summing.op.eq(Mux(exp, AluOp.ADD, Mux(ranges, AluOp.MAX, plan.op0))),
            summing.results.eq(~reduces),
            summing.first.eq(tap.starts),
            summing.last.eq(tap.ends),
            summing.position.eq(Mux(tap.starts, 0, position)),
            summing.negate.eq(plan.negate),
            summing.keep.eq(folded),
            summing.reduce.eq(plan.reduce),
            self.result.eq(Mux(stored, RESULT_FROM["accumulator"], Mux(reduces, RESULT_FROM["sums"], 0))),
        ]
        for opcode, first in _TAKES:
            with m.If(plan.opcode == opcode):
                m.d.comb += operation.first.eq(first)
        with m.If(fold):
            m.d.comb += [
                operation.first.eq(FIRST["fold"]),
                operation.op0.eq(summing.op),
                operation.reverse0.eq(0),
            ]
        with m.Switch(plan.width):
            for width in range(3):
                with m.Case(width):
                    m.d.comb += summing.valid.eq(Mux(summed, (1 << (1 << width)) - 1, 0))
        with m.If(summed):
            m.d.sync += position.eq(summing.position + (1 << plan.width))

        finds = plan.opcode == Opcode.FIND_INDEX8
        m.d.comb += [
            self.leaving.computed.eq(~plain),
            self.leaving.special.eq(plan.special),
            self.leaving.dst.eq(Mux(stored, FORMATS["fp32"].code, plan.dst)),
            self.leaving.raw.eq((plan.raw | finds) & ~stored),
            self.leaving.width.eq(Mux(stored, 0, plan.width_out)),
            self.release.eq(tree[0]),
            self.working.eq(
                Cat(*(stage.valid for stage in stages), tree, folded, stored, comes_later, self.begins).any()
            ),
        ]
        value = stages[_CONVERTED + 1]
        m.d.comb += [
            self.special_value.eq(value.role == ROLES["value"]),
            self.special_valid.eq(plan.special & role(value, "only", "value")),
            self.special_last.eq(value.last & (value.role == ROLES["only"])),
        ]
        wide = (plan.width != 0) & ~beside
        on = {
            "convert": ~beside,
            "convert_wide": wide | plan.both,
            "maths": ~plain & ~plan.quantizes,
            "maths_wide": wide & ~plain & ~reduces,
            "sums": reduces | folds,
            "special": plan.special,
            "quantize": plan.quantizes,
        }
        m.d.comb += self.clocks.eq(Cat(on[name] for name in CLOCKS))
        return m

    def _index(self, m: Module, counts: Value) -> Value:
        """RANGE_SELECT: the element's number plus start."""
        number = Signal(18)
        m.submodules.code = code = ToFp32()
        m.submodules.index = index = Fp32AddComb()
        with m.If(self.begins):
            m.d.sync += number.eq(0)
        with m.Elif(counts):
            m.d.sync += number.eq(number + 1)
        m.d.comb += [
            code.x.eq(number),
            code.src.eq(FORMATS["uint32"].code),
            index.a.eq(code.out),
            index.b.eq(self.plan.start),
            index.subtract.eq(0),
        ]
        return index.out
