"""Compressed instructions: the 32-bit instruction that each 16-bit one stands for, RV32C without floating point.

Source: The RISC-V Instruction Set Manual, volume I, chapter "C" Standard Extension, tables of the three quadrants.
"""

__all__ = ["expand"]

RA, SP = 1, 2
EBREAK = 0x00100073


def _bits(half: int, *fields: tuple[int, int, int]) -> int:
    """An immediate gathered from (lowest bit in the halfword, count of bits, lowest bit in the immediate)."""
    return sum((half >> at & (1 << count) - 1) << to for at, count, to in fields)


def _i(opcode: int, funct3: int, rd: int, rs1: int, imm: int) -> int:
    return (imm & 0xFFF) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode


def _addi(rd: int, rs1: int, imm: int) -> int:
    return _i(0x13, 0, rd, rs1, imm)


def _lw(rd: int, rs1: int, imm: int) -> int:
    return _i(0x03, 2, rd, rs1, imm)


def _sw(rs2: int, rs1: int, imm: int) -> int:
    return imm >> 5 << 25 | rs2 << 20 | rs1 << 15 | 2 << 12 | (imm & 31) << 7 | 0x23


def _r(funct7: int, funct3: int, rd: int, rs1: int, rs2: int) -> int:
    return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33


def _jal(rd: int, half: int) -> int:
    fields = ((12, 1, 11), (11, 1, 4), (9, 2, 8), (8, 1, 10), (7, 1, 6), (6, 1, 7), (3, 3, 1), (2, 1, 5))
    imm = _bits(half, *fields)
    sign = 0x1FF if half >> 12 & 1 else 0  # bits 20 and 19 to 12
    return (sign >> 8) << 31 | (imm >> 1 & 0x3FF) << 21 | (imm >> 11 & 1) << 20 | (sign & 0xFF) << 12 | rd << 7 | 0x6F


def _branch(funct3: int, rs1: int, half: int) -> int:
    imm = _bits(half, (12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5))
    imm |= 0x1E00 if half >> 12 & 1 else 0
    low = (imm >> 1 & 15) << 8 | (imm >> 11 & 1) << 7
    return (imm >> 12 & 1) << 31 | (imm >> 5 & 0x3F) << 25 | rs1 << 15 | funct3 << 12 | low | 0x63


def _quadrant0(half: int, funct3: int) -> int | None:
    rd, rs1 = 8 + (half >> 2 & 7), 8 + (half >> 7 & 7)
    word_offset = _bits(half, (10, 3, 3), (6, 1, 2), (5, 1, 6))
    if funct3 == 0:
        imm = _bits(half, (11, 2, 4), (7, 4, 6), (6, 1, 2), (5, 1, 3))
        return _addi(rd, SP, imm) if imm else None  # 0: reserved, and the halfword of zeros is defined illegal
    if funct3 == 2:
        return _lw(rd, rs1, word_offset)
    return _sw(rd, rs1, word_offset) if funct3 == 6 else None


def _arithmetic(half: int) -> int | None:
    """Quadrant 1, funct3 4: on the eight registers x8 to x15."""
    rd, rs2, amount = 8 + (half >> 7 & 7), 8 + (half >> 2 & 7), half >> 2 & 31
    high = half >> 12 & 1
    kind = half >> 10 & 3
    if kind == 2:
        return _i(0x13, 7, rd, rd, amount - 32 * high)
    if high:
        return None  # shift amounts of 32 and more: not in RV32; C.SUBW and others: reserved
    if kind < 2:
        return _i(0x13, 5, rd, rd, amount | (0x400 if kind else 0))
    funct7, funct3 = ((0x20, 0), (0, 4), (0, 6), (0, 7))[half >> 5 & 3]
    return _r(funct7, funct3, rd, rd, rs2)


def _quadrant1(half: int, funct3: int) -> int | None:
    rd = half >> 7 & 31
    imm = (half >> 2 & 31) - 32 * (half >> 12 & 1)
    if funct3 == 0:
        return _addi(rd, rd, imm)
    if funct3 in (1, 5):
        return _jal(RA if funct3 == 1 else 0, half)
    if funct3 == 2:
        return _addi(rd, 0, imm)
    if funct3 == 3:
        if not imm:
            return None  # reserved, for C.LUI and C.ADDI16SP alike
        if rd == SP:
            return _addi(SP, SP, _bits(half, (12, 1, 9), (6, 1, 4), (5, 1, 6), (3, 2, 7), (2, 1, 5)) - (imm < 0) * 1024)
        return (imm & 0xFFFFF) << 12 | rd << 7 | 0x37
    if funct3 == 4:
        return _arithmetic(half)
    return _branch(funct3 & 1, 8 + (half >> 7 & 7), half)


def _quadrant2(half: int, funct3: int) -> int | None:
    rd, rs2, high = half >> 7 & 31, half >> 2 & 31, half >> 12 & 1
    if funct3 == 0:
        return None if high else _i(0x13, 1, rd, rd, rs2)
    if funct3 == 2:
        return _lw(rd, SP, _bits(half, (12, 1, 5), (4, 3, 2), (2, 2, 6))) if rd else None
    if funct3 == 6:
        return _sw(rs2, SP, _bits(half, (9, 4, 2), (7, 2, 6)))
    if funct3 != 4:
        return None
    if rs2:
        return _r(0, 0, rd, rd if high else 0, rs2)
    if rd:
        return _i(0x67, 0, high, rd, 0)  # C.JALR links to x1, C.JR to x0
    return EBREAK if high else None


def expand(half: int) -> int | None:
    """The 32-bit instruction of a halfword whose two lowest bits are not 11; None for an illegal or reserved one.

    HINTs expand to instructions that change nothing.
    """
    return (_quadrant0, _quadrant1, _quadrant2)[half & 3](half, half >> 13)
