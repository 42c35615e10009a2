"""Checks an instruction outside its operands: opcode, reserved fields, semaphores, ring, operators, functions."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.dma_port import CAUSE_BITS
from rtl.base.fault import fault
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.contract.access_pattern import PATTERN
from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import (
    INSTRUCTION,
    REDUCTIONS,
    SHUFFLE_KEEP,
    AluOp,
    Cause,
    Function,
    Opcode,
    Reduce,
    Rounding,
    Update,
    Wait,
    block,
)
from rtl.contract.kinds import SCALE_FORMATS, Kind
from rtl.contract.memmap import Space
from rtl.contract.rule import IMMEDIATES, OpcodeRule, immediate_bits
from rtl.contract.sparsity import PATTERNS
from rtl.issue.table import row_of

__all__ = ["OPERANDS", "HeaderCheck"]

OPERANDS = ("src0", "src1", "dst")
_IMMEDIATES = ("imm0", "imm1", "imm2")
_HEADER = (
    "accumulate",
    *("op0", "op1", "reverse0", "reverse1", "column0", "column1", "reduce", "store", "axes", "negate", "flags"),
    *("kind", "tile", "sparsity", "rounding", "header_reserved", "header_pad"),
)
_SLOPED = (Function.PRELU, Function.LEAKY_RELU)
_MASK_BITS = 6


def _set(members: tuple[int, ...]) -> int:
    return sum(1 << member for member in members)


def _in(number: Value, members: tuple[int, ...]) -> Value:
    """Whether a number is one of the constants."""
    return (Const(_set(members)) >> number)[0]


class HeaderCheck(wiring.Component):
    """Cause and address of the first rule that `word` breaks outside its operands; combinational.

    `loaded`: functions of the table that the queue loaded last, a bit each.
    """

    def __init__(self, cfg: Config, rules: Mapping[Opcode, OpcodeRule]):
        self.cfg = cfg
        self.rules = rules
        super().__init__(
            {
                "word": In(INSTRUCTION_LAYOUT),
                "loaded": In(max(Function) + 1),
                "cause": Out(CAUSE_BITS),
                "address": Out(64),
            }
        )

    def _row(self, rule: OpcodeRule) -> dict[str, int]:
        named = [operand.field for operand in rule.operands] + list(rule.free)
        imm0, imm1, imm2 = immediate_bits(self.cfg, rule)
        return {
            "known": 1,
            "header": _set(tuple(i for i, name in enumerate(_HEADER) if name in rule.header)),
            "operands": _set(tuple(i for i, name in enumerate(OPERANDS) if name in named)),
            "raw": int(rule.raw),
            "imm0": imm0,
            "imm1": imm1,
            "imm2": imm2,
            "op0": _set(rule.op0 or (AluOp.BYPASS,)),
            "op1": _set(rule.op1 or (AluOp.BYPASS,)),
            "pairs": int(bool(rule.pairs)),
            "sums": int(rule.sums),
            "loads": int(rule.loads),
            "only_loads": int(rule.loads and not rule.op1),
            "function": int("function" in rule.immediates),
            "mask": int("mask" in rule.immediates),
            "map": int("map" in rule.immediates),
            "seed": int("seed" in rule.immediates),
            "scales": int(any(operand.scales for operand in rule.operands)),
            "tags": int(any(operand.tags for operand in rule.operands)),
        }

    def _reserved(self, word: data.View, row: data.View) -> Value:
        """Whether a field is set that means nothing in this instruction."""
        parts = [Value.cast(word[name]).any() & ~row.header[i] for i, name in enumerate(_HEADER)]
        for i, name in enumerate(OPERANDS):
            at = INSTRUCTION.offset(f"{name}_offset")
            parts.append(word[f"{name}_reserved"].any() & ~row.raw)
            parts.append(Value.cast(word)[at : at + PATTERN.width].any() & ~row.operands[i])
        parts += [(word[name] & ~row[name]).any() for name in _IMMEDIATES]
        # Of a column and of the accumulator there is a place only, of b nothing if nothing takes it.
        parts += [word.column0 & word.imm0[24:32].any(), word.column1 & word.imm1[24:32].any()]
        parts.append(row.sums & ~word.store & word.imm2[:24].any())
        loading = word.reduce == Reduce.LOAD_REDUCE
        parts.append(row.only_loads & ~loading & (word.column1 | word.imm1[:32].any()))
        # Scales, tags and the map of E2M1 numbers are there if something takes them.
        src1 = INSTRUCTION.offset("src1_offset")
        scaled = Cat(*(word.kind == kind for kind in SCALE_FORMATS)).any()
        sparse = word.kind == Kind.SPARSE
        scaled |= row.tags & sparse
        parts.append(row.scales & ~scaled & Value.cast(word)[src1 : src1 + PATTERN.width].any())
        parts.append(row.map & (word.src0_dtype != FORMATS["e2m1"].code) & Cat(word.imm0, word.imm1).any())
        parts.append(word.rounding > max(Rounding))
        parts.append(
            row.seed
            & (word.rounding != Rounding.STOCHASTIC)
            & word.imm2.any()
            & ~fault("a seed needs no random rounding")
        )
        known = sparse & (word.sparsity <= max(p.code for p in PATTERNS.values()))
        parts.append(word.sparsity.any() & ~known & ~fault("a pattern of sparsity goes with any kind"))
        parts.append((word.tile > exact_log2(self.cfg.tensor.groups)) & ~fault("row tiles need no row groups"))
        function, reduction = self._function(word)
        sloped = Cat(*(function == one for one in _SLOPED)).any()
        parts.append(row.function & ~sloped & word.imm0[32:].any())
        parts.append(row.function & (word.reduce == Reduce.IDLE) & reduction.any())
        return Cat(*parts).any()

    @staticmethod
    def _function(word: data.View) -> tuple[Value, Value]:
        """Function and operator of the reduction of an ACTIVATION."""
        fields = []
        for name in ("function", "reduction"):
            first, width = IMMEDIATES[name]
            fields.append(word.imm2[first - 128 : first - 128 + width])
        return fields[0], fields[1]

    def _operators(self, word: data.View, row: data.View) -> Value:
        """Whether an operator, function or mask does not exist, or goes with no other."""
        ops = [Value.cast(word.op0), Value.cast(word.op1)]
        wrong = [~(row.op0 >> ops[0])[0], ~(row.op1 >> ops[1])[0]]
        of_bits = [op[5] for op in ops]
        passes = [op == AluOp.BYPASS for op in ops]
        wrong.append(Cat(*of_bits).any() & ~((of_bits[0] | passes[0]) & (of_bits[1] | passes[1])))
        pairs = {pair: None for rule in self.rules.values() for pair in rule.pairs}
        if pairs:
            wrong.append(row.pairs & ~Cat(*((ops[0] == x) & (ops[1] == y) for x, y in pairs)).any())
        loading = word.reduce == Reduce.LOAD_REDUCE
        wrong.append(row.sums & word.store & (word.reduce == Reduce.IDLE))
        wrong.append(row.sums & loading & (~row.loads | ~passes[1]))
        function, reduction = self._function(word)
        exists = _in(function, tuple(Function)) & (~(word.reduce != Reduce.IDLE) | _in(reduction, REDUCTIONS))
        wrong.append(row.function & ~exists)
        wrong.append(row.mask & self._foreign(word) & ~fault("a shuffle may take any partition"))
        return Cat(*wrong).any()

    def _foreign(self, word: data.View) -> Value:
        """Whether an entry of a SHUFFLE mask is neither a partition of the block nor SHUFFLE_KEEP."""
        if Opcode.SHUFFLE not in self.rules:
            return Const(0, 1)
        partitions = block(self.cfg.partitions)
        packed = Cat(word.imm0, word.imm1, word.imm2)
        entries = [packed[_MASK_BITS * j : _MASK_BITS * (j + 1)] for j in range(partitions)]
        return Cat(*((entry >= partitions) & (entry != SHUFFLE_KEEP) for entry in entries)).any()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self.word
        rows = {opcode: self._row(rule) for opcode, rule in self.rules.items()}
        widths = {name: INSTRUCTION_LAYOUT[name].width for name in _IMMEDIATES}
        row = row_of(m, word.opcode, rows, {"header": len(_HEADER), "operands": len(OPERANDS), **widths})
        kinds = (word.wait0 > max(Wait)) | (word.wait1 > max(Wait)) | (word.update > max(Update))
        illegal = Signal()
        m.d.comb += illegal.eq(
            ~row.known | ((self._reserved(word, row) | kinds) & ~fault("reserved fields are not looked at"))
        )
        no_ring = (word.imm0 >= self.cfg.dma.rings) & ~fault("any ring of a DMA exists")
        bad_ring = no_ring | (word.imm1 == 0) | (word.imm1[32:] != 0)
        function = self._function(word)[0]
        tabled = row.function & (function >= FIRST_TABLE_FUNCTION) & ~(self.loaded >> function)[0]
        with m.If(illegal):
            m.d.comb += self.cause.eq(Cause.ILLEGAL_OPCODE)
        with m.Elif((word.opcode == Opcode.DMA_TRIGGER) & bad_ring):
            m.d.comb += self.cause.eq(Cause.BAD_RING)
        with m.Elif(self._operators(word, row) & ~fault("every operator exists")):
            m.d.comb += self.cause.eq(Cause.BAD_OPERATOR)
        with m.Elif(tabled & ~fault("functions need no table")):
            m.d.comb += self.cause.eq(Cause.NOT_LOADED)
        # Later ones win: wait0 goes before wait1 before update, all before the ring.
        for kind in ("update", "wait1", "wait0"):
            index = Value.cast(word[f"{kind}_semaphore"])
            missing = (word[kind] != 0) & (index >= self.cfg.issue.semaphores) & ~fault("every semaphore exists")
            with m.If(~illegal & missing):
                m.d.comb += [
                    self.cause.eq(Cause.BAD_SEMAPHORE),
                    self.address.eq(Cat(Const(0, 2), index) | (Space.SEMAPHORES << 40)),
                ]
        return m
