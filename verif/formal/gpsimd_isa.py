"""RV32IMC as the RISC-V unprivileged ISA has it: what each instruction does, written down for proofs.

Patterns are those of the manual's listings, from bit 31 or 15 down. Products and quotients are `mixed` (gpsimd_parts).
"""

import re
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.formal.gpsimd_parts import mixed

__all__ = ["COMPRESSED", "GROUPS", "Compressed", "Instruction"]

COMPRESSED = (
    ("000 uimm[5:4|9:6|2|3] rd' 00", "addi rd' x2 uimm", "uimm"),
    ("010 uimm[5:3] rs1' uimm[2|6] rd' 00", "lw rd' rs1' uimm", ""),
    ("110 uimm[5:3] rs1' uimm[2|6] rs2' 00", "sw rs2' rs1' uimm", ""),
    ("000 imm[5] rd imm[4:0] 01", "addi rd rd imm", ""),
    ("001 imm[11|4|9:8|10|6|7|3:1|5] 01", "jal x1 imm", ""),
    ("010 imm[5] rd imm[4:0] 01", "addi rd x0 imm", ""),
    ("011 imm[9] 00010 imm[4|6|8:7|5] 01", "addi x2 x2 imm", "imm"),
    ("011 imm[17] rd imm[16:12] 01", "lui rd imm", "imm"),
    ("100 0 00 rd' uimm[4:0] 01", "srli rd' rd' uimm", ""),
    ("100 0 01 rd' uimm[4:0] 01", "srai rd' rd' uimm", ""),
    ("100 imm[5] 10 rd' imm[4:0] 01", "andi rd' rd' imm", ""),
    ("100 0 11 rd' 00 rs2' 01", "sub rd' rd' rs2'", ""),
    ("100 0 11 rd' 01 rs2' 01", "xor rd' rd' rs2'", ""),
    ("100 0 11 rd' 10 rs2' 01", "or rd' rd' rs2'", ""),
    ("100 0 11 rd' 11 rs2' 01", "and rd' rd' rs2'", ""),
    ("101 imm[11|4|9:8|10|6|7|3:1|5] 01", "jal x0 imm", ""),
    ("110 imm[8|4:3] rs1' imm[7:6|2:1|5] 01", "beq x0 rs1' imm", ""),
    ("111 imm[8|4:3] rs1' imm[7:6|2:1|5] 01", "bne x0 rs1' imm", ""),
    ("000 0 rd uimm[4:0] 10", "slli rd rd uimm", ""),
    ("010 uimm[5] rd uimm[4:2|7:6] 10", "lw rd x2 uimm", "rd"),
    ("100 0 rs1 00000 10", "jalr x0 rs1 none", "rs1"),
    ("100 0 rd rs2 10", "add rd x0 rs2", ""),
    ("100 1 00000 00000 10", "ebreak", ""),
    ("100 1 rs1 00000 10", "jalr x1 rs1 none", ""),
    ("100 1 rd rs2 10", "add rd rd rs2", ""),
    ("110 uimm[5:2|7:6] rs2 10", "sw rs2 x2 uimm", ""),
)
"""Of each: its 16 bits; the instruction it stands for, with operands rd, rs1, rs2, immediate (sw and branches rs2, rs1,
immediate); the field that may not be 0. The first that fits counts."""

_WIDTHS = {"rd": 5, "rs1": 5, "rs2": 5, "rd'": 3, "rs1'": 3, "rs2'": 3}
_CODES = {
    "addi": 0x13, "slli": 0x1013, "srli": 0x5013, "srai": 0x40005013, "andi": 0x7013, "add": 0x33, "sub": 0x40000033,
    "xor": 0x4033, "or": 0x6033, "and": 0x7033, "lw": 0x2003, "sw": 0x2023, "lui": 0x37, "jal": 0x6F, "jalr": 0x67,
    "beq": 0x63, "bne": 0x1063, "ebreak": 0x00100073,
}  # fmt: skip


