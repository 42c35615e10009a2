"""Vector instructions as words, by format; for tests that choose every field."""

__all__ = [
    "BYTE", "FIRST", "HALF", "INDEXED", "LOAD", "MASK", "STORE", "STRIDED", "WHOLE", "WORD",
    "arithmetic", "memory", "vsetivli", "vsetvl", "vsetvli",
]  # fmt: skip

LOAD, STORE = 0x07, 0x27
BYTE, HALF, WORD = 0, 5, 6  # width
STRIDED, INDEXED = 2, 3  # mop
WHOLE, MASK, FIRST = 8, 11, 16  # lumop: whole registers, masks, fault-only-first


def arithmetic(funct6: int, funct3: int, vd: int, vs2: int, vs1: int, vm: int = 1) -> int:
    """OPIVV 0, OPMVV 2, OPIVI 3, OPIVX 4, OPMVX 6; `vs1` is also rs1 or the immediate."""
    return funct6 << 26 | vm << 25 | vs2 << 20 | vs1 << 15 | funct3 << 12 | vd << 7 | 0x57


def memory(
    opcode: int, width: int, vd: int, rs1: int, mop: int = 0, second: int = 0, vm: int = 1, fields: int = 1
) -> int:
    """A load or store; `second` is lumop, rs2 or vs2."""
    return fields - 1 << 29 | mop << 26 | vm << 25 | second << 20 | rs1 << 15 | width << 12 | vd << 7 | opcode


def vsetvli(rd: int, rs1: int, vtype: int) -> int:
    """vtype of 11 bits."""
    return vtype << 20 | rs1 << 15 | 7 << 12 | rd << 7 | 0x57


def vsetivli(rd: int, avl: int, vtype: int) -> int:
    """AVL of 5 bits, vtype of 10."""
    return 3 << 30 | vtype << 20 | avl << 15 | 7 << 12 | rd << 7 | 0x57


def vsetvl(rd: int, rs1: int, rs2: int) -> int:
    """vtype is in rs2."""
    return 0x40 << 25 | rs2 << 20 | rs1 << 15 | 7 << 12 | rd << 7 | 0x57
