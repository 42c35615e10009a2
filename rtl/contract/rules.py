"""What each opcode may ask for: operands, memories, number formats, limits. Issue enforces this table.

Order of the checks, first hit wins (docs/isa.md): opcode and reserved fields, semaphores, ring, operators, functions
that are not loaded, then src0, src1, dst, each in the order space, dtype, partitions, alignment, pattern, range, then
the columns a and b and the accumulator's place, then shapes.
"""

from dataclasses import replace

from rtl.contract.formats import MX_EMAX
from rtl.contract.isa import REDUCTIONS, AluOp, Opcode
from rtl.contract.memmap import Space
from rtl.contract.rule import OpcodeRule, OperandRule

__all__ = ["ARITHMETIC", "BIT_OPERATORS", "FIRST_OPERATORS", "NUMBERS", "PAIRS", "RULES", "SECOND_OPERATORS"]

NUMBERS = ("fp32", "bf16", "fp16", "e4m3fn", "e4m3", "e5m2", "int8", "int16", "int32", "uint8", "uint16", "uint32")
"""Formats that the vector and the scalar engine read."""

ARITHMETIC = tuple(op for op in AluOp if op < AluOp.BIT_AND)
BIT_OPERATORS = tuple(op for op in AluOp if op >= AluOp.BIT_AND)
"""All operands of an instruction with one of these are integers of one size, and so is the other operator."""

PAIRS = (
    (AluOp.MULTIPLY, AluOp.ADD),
    (AluOp.MULTIPLY, AluOp.SUBTRACT),
    (AluOp.MULTIPLY, AluOp.BYPASS),
    (AluOp.ADD, AluOp.BYPASS),
    (AluOp.SUBTRACT, AluOp.BYPASS),
    (AluOp.BYPASS, AluOp.BYPASS),
)
"""Operators in front of a function of the scalar engine."""

FIRST_OPERATORS = (AluOp.MULTIPLY, AluOp.ADD, AluOp.SUBTRACT, AluOp.BYPASS)
SECOND_OPERATORS = (AluOp.ADD, AluOp.SUBTRACT, AluOp.BYPASS)
"""Those that a lane of the scalar engine has. SCALAR_AFFINE takes any two of them."""

_SCAN = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_COMPARISONS = (AluOp.EQ, AluOp.NE, AluOp.GT, AluOp.GE, AluOp.LT, AluOp.LE)
_EITHER = ARITHMETIC + BIT_OPERATORS
_CHAIN = ("op0", "op1", "reverse0", "reverse1")

_MOVING = {Space.SBUF: ("bf16", "fp16", "tf32", "fp32", "e4m3fn", "e4m3", "e5m2", "e2m1")}
_STATIONARY = OperandRule(field="src0", dtypes=_MOVING, partitions="rows", most="cols", kinds=True)
_SCALES = OperandRule(field="src1", dtypes={Space.SBUF: ("e8m0", "e4m3fn")}, most="cols", scales=True)
_BESIDE = replace(_SCALES, dtypes={Space.SBUF: ("e8m0", "e4m3fn", "uint16")}, tags=True)
_OF_ARRAY = ("kind", "tile", "sparsity")
_SUMS = OperandRule(
    field="dst", dtypes={Space.PSUM: ("fp32",)}, partitions="cols", most="moving", from_zero=True, ascending=True
)

_READ: dict[Space, tuple[str, ...]] = {Space.SBUF: NUMBERS, Space.PSUM: ("fp32",)}
_X = OperandRule(field="src0", dtypes=_READ)
_Y = OperandRule(field="src1", dtypes=_READ)
_OUT = OperandRule(field="dst", dtypes={Space.SBUF: (*NUMBERS, "tf32"), Space.PSUM: ("fp32",)})
_NEAR = OperandRule(field="dst", dtypes={Space.SBUF: (*NUMBERS, "tf32")})
"""Of instructions that do not write element by element: SBUF only."""
_SEARCHED = replace(_X, least=8, most=16384)
_EIGHT = replace(_Y, least=8, most=8)


def _elementwise(*sources: OperandRule, dst: OperandRule = _OUT) -> OpcodeRule:
    """As many elements on as many partitions in all operands."""
    return OpcodeRule(operands=(*sources, dst), same_partitions=True, equal=tuple(s.field for s in sources))


def _to(source: OperandRule, count: int) -> OpcodeRule:
    """So many elements of a source give `count` on each partition of SBUF."""
    return OpcodeRule(operands=(source, replace(_NEAR, least=count, most=count)), same_partitions=True)


def _moves(multiple: int | str) -> OpcodeRule:
    """Bits change places within blocks of partitions."""
    dst = OperandRule(field="dst", dtypes={Space.SBUF: NUMBERS})
    x, dst = (replace(rule, blocks=True, multiple=multiple) for rule in (_X, dst))
    return replace(_elementwise(x, dst=dst), same_format=True)


_MAX8 = _to(_SEARCHED, 8)
_POSITIONS = OperandRule(field="dst", dtypes={Space.SBUF: ("uint16", "uint32")}, least=8, most=8)

