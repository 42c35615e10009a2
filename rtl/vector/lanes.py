"""The lanes: pick each partition's element, move it to its quadrant, tell every lane when to do what."""

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.memory_port import QUADRANTS
from rtl.base.placed import Placed
from rtl.base.plant import passed_on, planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import AluOp, Opcode, Reduce
from rtl.numeric.exp import Exp
from rtl.numeric.partial_sums import PartialSums
from rtl.numeric.reciprocal import Reciprocal
from rtl.vector.lane import Lane
from rtl.vector.maths import CONTROL, RESULT_FROM, LaneMaths
from rtl.vector.reader import ELEMENT, INSTRUCTION, ROLES

__all__ = ["MATHS", "Lanes"]

MATHS = "vector_maths"
"""The clock domain of all that copies do not need: the vector clock, standing still while elements are only copied."""

_CONVERTED = 1  # cycles from the data of an element to its converted value
_OPERATED = _CONVERTED + 2
_RAISED = _CONVERTED + Exp.LATENCY


class Lanes(wiring.Component):
    """Elements in, results out: `out` (32 bits a lane) with `out_valid`.

    `working`: something is in them. `release`: the reader may send the next group. `computes`: the instruction needs
    edges of the domain MATHS.
    Timing, in cycles from the data of an element: a copy 2, operators 5, exp 7, a sum or reciprocal 11.
    """

    FAULTS = {
        81: "quadrants are not rotated",
        82: "a single byte is taken from the wrong place",
        **{100 + n: text for n, text in LaneMaths.FAULTS.items()},
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "element": In(ELEMENT),
                "instruction": In(INSTRUCTION),
                "partitions": In(cfg.partitions),
                "begins": In(1),
                "sbuf": In(64 * cfg.partitions),
                "psum": In(64 * cfg.partitions),
                "out": Out(32 * cfg.partitions),
                "out_valid": Out(1),
                "working": Out(1),
                "release": Out(1),
                "computes": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control = Signal(CONTROL)
        later = Signal(CONTROL)
        computed = Signal()
        format_out = Signal(4)
        raw_out = Signal()
        self._time_table(m, control, computed, format_out, raw_out)
        m.d[MATHS] += later.eq(control)
        picked = self._pick(m)
        for p in range(self.cfg.partitions):
            lane = Placed("plexus_vector_lane", Lane)
            maths = Placed("plexus_vector_maths", LaneMaths)
            m.submodules[f"lane_{p}"] = lane
            m.submodules[f"maths_{p}"] = DomainRenamer(MATHS)(maths)
            m.d.comb += [
                lane.x.eq(picked[32 * p : 32 * p + 32]),
                lane.src.eq(self.element.src),
                lane.raw.eq(self.element.raw),
                lane.result.eq(maths.out),
                lane.computed.eq(computed),
                lane.dst.eq(format_out),
                lane.raw_out.eq(raw_out),
                maths.plant.eq(passed_on(self.plant, *range(101, 116))),
                maths.value.eq(lane.value),
                maths.control.eq(later),
                maths.mine.eq(self.partitions[p]),
                self.out[32 * p : 32 * p + 32].eq(lane.out),
            ]
        return m

    def _pick(self, m: Module) -> Value:
        """Each lane's code in the low bits, rubbish above it."""
        lanes = range(self.cfg.partitions)
        width = 32 * self.cfg.partitions
        half = Signal(width)
        picked = Signal(width)
        word = Signal(64 * self.cfg.partitions)
        m.d.comb += word.eq(Mux(self.element.psum, self.psum, self.sbuf))
        with m.If(self.element.place[2]):
            m.d.comb += [half[32 * p : 32 * p + 32].eq(word[64 * p + 32 : 64 * p + 64]) for p in lanes]
        with m.Else():
            m.d.comb += [half[32 * p : 32 * p + 32].eq(word[64 * p : 64 * p + 32]) for p in lanes]
        # what comes from the neighbour lies above the code, where it does no harm
        with m.Switch(self.element.place[:2]):
            for byte in range(4):
                with m.Case(byte):
                    m.d.comb += picked.eq(half >> 8 * byte)
                    if byte & 1:
                        with m.If(planted(self.plant, 82)):
                            m.d.comb += picked.eq(half >> 8 * (byte - 1))
        turned = Signal(width)
        share = width // QUADRANTS
        with m.Switch(self.element.turn):
            for turn in range(QUADRANTS):
                with m.Case(turn):
                    m.d.comb += turned.eq(picked.rotate_left(turn * share))
        with m.If(planted(self.plant, 81)):
            m.d.comb += turned.eq(picked)
        return turned

    def _time_table(
        self, m: Module, control: data.View, computed: Value, format_out: Value, raw_out: Value
    ) -> None:
        """Who does what in which cycle. The maths see `control` a cycle later, and so does the way out of them."""
        what = self.instruction
        stages: list[data.View] = [self.element]
        for n in range(_RAISED):
            stage = Signal(ELEMENT, name=f"element_{n + 1}")
            m.d.sync += [stage.eq(stages[-1]), stage.valid.eq(stages[-1].valid)]
            stages.append(stage)
        converted, raised = stages[_CONVERTED], stages[_RAISED]

        def final(stage: data.View) -> Value:
            """Whether a stage holds an element that completes its operands."""
            return stage.valid & ((stage.role == ROLES["only"]) | (stage.role == ROLES["second"]))

        def role(name: str) -> Value:
            return converted.valid & (converted.role == ROLES[name])

        is_copy = what.opcode == Opcode.TENSOR_COPY
        is_exp = what.opcode == Opcode.EXP
        is_reduce = what.opcode == Opcode.TENSOR_REDUCE
        inverts = what.opcode == Opcode.RECIPROCAL
        summing = is_exp & (what.reduce != Reduce.IDLE)
        begins = Signal()
        m.d.comb += begins.eq(self.begins)

        # the end of a group or of an element in its unit, a cycle a bit
        assert PartialSums.TREE[1] + 1 == Reciprocal.LATENCY
        tree = Signal(Reciprocal.LATENCY)
        of_elements = (is_reduce | inverts) & final(converted) & converted.ends
        m.d.sync += tree.eq(Cat(Mux(is_exp, summing & final(raised) & raised.ends, of_elements), tree))
        fold = Signal()
        folded = Signal()
        stored = Signal()
        m.d.comb += fold.eq(tree[-1] & is_exp)
        m.d.sync += [folded.eq(fold), stored.eq(folded)]
        position = Signal(3)
        next_position = Signal(3)
        m.d.comb += position.eq(Mux(control.sum_first, 0, next_position))
        with m.If(control.sum_valid):
            m.d.sync += next_position.eq(position + 1)

        result = Signal(3)
        m.d.comb += result.eq(RESULT_FROM["alu"])
        for chosen, name in ((is_exp, "exp"), (is_reduce, "sums"), (inverts, "reciprocal")):
            with m.If(chosen):
                m.d.comb += result.eq(RESULT_FROM[name])
        with m.If(stored):
            m.d.comb += result.eq(RESULT_FROM["accumulator"])
        comes = Signal()
        comes_later = Signal()
        stored_later = Signal()
        with m.If(is_reduce | inverts):
            m.d.comb += comes.eq(tree[-1])
        with m.Elif(is_exp):
            m.d.comb += comes.eq(final(raised) | (stored & what.store))
        with m.Else():
            m.d.comb += comes.eq(final(stages[_OPERATED]))
        m.d.sync += [
            comes_later.eq(comes & ~is_copy),
            stored_later.eq(stored),
            self.out_valid.eq(Mux(is_copy, final(converted), comes_later)),
        ]
        under_way = [*(stage.valid for stage in stages), tree, folded, stored, stored_later, comes_later, begins]
        m.d.comb += [
            self.release.eq(tree[-3]),
            self.working.eq(Cat(*under_way).any()),
            control.keep_x.eq(role("first")),
            control.keep_a.eq(role("a")),
            control.keep_b.eq(role("b")),
            control.set_a.eq(begins & ~what.column_a),
            control.set_b.eq(begins & ~what.column_b),
            control.constant_a.eq(what.a),
            control.constant_b.eq(what.b),
            control.held.eq(role("second")),
            control.op0.eq(Mux(fold, AluOp.ADD, what.op0)),
            control.op1.eq(what.op1),
            control.reverse0.eq(what.reverse0 & ~fold),
            control.reverse1.eq(what.reverse1),
            control.second.eq(what.opcode == Opcode.SCALAR_TENSOR_TENSOR),
            control.sum_op.eq(Mux(is_exp, AluOp.ADD, what.op0)),
            control.sum_exp.eq(is_exp),
            control.sum_valid.eq(Mux(is_exp, summing & final(raised), is_reduce & final(converted))),
            control.sum_first.eq(Mux(is_exp, raised.starts, converted.starts)),
            control.sum_last.eq(Mux(is_exp, raised.ends, converted.ends)),
            control.invert.eq(inverts & final(converted)),
            control.negate.eq(what.negate),
            control.fold.eq(fold),
            control.folded.eq(folded),
            control.sum_position.eq(position),
            control.fold_from.eq(what.reduce),
            control.result.eq(result),
            self.computes.eq(~is_copy),
            computed.eq(~is_copy),
            format_out.eq(Mux(is_copy, converted.dst, Mux(stored_later, FORMATS["fp32"].code, what.dst))),
            raw_out.eq(Mux(is_copy, converted.raw, what.raw & ~stored_later)),
        ]
