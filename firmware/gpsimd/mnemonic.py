"""What an instruction of a GPSIMD core is called: the mnemonic of its bits."""

__all__ = ["mnemonic"]

_BY_FUNCT3 = {
    0x03: ("lb", "lh", "lw", "", "lbu", "lhu"),
    0x23: ("sb", "sh", "sw"),
    0x63: ("beq", "bne", "", "", "blt", "bge", "bltu", "bgeu"),
    0x67: ("jalr",),
    0x0F: ("fence", "fence.i"),
    0x73: ("", "csrrw", "csrrs", "csrrc", "", "csrrwi", "csrrsi", "csrrci"),
}
_IMMEDIATE = ("addi", "slli", "slti", "sltiu", "xori", "srli", "ori", "andi")
_REGISTER = ("add", "sll", "slt", "sltu", "xor", "srl", "or", "and")
_PRODUCT = ("mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu")
_WHOLE = {0x00000073: "ecall", 0x00100073: "ebreak", 0x30200073: "mret", 0x10500073: "wfi"}
_UPPER = {0x37: "lui", 0x17: "auipc", 0x6F: "jal"}
_VECTOR = {0x07: "vector load", 0x27: "vector store", 0x57: "vector"}
_QUADRANTS = (
    ("c.addi4spn", "", "c.lw", "", "", "", "c.sw", ""),
    ("c.addi", "c.jal", "c.li", "c.lui", "", "c.j", "c.beqz", "c.bnez"),
    ("c.slli", "", "c.lwsp", "", "", "", "c.swsp", ""),
)
_COMPRESSED_REGISTER = ("c.sub", "c.xor", "c.or", "c.and")


def _compressed(half: int) -> str:
    funct3, quadrant = half >> 13, half & 3
    rd, rs2, high = half >> 7 & 31, half >> 2 & 31, half >> 12 & 1
    if half == 0:
        return ""
    if (quadrant, funct3) == (1, 4):
        kind = half >> 10 & 3
        if kind == 3:
            return "" if high else _COMPRESSED_REGISTER[half >> 5 & 3]
        return ("c.srli", "c.srai", "c.andi")[kind]
    if (quadrant, funct3) == (2, 4):
        if rs2:
            return "c.add" if high else "c.mv"
        if rd == 0:
            return "c.ebreak" if high else ""
        return "c.jalr" if high else "c.jr"
    if (quadrant, funct3) == (1, 3) and rd == 2:
        return "c.addi16sp"
    return _QUADRANTS[quadrant][funct3]


def mnemonic(insn: int) -> str:
    """Of 16 bits with zeros above, or of 32, that a core has executed; empty for what is no instruction. All vector
    instructions are one of three kinds."""
    if insn & 3 != 3:
        return _compressed(insn)
    opcode, funct3, funct7 = insn & 0x7F, insn >> 12 & 7, insn >> 25
    if name := _WHOLE.get(insn) or _UPPER.get(opcode) or _VECTOR.get(opcode):
        return name
    if opcode == 0x13:
        return "srai" if funct3 == 5 and funct7 == 0x20 else _IMMEDIATE[funct3]
    if opcode == 0x33:
        if funct7 == 0x20:
            return {0: "sub", 5: "sra"}.get(funct3, "")
        return {0: _REGISTER, 1: _PRODUCT}.get(funct7, [""] * 8)[funct3]
    names = _BY_FUNCT3.get(opcode, ())
    return names[funct3] if funct3 < len(names) else ""
