"""How fast instructions of the vector and scalar engines can be: elements a lane a cycle of their engine.

Source: the instruction table and the performance modes of the vector engine (NKI documentation; what is read and
written a cycle is 8 bytes a lane each way). docs/numerics.md: results do not depend on the width.
"""

from fractions import Fraction

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import Config
from rtl.contract.formats import by_code
from rtl.contract.isa import Opcode
from rtl.contract.memmap import Space

__all__ = ["MIN_CYCLES", "cycles", "elements", "table_cycles", "width"]

MIN_CYCLES = 64
"""Fewest vector cycles that the table gives any instruction."""
_PORT_BYTES = 8
_ONE_EACH_OF_TWO = (Opcode.SCALAR_TENSOR_TENSOR, Opcode.SELECT, Opcode.COPY_PREDICATED)
_TWO_ON_SCALAR = (Opcode.ACTIVATION, Opcode.SCALAR_COPY, Opcode.SCALAR_AFFINE)
_Operand = AccessPattern | None


def _small(pattern: _Operand) -> bool:
    """SBUF, 16 or 8 bits."""
    return pattern is None or (pattern.space == Space.SBUF and by_code(pattern.dtype).bytes <= 2)


def _in_psum(pattern: _Operand) -> bool:
    return pattern is not None and pattern.space == Space.PSUM


def _aligned(pattern: _Operand, count: int) -> bool:
    """Whether the operand consists of aligned groups of `count` neighbours that fit the port."""
    if pattern is None:
        return True
    size = by_code(pattern.dtype).bytes
    (step, inner), *outer = pattern.dims
    return count == 1 or (
        count * size <= _PORT_BYTES
        and step == 1
        and inner % count == 0
        and pattern.offset % (count * size) == 0
        and all(s % count == 0 for s, n in outer if n > 1)
    )


def width(opcode: Opcode, cfg: Config, src0: _Operand, src1: _Operand, dst: _Operand, *, sums: bool = False) -> int:
    """Elements of a lane that move at once: 1, 2 or 4. `sums`: the instruction takes its accumulator."""
    moved = [src0, src1, dst]
    small = all(_small(p) for p in moved)
    wanted = 1
    if opcode in (Opcode.TENSOR_COPY, Opcode.TENSOR_SCALAR, Opcode.MEMSET):
        one_psum = (_in_psum(src0) and _small(dst)) or (_in_psum(dst) and _small(src0))
        wanted = 4 if small else 2 if one_psum else 1
    elif opcode == Opcode.TENSOR_TENSOR:
        wanted = 4 if small else 1
    elif opcode == Opcode.TENSOR_REDUCE:
        wanted, moved = 2 if _small(src0) else 1, [src0]
    elif opcode == Opcode.EXP:
        wanted = min(cfg.vector.exp_rate, 4 if small else 2)
    elif opcode == Opcode.QUANTIZE_MX:
        wanted, moved = 4, [src0]
    elif opcode in _TWO_ON_SCALAR:
        wanted = 2 if small and not sums else 1
    return next(w for w in (4, 2, 1) if w <= wanted and all(_aligned(p, w) for p in moved))


def elements(src0: _Operand, dst: _Operand) -> int:
    """Elements of a lane that an instruction works on: those of its source, without one of dst."""
    one = src0 or dst
    return one.elements if one else 0


def cycles(
    opcode: Opcode, cfg: Config, src0: _Operand, src1: _Operand, dst: _Operand, *, sums: bool = False
) -> Fraction:
    """Cycles of its engine that an instruction cannot do without: elements / rate, no overheads."""
    n = elements(src0, dst)
    both_sbuf = src1 is not None and not _in_psum(src0) and not _in_psum(src1)
    if opcode == Opcode.TENSOR_TENSOR:
        wide = width(opcode, cfg, src0, src1, dst)
        if wide > 1:
            return Fraction(2 * n, wide)
        return Fraction(2 * n if both_sbuf else n)
    if opcode == Opcode.TENSOR_SCAN:
        return Fraction(2 * n)  # an element needs the result before it, two operations later
    if opcode in _ONE_EACH_OF_TWO:
        return Fraction(2 * n if both_sbuf else n)
    if opcode == Opcode.RECIPROCAL:
        return Fraction(8 * n)
    if opcode == Opcode.BN_AGGR:
        return Fraction(13 * n, 3)
    if opcode == Opcode.LOAD_TABLE and src0 is not None:
        return Fraction(n * src0.partition_count, 2)  # (address, word) pairs, one at a time
    return Fraction(n, width(opcode, cfg, src0, src1, dst, sums=sums))


def table_cycles(opcode: Opcode, cfg: Config, src0: _Operand, src1: _Operand, dst: _Operand) -> int:
    """The same, rounded up, and at least MIN_CYCLES; 0 for what has no elements."""
    exact = cycles(opcode, cfg, src0, src1, dst)
    return max(MIN_CYCLES, -(-exact.numerator // exact.denominator)) if exact else 0