RULES: dict[Opcode, OpcodeRule] = {
    Opcode.NOP: OpcodeRule(),
    Opcode.DMA_TRIGGER: OpcodeRule(immediates=("imm0", "imm1")),
    Opcode.DMA_COPY: OpcodeRule(free=("src0", "src1", "dst"), raw=True, immediates=("imm0", "imm1")),
    Opcode.LOAD_STATIONARY: OpcodeRule(operands=(_STATIONARY, _BESIDE), fields=_OF_ARRAY, immediates=("map",)),
    Opcode.MULTIPLY_MOVING: OpcodeRule(
        operands=(replace(_STATIONARY, most="moving", moves=True), replace(_SCALES, most="moving"), _SUMS),
        fields=("accumulate", *_OF_ARRAY, "rounding"),
        immediates=("map", "seed"),
        equal=("src0",),
    ),
    Opcode.TENSOR_TRANSPOSE: OpcodeRule(
        operands=(
            replace(_STATIONARY, raw=True),
            OperandRule(field="dst", dtypes=_SUMS.dtypes, partitions="cols", from_zero=True),
        ),
        fields=("kind", "tile"),
        turned=True,
    ),
    Opcode.TENSOR_COPY: _elementwise(_X),
    Opcode.TENSOR_TENSOR: replace(_elementwise(_X, _Y), fields=("op0", "reverse0"), op0=_EITHER),
    Opcode.TENSOR_SCALAR: replace(_elementwise(_X), fields=_CHAIN, op0=_EITHER, op1=_EITHER, columns=("a", "b")),
    Opcode.SCALAR_TENSOR_TENSOR: replace(_elementwise(_X, _Y), fields=_CHAIN, op0=_EITHER, op1=_EITHER, columns=("a",)),
    Opcode.TENSOR_REDUCE: OpcodeRule(
        operands=(_X, _OUT), same_partitions=True, fields=("op0", "axes", "negate"), op0=REDUCTIONS, reduces=True
    ),
    Opcode.TENSOR_SCAN: replace(_elementwise(_X, _Y), fields=_CHAIN, op0=_SCAN, op1=_SCAN, columns=("a",)),
    Opcode.SELECT: replace(_elementwise(_X, _Y), columns=("a",)),
    Opcode.COPY_PREDICATED: _elementwise(_X, _Y),
    Opcode.RANGE_SELECT: replace(
        _elementwise(_X),
        fields=("op0", "op1"),
        op0=_COMPARISONS,
        op1=_COMPARISONS,
        columns=("a", "b"),
        immediates=("start",),
        sums=True,
    ),
    Opcode.BN_STATS: _to(replace(_X, most=512), 6),
    Opcode.BN_AGGR: _to(replace(_X, multiple=3), 2),
    Opcode.RECIPROCAL: _elementwise(_X),
    Opcode.MEMSET: OpcodeRule(operands=(_OUT,), columns=("a",)),
    Opcode.MAX8: _MAX8,
    Opcode.FIND_INDEX8: replace(_MAX8, operands=(_SEARCHED, _EIGHT, _POSITIONS)),
    Opcode.MATCH_REPLACE8: OpcodeRule(
        operands=(_SEARCHED, _EIGHT, _NEAR), same_partitions=True, equal=("src0",), columns=("a",)
    ),
    Opcode.TRANSPOSE: _moves("block"),
    Opcode.SHUFFLE: replace(_moves(1), immediates=("mask",)),
    Opcode.EXP: replace(_elementwise(_X), columns=("a", "b"), sums=True, loads=True),
    Opcode.QUANTIZE_MX: OpcodeRule(
        operands=(
            OperandRule(
                field="src0", dtypes={Space.SBUF: ("bf16", "fp16")}, multiple=16, aligned=4, eights=True, row=True
            ),
            OperandRule(field="dst", dtypes={Space.SBUF: tuple(MX_EMAX)}, aligned=2, eights=True, row=True, fours=True),
        ),
        same_partitions=True,
        quarter=True,
        immediates=("scales", "slot", "rule"),
    ),
    Opcode.ACTIVATION: replace(
        _elementwise(_X),
        fields=_CHAIN,
        op0=FIRST_OPERATORS,
        op1=SECOND_OPERATORS,
        pairs=PAIRS,
        columns=("a", "b"),
        immediates=("slope", "function", "reduction"),
        sums=True,
        loads=True,
    ),
    Opcode.SCALAR_COPY: _elementwise(_X),
    Opcode.SCALAR_AFFINE: replace(
        _elementwise(_X), fields=_CHAIN, op0=FIRST_OPERATORS, op1=SECOND_OPERATORS, columns=("a", "b")
    ),
    Opcode.LOAD_TABLE: OpcodeRule(
        operands=(OperandRule(field="src0", dtypes={Space.SBUF: ("uint32",)}, multiple=2),), immediates=("functions",)
    ),
    Opcode.GP_LOAD: OpcodeRule(
        operands=(OperandRule(field="src0", dtypes={Space.SBUF: ("uint32",)}),), immediates=("load", "tohost")
    ),
    Opcode.GP_STORE: OpcodeRule(
        operands=(OperandRule(field="dst", dtypes={Space.SBUF: ("uint32",)}),), immediates=("load",)
    ),
    Opcode.GP_RUN: OpcodeRule(free=("src0", "src1", "dst"), immediates=("imm0", "imm1", "imm2")),
}
