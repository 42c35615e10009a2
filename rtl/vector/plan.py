"""What an instruction of the vector queue asks of the engine, told by its word alone."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.base.limits import limit_ports
from rtl.base.memory_port import QUADRANTS
from rtl.base.neighbours import is_small, neighbours_log2
from rtl.base.pattern import operand
from rtl.contract.config import Config
from rtl.contract.isa import Opcode
from rtl.contract.memmap import Space

__all__ = ["PLAN", "Plan", "SPECIAL"]

SPECIAL = (
    *(Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8, Opcode.BN_STATS, Opcode.BN_AGGR),
    *(Opcode.RECIPROCAL, Opcode.TRANSPOSE, Opcode.SHUFFLE),
)
"""What the special units run."""

PLAN = data.StructLayout(
    {
        "opcode": 8,
        "op0": 6,
        "op1": 6,
        "reverse0": 1,
        "reverse1": 1,
        "reduce": 2,
        "store": 1,
        "negate": 1,
        "a": 32,
        "b": 32,
        "start": 32,  # RANGE_SELECT: what is added to the number of an element
        "column_a": 1,
        "column_b": 1,
        "axes": 2,
        "special": 1,
        "two": 1,  # two sources, element by element
        "both": 1,  # read in the same cycle, one from each memory
        "searches": 1,  # src1 is read first
        "quantizes": 1,  # QUANTIZE_MX: nothing of it goes through the lanes; a has the place of its scales
        "reads": 1,  # there is a source
        "bits": 1,  # a copy of bits: nothing is converted
        "raw": 1,  # bits of src0 come in, and results go out, without conversion
        "width": 2,  # logarithm of the elements of a lane that are read at once
        "width_out": 2,
        "psum0": 1,
        "psum1": 1,
        "src0": 4,
        "src1": 4,
        "dst": 4,
        "turn0": 2,  # quadrants that partitions move up on their way to the destination
        "turn1": 2,
        "to_psum": 1,
    }
)
"""All that reader and lanes need to know of an instruction while it runs."""

_FAST = (Opcode.TENSOR_COPY, Opcode.TENSOR_SCALAR, Opcode.MEMSET, Opcode.TENSOR_TENSOR)
_TWO = (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_SCAN, Opcode.SELECT, Opcode.COPY_PREDICATED)
_BITS = (Opcode.FIND_INDEX8, Opcode.TRANSPOSE, Opcode.SHUFFLE)


def _is(value: Value, *options: int) -> Value:
    return Cat(*(value == option for option in options)).any()


class Plan(wiring.Component):
    """`plan` of `word`, an instruction that issue has checked. Combinational.

    How many elements of a lane move at once: rtl.contract.rates, with an exp_rate of 2**`limit_exp_rate_log2`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({**limit_ports(cfg, "exp_rate_log2"), "word": In(INSTRUCTION_LAYOUT), "plan": Out(PLAN)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word, plan = self.word, self.plan
        opcode = word.opcode
        target = operand(word, "dst")
        fills = opcode == Opcode.MEMSET
        first = data.View(target.shape(), Mux(fills, Value.cast(target), Value.cast(operand(word, "src0"))))
        second = operand(word, "src1")
        plain = opcode == Opcode.TENSOR_COPY
        searches = _is(opcode, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)
        two = _is(opcode, *_TWO)
        names = ("opcode", "op0", "op1", "reverse0", "reverse1", "reduce", "store", "negate", "axes")
        shift = (self.cfg.partitions // QUADRANTS).bit_length() - 1
        psum = [p.space == Space.PSUM for p in (first, second)]
        copied = _is(opcode, Opcode.TENSOR_COPY, Opcode.COPY_PREDICATED) & (first.dtype == target.dtype)
        of_bits = Cat(Value.cast(word.op0)[5], Value.cast(word.op1)[5]).any()
        m.d.comb += [
            *(plan[name].eq(word[name]) for name in names),
            plan.a.eq(word.imm0[: len(plan.a)]),
            plan.b.eq(word.imm1[: len(plan.b)]),
            plan.start.eq(word.imm1[32:]),
            plan.column_a.eq(word.column0),
            plan.column_b.eq(word.column1),
            plan.special.eq(_is(opcode, *SPECIAL)),
            plan.two.eq(two),
            # a scan needs two cycles an element in any case
            plan.both.eq(two & (psum[0] ^ psum[1]) & (opcode != Opcode.TENSOR_SCAN)),
            plan.searches.eq(searches),
            plan.quantizes.eq(opcode == Opcode.QUANTIZE_MX),
            plan.reads.eq(~fills),
            plan.bits.eq(plain & copied),
            plan.raw.eq(copied | of_bits | _is(opcode, *_BITS[1:])),
            plan.psum0.eq(psum[0]),
            plan.psum1.eq(psum[1]),
            plan.src0.eq(first.dtype),
            plan.src1.eq(second.dtype),
            plan.dst.eq(target.dtype),
            plan.turn0.eq((target.partition_start >> shift) - (first.partition_start >> shift)),
            plan.turn1.eq((target.partition_start >> shift) - (second.partition_start >> shift)),
            plan.to_psum.eq(target.space == Space.PSUM),
        ]
        self._width(m, first, second, target)
        return m

    def _width(self, m: Module, first: data.View, second: data.View, target: data.View) -> None:
        """The widest of 1, 2 and 4 that the instruction wants and its operands permit."""
        plan, opcode = self.plan, self.word.opcode
        small = [is_small(p) for p in (first, second, target)]
        reduces = opcode == Opcode.TENSOR_REDUCE
        joins = opcode == Opcode.TENSOR_TENSOR
        all_small = small[0] & small[2] & (small[1] | ~joins)
        to_psum = target.space == Space.PSUM
        one_psum = (small[0] & to_psum) | (small[2] & (first.space == Space.PSUM)) | (~plan.reads & to_psum)
        built = Const(self.cfg.vector.exp_rate.bit_length() - 1, 2)
        rate = Mux(fault("exp is as fast as is built"), built, self.limit_exp_rate_log2)
        wanted = Signal(2)
        with m.If(_is(opcode, *_FAST)):
            m.d.comb += wanted.eq(Mux(all_small, 2, one_psum & ~joins))
        with m.Elif(reduces):
            m.d.comb += wanted.eq(small[0])
        with m.Elif(opcode == Opcode.EXP):
            most = Mux(all_small, 2, 1)
            m.d.comb += wanted.eq(Mux(rate < most, rate, most))
        fits = [neighbours_log2(m, p, name) for p, name in ((first, "first"), (second, "second"), (target, "target"))]
        least = wanted
        for limit, counts in ((fits[0], Const(1)), (fits[1], joins), (fits[2], ~reduces)):
            fewer = Signal(2)
            m.d.comb += fewer.eq(Mux(counts & (limit < least), limit, least))
            least = fewer
        m.d.comb += [plan.width.eq(least), plan.width_out.eq(Mux(reduces, 0, least))]
        with m.If(opcode == Opcode.QUANTIZE_MX):  # columns of four come in, pairs of columns go out
            m.d.comb += [plan.width.eq(2), plan.width_out.eq(1)]
