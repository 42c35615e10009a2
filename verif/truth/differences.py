"""Where this hart refuses an encoding that QEMU 7.2 executes, each with the words of RVV 1.0 that reserve it."""

from collections.abc import Callable

__all__ = ["DIFFERENCES", "difference"]

ARITHMETIC, LOAD, STORE = 0x57, 0x07, 0x27
IVV, MVV, IVI, IVX, MVX = 0, 2, 3, 4, 6
MASK_LOGIC, COMPRESS, WHOLE_MOVE = range(0x18, 0x20), 0x17, 0x27
NARROW, WIDE_FIRST, WIDE_MULTIPLY_ADD = range(0x2C, 0x30), range(0x34, 0x38), range(0x3C, 0x40)
MULTIPLY_ADD, REDUCE, WIDE_REDUCE = (0x29, 0x2B, 0x2D, 0x2F), range(0x00, 0x08), (0x30, 0x31)
WIDTH = {0: 8, 5: 16, 6: 32, 7: 64}

Width = tuple[float, float]
"""Bits of an element, registers."""
Read = tuple[int, float, float]
"""First register, then these."""


def _arithmetic_reads(word: int, sew: int, lmul: float) -> list[Read]:
    funct3, funct6 = word >> 12 & 7, word >> 26
    vd, vs1, vs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    integer, multiply = funct3 in (IVV, IVI, IVX), funct3 in (MVV, MVX)
    plain: Width = (sew, lmul)
    wide: Width = (2 * sew, 2 * lmul)
    first, second = plain, plain
    reads: list[Read] = []
    if (integer and funct6 in NARROW) or (multiply and funct6 in WIDE_FIRST):
        first = wide
    if funct3 == MVV:
        if funct6 in (0x10, 0x12, 0x14):
            part = 2 if vs1 >= 6 else 4
            kinds: dict[int, Width] = {0x10: (1 if vs1 else sew, 1), 0x12: (sew // part, lmul / part), 0x14: (1, 1)}
            first, second = kinds[funct6], (0, 0)
        if funct6 in MASK_LOGIC:
            first = second = (1, 1)
        if funct6 == COMPRESS:
            second = (1, 1)
        if funct6 in REDUCE:
            second = (sew, 1)
    if funct3 == IVV and funct6 in WIDE_REDUCE:
        second = (2 * sew, 1)
    if funct3 == IVV and funct6 == 0x0E:
        second = (16, 16 * lmul / sew)
    if multiply and funct6 in MULTIPLY_ADD:
        reads.append((vd, plain[0], plain[1]))
    if multiply and funct6 in WIDE_MULTIPLY_ADD:
        reads.append((vd, wide[0], wide[1]))
    if not (funct3 == MVX and funct6 == 0x10):
        reads.append((vs2, first[0], first[1]))
    if funct3 in (IVV, MVV) and second[0]:
        reads.append((vs1, second[0], second[1]))
    return reads


def _memory_reads(word: int, sew: int, lmul: float) -> list[Read]:
    eew, fields, mop = WIDTH[word >> 12 & 7], (word >> 29) + 1, word >> 26 & 3
    indexed = mop in (1, 3)
    data, multiple = (sew, lmul) if indexed else (eew, eew * lmul / sew)
    reads: list[Read] = [(word >> 7 & 31, data, fields * max(multiple, 1))] if word & 0x7F == STORE else []
    return reads + ([(word >> 20 & 31, eew, eew * lmul / sew)] if indexed else [])


def _two_widths(word: int, vtype: int) -> bool:
    if word >> 12 & 7 == 7 and word & 0x7F == ARITHMETIC:
        return False
    sew, lmul = 8 << (vtype >> 3 & 7), 2.0 ** ((vtype & 7 ^ 4) - 4)
    reads = (_arithmetic_reads if word & 0x7F == ARITHMETIC else _memory_reads)(word, sew, lmul)
    if not word >> 25 & 1:
        reads.append((0, 1, 1))
    return any(a[1] != b[1] and a[0] < b[0] + max(b[2], 1) and b[0] < a[0] + max(a[2], 1) for a in reads for b in reads)


def _masked_logic(word: int, vtype: int) -> bool:
    kind = word & 0x7F, word >> 12 & 7, word >> 25 & 1
    return kind == (ARITHMETIC, MVV, 0) and (word >> 26 == COMPRESS or word >> 26 in MASK_LOGIC)


def _eew_64(word: int, vtype: int) -> bool:
    return word & 0x7F in (LOAD, STORE) and word >> 12 & 7 == 7


def _move_without_vtype(word: int, vtype: int) -> bool:
    return vtype >> 31 == 1 and word & 0x7F == ARITHMETIC and (word >> 12 & 7, word >> 26) == (IVI, WHOLE_MOVE)


DIFFERENCES: dict[str, Callable[[int, int], bool]] = {
    # 5.2: "A vector register cannot be used to provide source operands with more than one EEW for a single instruction.
    # A mask register source is considered to have EEW=1 for this constraint." What does so "is reserved".
    "a register is read with two widths": _two_widths,
    # 15.1: "Vector mask logical instructions are always unmasked, so there are no inactive elements, and the encodings
    # with vm=0 are reserved." 16.5: "The equivalent masked instruction (vm=0) is reserved."
    "mask logic or vcompress with vm=0": _masked_logic,
    # 18.2: Zve32x has "Supported EEW 8, 16, 32".
    "EEW 64": _eew_64,
    # 3.4.4: "If the vill bit is set, then any attempt to execute a vector instruction that depends upon vtype will
    # raise an illegal-instruction exception. vset{i}vl{i} and whole register loads and stores do not depend upon
    # vtype." 16.6: "The instructions operate as if EEW=SEW".
    "vmv<nr>r while vill": _move_without_vtype,
}
"""By name: whether a word is one while vtype is what it is."""


def difference(word: int, vtype: int) -> str | None:
    """The name of the first that holds."""
    return next((name for name, holds in DIFFERENCES.items() if holds(word, vtype)), None)
