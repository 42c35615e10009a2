"""32-bit instructions of RV32IM_Zicsr_Zifencei: which one, its registers and its immediate.

Source: The RISC-V Instruction Set Manual, volume I, version 20191213 and later ratified texts, tables of chapter
"RV32/64G Instruction Set Listings"; volume II for MRET and WFI.
"""

from dataclasses import dataclass

__all__ = ["Instruction", "decode"]

LOADS = {0: "lb", 1: "lh", 2: "lw", 4: "lbu", 5: "lhu"}
STORES = {0: "sb", 1: "sh", 2: "sw"}
BRANCHES = {0: "beq", 1: "bne", 4: "blt", 5: "bge", 6: "bltu", 7: "bgeu"}
IMMEDIATES = {0: "addi", 2: "slti", 3: "sltiu", 4: "xori", 6: "ori", 7: "andi"}
SHIFTS = {(1, 0x00): "slli", (5, 0x00): "srli", (5, 0x20): "srai"}
PLAIN = ("add", "sll", "slt", "sltu", "xor", "srl", "or", "and")
MULTIPLY = ("mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu")
REGISTERS = (
    {(f, 0x00): name for f, name in enumerate(PLAIN)}
    | {(0, 0x20): "sub", (5, 0x20): "sra"}
    | {(f, 0x01): name for f, name in enumerate(MULTIPLY)}
)
CSRS = {1: "csrrw", 2: "csrrs", 3: "csrrc", 5: "csrrwi", 6: "csrrsi", 7: "csrrci"}
FENCES = {0: "fence", 1: "fence.i"}
WHOLE = {0x00000073: "ecall", 0x00100073: "ebreak", 0x30200073: "mret", 0x10500073: "wfi"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """A decoded instruction. A register it does not name is 0.

    `imm` is signed; of shifts the amount, of LUI and AUIPC already in place, of CSR instructions the CSR's address, and
    `uimm` then the 5 bits that stand for rs1.
    """

    name: str
    rd: int = 0
    rs1: int = 0
    rs2: int = 0
    imm: int = 0
    uimm: int = 0


def _signed(value: int, bits: int) -> int:
    return value - (value >> bits - 1 << bits)


def _branch_offset(word: int) -> int:
    imm = (word >> 31 & 1) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5 | (word >> 8 & 0xF) << 1
    return _signed(imm, 13)


def _jump_offset(word: int) -> int:
    imm = (word >> 31 & 1) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1
    return _signed(imm, 21)


def decode(word: int) -> Instruction | None:
    """The instruction that a 32-bit word is; None for one that is illegal or reserved. FENCE ignores all its fields."""
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    funct3, funct7 = word >> 12 & 7, word >> 25
    signed = _signed(word >> 20, 12)
    name: str | None = None
    match word & 0x7F:
        case 0x37:
            return Instruction("lui", rd, imm=word & 0xFFFFF000)
        case 0x17:
            return Instruction("auipc", rd, imm=word & 0xFFFFF000)
        case 0x6F:
            return Instruction("jal", rd, imm=_jump_offset(word))
        case 0x67 if funct3 == 0:
            return Instruction("jalr", rd, rs1, imm=signed)
        case 0x63 if name := BRANCHES.get(funct3):
            return Instruction(name, 0, rs1, rs2, _branch_offset(word))
        case 0x03 if name := LOADS.get(funct3):
            return Instruction(name, rd, rs1, imm=signed)
        case 0x23 if name := STORES.get(funct3):
            return Instruction(name, 0, rs1, rs2, _signed(funct7 << 5 | rd, 12))
        case 0x13 if name := IMMEDIATES.get(funct3):
            return Instruction(name, rd, rs1, imm=signed)
        case 0x13 if name := SHIFTS.get((funct3, funct7)):
            return Instruction(name, rd, rs1, imm=rs2)
        case 0x33 if name := REGISTERS.get((funct3, funct7)):
            return Instruction(name, rd, rs1, rs2)
        case 0x0F if name := FENCES.get(funct3):
            return Instruction(name)
        case 0x73 if name := WHOLE.get(word):
            return Instruction(name)
        case 0x73 if name := CSRS.get(funct3):
            immediate = funct3 & 4
            return Instruction(name, rd, 0 if immediate else rs1, 0, word >> 20, rs1 if immediate else 0)
        case _:
            return None