class Compressed(wiring.Component):
    """The instruction of 32 bits that `half` stands for, or `illegal`. Timing: combinational."""

    half: In(16)
    word: Out(32)
    illegal: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fits: Value = Const(0)
        m.d.comb += self.illegal.eq(1)
        for pattern, text, not_zero in COMPRESSED:
            here, fields = self._fields(pattern)
            name, *operands = text.split()
            ok = here & (fields[not_zero] != 0) if not_zero else here
            with m.If(~fits & ok):
                m.d.comb += [self.illegal.eq(0), self.word.eq(self._encoded(name, [fields[o] for o in operands]))]
            fits = fits | here
        return m

    def _fields(self, pattern: str) -> tuple[Value, dict[str, Value]]:
        """Whether the literal bits are those, and the fields by name."""
        at, equal = 16, Const(1)
        fields: dict[str, Value] = {f"x{n}": Const(n, 5) for n in range(3)} | {"none": Const(0, 32)}
        immediate: dict[int, Value] = {}
        kind = "imm"
        for part in pattern.split():
            if part.isdigit():
                at -= len(part)
                equal = equal & (self.half[at : at + len(part)] == int(part, 2))
            elif part in _WIDTHS:
                at -= _WIDTHS[part]
                bits = self.half[at : at + _WIDTHS[part]]
                fields[part] = Cat(bits, Const(1, 2)) if part.endswith("'") else bits
            else:
                kind, places = part[:-1].split("[")
                for place in places.split("|"):
                    first, _, last = place.partition(":")
                    for bit in range(int(first), int(last or first) - 1, -1):
                        at -= 1
                        immediate[bit] = self.half[at]
        assert at == 0, f"{pattern} has {16 - at} bits"
        if immediate:
            top = max(immediate)
            bits = [immediate.get(n, Const(0, 1)) for n in range(top + 1)]
            upper = immediate[top] if kind == "imm" else Const(0, 1)
            fields[kind] = Cat(*bits, upper.replicate(31 - top))
        return equal, fields

    @staticmethod
    def _encoded(name: str, operands: list[Value]) -> Value:
        code = Const(_CODES[name], 32)
        if not operands:
            return code
        if name in ("sw", "beq", "bne"):
            second, first, i = operands
            low, high = (i[:5], i[5:12]) if name == "sw" else (Cat(i[11], i[1:5]), Cat(i[5:11], i[12]))
            return code | Cat(Const(0, 7), low, Const(0, 3), first, second, high)
        if name == "lui":
            return code | Cat(Const(0, 7), operands[0], operands[1][12:])
        if name == "jal":
            i = operands[1]
            return code | Cat(Const(0, 7), operands[0], i[12:20], i[11], i[1:11], i[20])
        rd, first, last = operands
        return code | Cat(Const(0, 7), rd, Const(0, 3), first, last[:12])


_BRANCHES = {"beq": "000", "bne": "001", "blt": "100", "bge": "101", "bltu": "110", "bgeu": "111"}
_IMMEDIATE = {"addi": "000", "slti": "010", "sltiu": "011", "xori": "100", "ori": "110", "andi": "111"}
_REGISTERS = {
    "add": "000", "sll": "001", "slt": "010", "sltu": "011", "xor": "100", "srl": "101", "or": "110", "and": "111",
}  # fmt: skip
_LOADS = {"lb": "000", "lh": "001", "lw": "010", "lbu": "100", "lhu": "101"}
_STORES = {"sb": "000", "sh": "001", "sw": "010"}
_X = "----- -----"  # two registers

_PATTERNS = {
    "lui": f"------- {_X} --- ----- 0110111",
    "auipc": f"------- {_X} --- ----- 0010111",
    "jal": f"------- {_X} --- ----- 1101111",
    "jalr": f"------- {_X} 000 ----- 1100111",
    **{name: f"------- {_X} {f} ----- 1100011" for name, f in _BRANCHES.items()},
    **{name: f"------- {_X} {f} ----- 0000011" for name, f in _LOADS.items()},
    **{name: f"------- {_X} {f} ----- 0100011" for name, f in _STORES.items()},
    **{name: f"------- {_X} {f} ----- 0010011" for name, f in _IMMEDIATE.items()},
    "slli": f"0000000 {_X} 001 ----- 0010011",
    "srli": f"0000000 {_X} 101 ----- 0010011",
    "srai": f"0100000 {_X} 101 ----- 0010011",
    **{name: f"0000000 {_X} {f} ----- 0110011" for name, f in _REGISTERS.items()},
    "sub": f"0100000 {_X} 000 ----- 0110011",
    "sra": f"0100000 {_X} 101 ----- 0110011",
    "product": f"0000001 {_X} 0-- ----- 0110011",
    "quotient": f"0000001 {_X} 1-- ----- 0110011",
    "fence": f"------- {_X} 000 ----- 0001111",
    "fence.i": f"------- {_X} 001 ----- 0001111",
    "csr": f"------- {_X} -01 ----- 1110011",
    "csr set": f"------- {_X} -1- ----- 1110011",
    "ecall": "0000000 00000 00000 000 00000 1110011",
    "ebreak": "0000000 00001 00000 000 00000 1110011",
    "mret": "0011000 00010 00000 000 00000 1110011",
    "wfi": "0001000 00101 00000 000 00000 1110011",
}
GROUPS = {
    "upper": ("lui", "auipc"),
    "jumps": ("jal", "jalr"),
    "branches": tuple(_BRANCHES),
    "loads": tuple(_LOADS),
    "stores": tuple(_STORES),
    "immediate": (*_IMMEDIATE, "slli", "srli", "srai"),
    "registers": (*_REGISTERS, "sub", "sra"),
    "products": ("product", "quotient"),
    "system": ("fence", "fence.i", "csr", "csr set", "ecall", "ebreak", "mret", "wfi"),
}
"""All instructions, by what they do."""


def _signed(value: Value) -> Value:
    return Cat(value, value[-1].replicate(32 - len(value)))


