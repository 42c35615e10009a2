"""Instructions of RV32IMC as bytes, by format; for programs that tests make. ValueError if a number does not fit."""

__all__ = [
    "branch", "c_alu", "c_branch", "c_immediate", "c_jump", "c_memory", "c_register", "c_stack",
    "immediate", "jump", "load_constant", "register", "store", "upper", "word",
]  # fmt: skip


def word(value: int) -> bytes:
    """Any of 32 bits."""
    return value.to_bytes(4, "little")


def _half(value: int) -> bytes:
    return value.to_bytes(2, "little")


def _signed(value: int, bits: int) -> int:
    """The low bits of a number that must fit."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{value} does not fit {bits} bits with sign")
    return value & (1 << bits) - 1


def register(funct7: int, funct3: int, rd: int, rs1: int, rs2: int) -> bytes:
    """R-type of opcode OP."""
    return word(funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33)


def immediate(opcode: int, funct3: int, rd: int, rs1: int, imm: int) -> bytes:
    """I-type: OP-IMM 0x13, LOAD 0x03, JALR 0x67, SYSTEM 0x73; `imm` of either sign, in 12 bits."""
    return word((imm if imm >= 0x800 else _signed(imm, 12)) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode)


def store(funct3: int, rs2: int, rs1: int, imm: int) -> bytes:
    """S-type."""
    imm = _signed(imm, 12)
    return word(imm >> 5 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 31) << 7 | 0x23)


def branch(funct3: int, rs1: int, rs2: int, offset: int) -> bytes:
    """B-type."""
    n = _signed(offset, 13)
    high = n >> 12 << 31 | (n >> 5 & 0x3F) << 25
    return word(high | rs2 << 20 | rs1 << 15 | funct3 << 12 | (n >> 1 & 15) << 8 | (n >> 11 & 1) << 7 | 0x63)


def upper(opcode: int, rd: int, imm20: int) -> bytes:
    """U-type: LUI 0x37, AUIPC 0x17."""
    return word((imm20 & 0xFFFFF) << 12 | rd << 7 | opcode)


def jump(rd: int, offset: int) -> bytes:
    """JAL."""
    n = _signed(offset, 21)
    return word(
        n >> 20 << 31 | (n >> 1 & 0x3FF) << 21 | (n >> 11 & 1) << 20 | (n >> 12 & 0xFF) << 12 | rd << 7 | 0x6F
    )  # fmt: skip


def load_constant(rd: int, value: int) -> bytes:
    """LUI and ADDI: 32 bits into a register."""
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    return upper(0x37, rd, (value - low & 0xFFFFFFFF) >> 12) + immediate(0x13, 0, rd, rd, low)


def c_immediate(funct3: int, rd: int, imm: int, quadrant: int = 1) -> bytes:
    """CI: in quadrant 1 C.ADDI 0, C.LI 2, C.LUI 3; in quadrant 2 C.SLLI 0."""
    n = imm & 0x3F
    return _half(funct3 << 13 | n >> 5 << 12 | rd << 7 | (n & 31) << 2 | quadrant)


def c_alu(rd: int, kind: int, low: int, high: int = 0) -> bytes:
    """Quadrant 1, funct3 4, x8 to x15: `kind` 0 C.SRLI, 1 C.SRAI, 2 C.ANDI, 3 two registers; `low` is bits 6 to 2."""
    return _half(4 << 13 | high << 12 | kind << 10 | (rd & 7) << 7 | low << 2 | 1)


def c_register(add: bool, rd: int, rs2: int) -> bytes:
    """C.MV or C.ADD; with rs2 0 C.JR or C.JALR."""
    return _half(4 << 13 | int(add) << 12 | rd << 7 | rs2 << 2 | 2)


def c_memory(funct3: int, data: int, base: int, offset: int) -> bytes:
    """C.LW 2 or C.SW 6, x8 to x15, offset a multiple of 4 up to 124."""
    n = offset
    return _half(
        funct3 << 13 | (n >> 3 & 7) << 10 | (base & 7) << 7 | (n >> 2 & 1) << 6 | n >> 6 << 5 | (data & 7) << 2
    )


def c_stack(stores: bool, data: int, offset: int) -> bytes:
    """C.LWSP or C.SWSP, offset a multiple of 4 up to 252."""
    if stores:
        return _half(6 << 13 | (offset >> 2 & 15) << 9 | offset >> 6 << 7 | data << 2 | 2)
    return _half(2 << 13 | (offset >> 5 & 1) << 12 | data << 7 | (offset >> 2 & 7) << 4 | offset >> 6 << 2 | 2)


def c_jump(funct3: int, offset: int) -> bytes:
    """C.JAL 1 or C.J 5."""
    n = _signed(offset, 12)
    places = ((11, 12), (4, 11), (9, 10), (8, 9), (10, 8), (6, 7), (7, 6), (3, 5), (2, 4), (1, 3), (5, 2))
    return _half(funct3 << 13 | sum((n >> bit & 1) << at for bit, at in places) | 1)


def c_branch(funct3: int, rs1: int, offset: int) -> bytes:
    """C.BEQZ 6 or C.BNEZ 7, x8 to x15."""
    n = _signed(offset, 9)
    places = ((8, 12), (4, 11), (3, 10), (7, 6), (6, 5), (2, 4), (1, 3), (5, 2))
    return _half(funct3 << 13 | (rs1 & 7) << 7 | sum((n >> bit & 1) << at for bit, at in places) | 1)
