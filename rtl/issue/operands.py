"""Checks the operands of an instruction, each by itself and together."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import CAUSE_BITS
from rtl.base.fault import fault
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.base.pattern import operand
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Cause, Opcode
from rtl.contract.kinds import TAG_COLUMNS, Kind
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space
from rtl.contract.rule import IMMEDIATES, OpcodeRule
from rtl.issue.header import OPERANDS
from rtl.issue.pattern import ELEMENT_BITS, PatternCheck
from rtl.issue.table import row_of

__all__ = ["OperandsCheck"]

_FP32_BYTES = 4
_PATTERN_FAULTS = 13  # faults of PatternCheck that have the same number here
_INTEGER_SIZES = (1, 2, 4)

Finding = tuple[Value, Value, Value]
"""Whether something is wrong, cause, address."""


def _integer_bytes(dtype: Value) -> Value:
    """Bytes of an integer format as a bit each for 1, 2 and 4; 0 for all others."""
    codes = [sum(1 << f.code for f in FORMATS.values() if f.integer and f.bytes == n) for n in _INTEGER_SIZES]
    return Cat(*((Const(code, 16) >> dtype)[0] for code in codes))


class OperandsCheck(wiring.Component):
    """`step` counts 0 to 3 while `word` holds; at 4 `cause` and `address` say what is wrong first, 0 if nothing.

    `used`, at any time: the opcode has operands. The address is that of the operand's first byte, of a column or the
    accumulator its own on the first partition, of operands that do not go together that of the destination.
    `first_byte`: the address of src0's; `columns`: its elements.
    """

    def __init__(self, cfg: Config, rules: Mapping[Opcode, OpcodeRule]):
        self.cfg = cfg
        self.rules = rules
        super().__init__(
            {
                "word": In(INSTRUCTION_LAYOUT),
                "step": In(3),
                "used": Out(1),
                "cause": Out(CAUSE_BITS),
                "address": Out(64),
                "first_byte": Out(64),
                "columns": Out(ELEMENT_BITS),
            }
        )

    def _row(self, rule: OpcodeRule) -> dict[str, int]:
        named = [operand.field for operand in rule.operands]
        return {
            "both": int("src1" in named),
            "beside_dst": int("src0" not in named),
            "equal0": int("src0" in rule.equal),
            "equal1": int("src1" in rule.equal),
            "partitions0": int(rule.same_partitions),
            "partitions1": int(rule.same_partitions and "src1" in named),
            "reduces": int(rule.reduces),
            "operators": int(bool(rule.op0)),
            "same_format": int(rule.same_format),
            "quarter": int(rule.quarter),
            "turned": int(rule.turned),
            "scales": int("scales" in rule.immediates),
        }

    def _first_byte(self, m: Module, name: str) -> Value:
        """Address of an operand's first byte, whether or not it exists."""
        offset = Signal(40, name=f"{name}_first_byte")
        start = self.word[f"{name}_partition_start"] * PARTITION_STRIDE_BYTES
        m.d.comb += offset.eq(start + self.word[f"{name}_offset"])
        return Cat(offset, self.word[f"{name}_space"])

    def _columns(self, m: Module, row: data.View) -> list[Finding]:
        """The columns a and b beside the source and the accumulator's place beside dst: FP32, in SBUF."""
        word = self.word
        source = Mux(row.beside_dst, word.dst_partition_start, word.src0_partition_start)
        found: list[Finding] = []
        for used, place, start in (
            (word.column0, word.imm0, source),
            (word.column1, word.imm1, source),
            (word.store, word.imm2, word.dst_partition_start),
        ):
            at = place[:24]
            whole = Signal(40)
            m.d.comb += whole.eq(start * PARTITION_STRIDE_BYTES + at)
            misaligned = at[:2].any()
            outside = (at + _FP32_BYTES > self.cfg.sbuf.partition_bytes) & ~fault(
                "a column need not be in SBUF's range"
            )
            cause = Mux(misaligned, Cause.MISALIGNED, Cause.OUT_OF_RANGE)
            found.append((used & (misaligned | outside), cause, Cat(whole, Const(Space.SBUF, 24))))
        return found

    def _scales(self, m: Module, row: data.View, columns: Value) -> Finding:
        """The place of an MX operand's scales, a byte for each column of dst, on partitions of SBUF."""
        first, width = IMMEDIATES["scales"]
        at = self.word.imm0[first : first + width]
        misaligned = at[:2].any()
        outside = (at + columns > self.cfg.sbuf.partition_bytes) & ~fault("scales need not be in SBUF's range")
        whole = Signal(40)
        m.d.comb += whole.eq(self.word.dst_partition_start * PARTITION_STRIDE_BYTES + at)
        cause = Mux(misaligned, Cause.MISALIGNED, Cause.OUT_OF_RANGE)
        return row.scales & (misaligned | outside), cause, Cat(whole, Const(Space.SBUF, 24))

    def _together(self, row: data.View, checks: Mapping[str, PatternCheck], where: Value) -> list[Finding]:
        """What operands must have in common; the address is that of the destination."""
        word = self.word
        first, last = checks["src0"], checks["dst"]
        different = (row.equal0 & (first.elements != last.elements)) | (row.reduces & (first.groups != last.elements))
        different |= row.quarter & (first.elements != last.elements << 2)
        columns, rows = word.src0_partition_count != last.elements, word.dst_partition_count != first.elements
        different |= row.turned & (columns | rows) & ~fault("a transpose may have another shape than its source")
        different |= row.partitions0 & (word.src0_partition_count != word.dst_partition_count)
        sizes = [_integer_bytes(word[f"{name}_dtype"]) for name in ("src0", "dst")]
        mixed = ~sizes[0].any() | (sizes[0] != sizes[1])
        crowded: Value = Const(0, 1)
        if "src1" in checks:
            different |= row.equal1 & (checks["src1"].elements != last.elements)
            different |= row.partitions1 & (word.src1_partition_count != word.dst_partition_count)
            mixed |= row.both & (_integer_bytes(word.src1_dtype) != sizes[0])
            crowded = row.both & (word.src0_space == Space.PSUM) & (word.src1_space == Space.PSUM)
        bits = row.operators & (word.op0[5] | word.op1[5])
        moved = (
            row.same_format & (word.src0_dtype != word.dst_dtype) & ~fault("bits are moved between different formats")
        )
        return [
            (crowded, Const(Cause.BAD_SPACE), where),
            ((bits & mixed) | moved, Const(Cause.ILLEGAL_DTYPE), where),
            (different & ~fault("the shapes of source and destination may differ"), Const(Cause.BAD_PATTERN), where),
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self.word
        row = row_of(m, word.opcode, {opcode: self._row(rule) for opcode, rule in self.rules.items()})
        findings: list[Finding] = []  # in order of importance
        checks: dict[str, PatternCheck] = {}
        places: dict[str, Value] = {}
        for name in OPERANDS:
            rules = {opcode: one for opcode, rule in self.rules.items() for one in rule.operands if one.field == name}
            if not rules:
                continue
            group = name == "src0" and any(rule.reduces for rule in self.rules.values())
            check = PatternCheck(self.cfg, rules, group=group)
            m.submodules[f"check_{name}"] = checks[name] = check
            m.d.comb += [
                check.opcode.eq(word.opcode),
                check.step.eq(self.step),
                check.axes.eq(word.axes),
                check.kind.eq(word.kind),
                check.sparsity.eq(word.sparsity),
                check.tile.eq(word.tile),
                check.beside.eq(word.src0_partition_start),
                check.beside_count.eq(word.src0_partition_count),
                check.pattern.eq(operand(word, name)),
            ]
            places[name] = self._first_byte(m, name)
            findings.append((check.present & (check.cause != 0), check.cause, places[name]))
        if any(rule.columns or rule.sums for rule in self.rules.values()):
            findings += self._columns(m, row)
        if any("scales" in rule.immediates for rule in self.rules.values()):
            findings.append(self._scales(m, row, checks["dst"].elements))
        if any(operand.scales for rule in self.rules.values() for operand in rule.operands):
            elements = checks["src0"].elements
            wanted = Mux(word.kind == Kind.SPARSE, elements + (TAG_COLUMNS - 1) >> 2, elements)
            different = checks["src1"].present & (checks["src1"].elements != wanted)
            findings.append(
                (
                    different & ~fault("scales of the array may be fewer than their elements"),
                    Const(Cause.BAD_PATTERN),
                    places["src1"],
                )
            )
        if "dst" in checks:
            findings += self._together(row, checks, places["dst"])
        if "src0" in places:
            m.d.comb += [self.first_byte.eq(places["src0"]), self.columns.eq(checks["src0"].elements)]
        m.d.comb += self.used.eq(Cat(*(check.present for check in checks.values())).any())
        for wrong, cause, address in reversed(findings):
            with m.If(wrong):
                m.d.comb += [self.cause.eq(cause), self.address.eq(address)]
        return m