class Instruction(wiring.Component):
    """What the instruction `insn` (of 16 bits if its upper half does not count) does at `pc` with the values of its
    registers and, if it loads, the word `loaded`. `legal`: there is one; csr: it is of a CSR, so that rd and whether it
    is illegal after all are not said. group: a bit of each of GROUPS. next: where it goes unless it traps; size: bytes
    of memory it wants at `address`. cause: of a trap that it always makes, 0 if none.

    Timing: combinational.
    """

    insn: In(32)
    pc: In(32)
    rs1: In(32)
    rs2: In(32)
    loaded: In(32)
    word: Out(32)
    legal: Out(1)
    csr: Out(1)
    mret: Out(1)
    group: Out(len(GROUPS))
    first: Out(5)  # numbers of the registers, 0 if not used
    second: Out(5)
    rd: Out(5)
    value: Out(32)
    next: Out(32)
    address: Out(32)
    size: Out(3)
    store: Out(1)
    mask: Out(4)
    data: Out(32)
    cause: Out(4)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.compressed = compressed = Compressed()
        short = self.insn[:2] != 3
        w = self.word
        m.d.comb += [
            compressed.half.eq(self.insn[:16]),
            w.eq(Mux(short, compressed.word, self.insn)),
            self.next.eq(self.pc + Mux(short, 2, 4)),
        ]
        with m.Switch(w):
            for name, pattern in _PATTERNS.items():
                with m.Case(pattern.replace(" ", "")):
                    m.d.comb += self.legal.eq(1)
                    m.d.comb += self.group.eq(1 << next(n for n, g in enumerate(GROUPS.values()) if name in g))
                    self._one(m, name, w, (self.pc + Mux(short, 2, 4))[:32])
        with m.If(short & compressed.illegal):
            m.d.comb += self.legal.eq(0)
        for n in range(4):
            inside = (n >= self.address[:2]) & (n < self.address[:2] + self.size)
            m.d.comb += self.mask[n].eq(inside)
        with m.Switch(self.address[:2]):
            for n in range(4):
                with m.Case(n):
                    m.d.comb += self.data.eq(self.rs2 << (8 * n))
        return m

    def _one(self, m: Module, name: str, w: Value, after: Value) -> None:
        a, b, pc = self.rs1, self.rs2, self.pc
        i, s = _signed(w[20:32]), _signed(Cat(w[7:12], w[25:32]))
        far = _signed(Cat(Const(0, 1), w[8:12], w[25:31], w[7], w[31]))
        further = _signed(Cat(Const(0, 1), w[21:31], w[20], w[12:20], w[31]))
        upper = Cat(Const(0, 12), w[12:32])
        rs1, rs2 = self.first.eq(w[15:20]), self.second.eq(w[20:25])
        sa = a.as_signed()

        def writes(value: Value) -> list:
            return [self.rd.eq(w[7:12]), self.value.eq(value)]

        def binary(kind: str, b: Value) -> Value:
            amount = b[:5]
            return {
                "add": a + b, "sub": a - b, "slt": sa < b.as_signed(), "sltu": a < b, "xor": a ^ b, "or": a | b,
                "and": a & b, "sll": a << amount, "srl": a >> amount, "sra": sa >> amount,
            }[kind]  # fmt: skip

        does: list = []
        if name in ("lui", "auipc"):
            does = writes(upper if name == "lui" else (pc + upper))
        elif name == "jal":
            does = [*writes(after), self.next.eq(pc + further)]
        elif name == "jalr":
            does = [*writes(after), rs1, self.next.eq(Cat(Const(0, 1), (a + i)[1:32]))]
        elif name in _BRANCHES:
            sb = b.as_signed()
            taken = {"beq": a == b, "bne": a != b, "blt": sa < sb, "bge": sa >= sb, "bltu": a < b, "bgeu": a >= b}
            does = [rs1, rs2, self.next.eq(Mux(taken[name], pc + far, after))]
        elif name in _LOADS:
            size = {"b": 1, "h": 2, "w": 4}[name[1]]
            taken = (self.loaded >> Cat(Const(0, 3), self.address[:2]))[: 8 * size]
            value = Cat(taken, Const(0, 32 - 8 * size)) if name.endswith("u") else _signed(taken)
            does = [rs1, *writes(value), self.address.eq(a + i), self.size.eq(size)]
        elif name in _STORES:
            does = [rs1, rs2, self.address.eq(a + s), self.size.eq({"b": 1, "h": 2, "w": 4}[name[1]]), self.store.eq(1)]
        elif name in GROUPS["immediate"]:
            does = [rs1, *writes(binary(re.sub(r"i(u?)$", r"\1", name), i))]
        elif name in GROUPS["registers"]:
            does = [rs1, rs2, *writes(binary(name, b))]
        elif name in GROUPS["products"]:
            does = [rs1, rs2, *writes(mixed(w[12:15], a, b))]
        elif name.startswith("csr"):
            does = [self.csr.eq(1), self.rd.eq(w[7:12]), self.first.eq(Mux(w[14], 0, w[15:20]))]
        elif name in ("ecall", "ebreak"):
            does = [self.cause.eq(11 if name == "ecall" else 3)]
        elif name == "mret":
            does = [self.mret.eq(1)]
        m.d.comb += does


assert reduce(or_, (set(group) for group in GROUPS.values())) == set(_PATTERNS)
