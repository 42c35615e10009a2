"""What each opcode may ask for: operands, memories, number formats, limits. Issue enforces this table.

Order of the checks, first hit wins (docs/isa.md): opcode and reserved fields, semaphores, ring, operators, then
src0, src1, dst, each in the order space, dtype, partitions, alignment, pattern, range, then the columns a and b and
the accumulator's place, then shapes.
"""

from dataclasses import dataclass

from rtl.contract.config import Config
from rtl.contract.isa import REDUCTIONS, AluOp, Opcode
from rtl.contract.memmap import Space

__all__ = [
    "ARITHMETIC",
    "BIT_OPERATORS",
    "ELEMENTS_MAX",
    "RULES",
    "OpcodeRule",
    "OperandRule",
    "elements_limit",
    "partitions_limit",
]

ELEMENTS_MAX = 1 << 17
"""Most elements a partition of a TENSOR_COPY: a whole SBUF partition of 16-bit elements."""

_MOVING = {Space.SBUF: ("bf16", "fp16")}
_NUMBERS = ("fp32", "bf16", "fp16", "e4m3fn", "e4m3", "e5m2", "int8", "int16", "int32", "uint8", "uint16", "uint32")
_SOURCE: dict[Space, tuple[str, ...]] = {Space.SBUF: _NUMBERS, Space.PSUM: ("fp32",)}
_TARGET: dict[Space, tuple[str, ...]] = {Space.SBUF: _NUMBERS}

ARITHMETIC = tuple(op for op in AluOp if op < AluOp.BIT_AND)
BIT_OPERATORS = tuple(op for op in AluOp if op >= AluOp.BIT_AND)
"""All operands of an instruction with one of these are integers of one size, and so is the other operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandRule:
    """One operand: which formats in which memories, how many partitions and elements.

    `partitions` names the limit: start + count is at most tensor.rows ("rows"), tensor.cols ("cols") or
    the partitions of the core ("core"). `elements` names the limit of elements a partition: "cols",
    "moving" (tensor.moving_max) or "copy" (ELEMENTS_MAX). `from_zero`: starts at partition 0.
    `ascending`: no element twice, each dimension steps over the whole one inside it.
    """

    field: str
    dtypes: dict[Space, tuple[str, ...]]
    partitions: str
    elements: str
    from_zero: bool = False
    ascending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeRule:
    """An opcode. Operands, immediates and fields of the header that it does not name must be 0.

    `op0`, `op1`: operators it takes; one bit operator calls for another, or BYPASS as op1. `columns`: which of a and
    b it has, constant or column. `sums`: it has an accumulator (fields reduce and store, imm2).
    """

    operands: tuple[OperandRule, ...] = ()
    immediates: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    op0: tuple[AluOp, ...] = ()
    op1: tuple[AluOp, ...] = ()
    columns: tuple[str, ...] = ()
    sums: bool = False
    same_partitions: bool = False  # partition_count of all operands; elements are equal whenever two exist
    reduces: bool = False  # dst has an element for each group of src0


def _elementwise(field: str, dtypes: dict[Space, tuple[str, ...]]) -> OperandRule:
    return OperandRule(field=field, dtypes=dtypes, partitions="core", elements="copy")


_ONE = (_elementwise("src0", _SOURCE), _elementwise("dst", _TARGET))
_TWO = (_elementwise("src0", _SOURCE), _elementwise("src1", _SOURCE), _elementwise("dst", _TARGET))
_EITHER = ARITHMETIC + BIT_OPERATORS

RULES: dict[Opcode, OpcodeRule] = {
    Opcode.NOP: OpcodeRule(),
    Opcode.DMA_TRIGGER: OpcodeRule(immediates=("imm0", "imm1")),
    Opcode.LOAD_STATIONARY: OpcodeRule(
        operands=(OperandRule(field="src0", dtypes=_MOVING, partitions="rows", elements="cols"),),
    ),
    Opcode.MULTIPLY_MOVING: OpcodeRule(
        operands=(
            OperandRule(field="src0", dtypes=_MOVING, partitions="rows", elements="moving"),
            OperandRule(
                field="dst",
                dtypes={Space.PSUM: ("fp32",)},
                partitions="cols",
                elements="moving",
                from_zero=True,
                ascending=True,
            ),
        ),
        fields=("accumulate",),
    ),
    Opcode.TENSOR_COPY: OpcodeRule(operands=_ONE, same_partitions=True),
    Opcode.TENSOR_TENSOR: OpcodeRule(
        operands=_TWO, same_partitions=True, fields=("op0", "reverse0"), op0=_EITHER
    ),
    Opcode.TENSOR_SCALAR: OpcodeRule(
        operands=_ONE,
        same_partitions=True,
        fields=("op0", "op1", "reverse0", "reverse1"),
        op0=_EITHER,
        op1=_EITHER,
        columns=("a", "b"),
    ),
    Opcode.SCALAR_TENSOR_TENSOR: OpcodeRule(
        operands=_TWO,
        same_partitions=True,
        fields=("op0", "op1", "reverse0", "reverse1"),
        op0=_EITHER,
        op1=_EITHER,
        columns=("a",),
    ),
    Opcode.TENSOR_REDUCE: OpcodeRule(
        operands=_ONE, same_partitions=True, fields=("op0", "axes", "negate"), op0=REDUCTIONS, reduces=True
    ),
    Opcode.RECIPROCAL: OpcodeRule(operands=_ONE, same_partitions=True),
    Opcode.EXP: OpcodeRule(operands=_ONE, same_partitions=True, columns=("a", "b"), sums=True),
}


def partitions_limit(cfg: Config, rule: OperandRule) -> int:
    """First partition that an operand must not touch."""
    return {"rows": cfg.tensor.rows, "cols": cfg.tensor.cols, "core": cfg.partitions}[rule.partitions]


def elements_limit(cfg: Config, rule: OperandRule) -> int:
    """Most elements of a partition."""
    limits = {"cols": cfg.tensor.cols, "moving": cfg.tensor.moving_max, "copy": ELEMENTS_MAX}
    return limits[rule.elements]
