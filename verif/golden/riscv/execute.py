"""What each instruction does: functions from its pc to the next one, made once per instruction word and kept by it.

A function knows its instruction, not where it lies: code that changes itself needs nothing to be thrown away.
"""

from collections.abc import Callable

from verif.golden.riscv.arithmetic import OPERATIONS
from verif.golden.riscv.csrs import Csrs
from verif.golden.riscv.decode import Instruction, decode
from verif.golden.riscv.expand import expand
from verif.golden.riscv.memory import Memory
from verif.golden.riscv.traps import Cause, Trap
from verif.golden.riscv.vector.unit import VectorUnit

__all__ = ["Actions"]

Action = Callable[[int], int]
WORD = 0xFFFFFFFF
SIGN = 1 << 31
SINK = 32  # where x0 is written
LOADS = {"lb": (1, 0x80), "lh": (2, 0x8000), "lw": (4, 0), "lbu": (1, 0), "lhu": (2, 0)}  # bytes, sign
STORES = {"sb": 1, "sh": 2, "sw": 4}
WITH_IMMEDIATE = {
    "slti": "slt", "sltiu": "sltu", "xori": "xor", "ori": "or", "andi": "and",
    "slli": "sll", "srli": "srl", "srai": "sra",
}  # fmt: skip
BRANCHES: dict[str, Callable[[int, int], bool]] = {
    "beq": lambda a, b: a == b,
    "bne": lambda a, b: a != b,
    "blt": lambda a, b: a ^ SIGN < b ^ SIGN,
    "bge": lambda a, b: a ^ SIGN >= b ^ SIGN,
    "bltu": lambda a, b: a < b,
    "bgeu": lambda a, b: a >= b,
}


class Actions(dict[int, Action]):
    """Action by instruction word as fetched. An action raises Trap instead of changing anything, except that a vector
    load or store has done what came before the element that traps.

    `x` holds the registers and, at 32, what is written to x0. `access` is what the last load or store did: (address,
    bytes, value, is a store). Setting `stop` to 0 asks the loop that runs actions to look at the world.
    """

    def __init__(self, memory: Memory, csrs: Csrs, x: list[int], vectors: VectorUnit | None = None):
        super().__init__()
        self.x = x
        self.memory, self.csrs, self.vectors = memory, csrs, vectors
        self.access: tuple[int, int, int, bool] | None = None
        self.stop = 0
        self.waits = False  # the last instruction was WFI
        self.read_csr_value: Callable[[int], int | None] | None = None
        self.instructions: dict[int, Instruction | None] = {}

    def __missing__(self, bits: int) -> Action:
        size = 4 if bits & 3 == 3 else 2
        word = bits if size == 4 else expand(bits)
        instruction = None if word is None else decode(word)
        if instruction and instruction.name.startswith("csr"):
            writes = instruction.name.startswith("csrrw") or bool(instruction.rs1 or instruction.uimm)
            if not self.csrs.has(instruction.imm, writes):
                instruction = None
        if self.vectors and size == 4 and instruction is None and (prepared := self.vectors.prepare(bits)):
            self.instructions[bits], self[bits] = prepared
            return self[bits]
        self.instructions[bits] = instruction
        self[bits] = self._make(instruction, size, bits) if instruction else self._raising(Cause.ILLEGAL, bits)
        return self[bits]

    def last_access(self) -> tuple[int, int, int, bool] | None:
        """What `access` holds."""
        return self.access

    def _raising(self, cause: Cause, value: int | None) -> Action:
        """Traps; without a value it is the pc."""

        def run(pc: int) -> int:
            raise Trap(cause, pc if value is None else value)

        return run

    def _make(self, i: Instruction, size: int, bits: int) -> Action:
        name = i.name
        if name in LOADS:
            return self._load(i, size)
        if name in STORES:
            return self._store(i, size)
        if name in BRANCHES:
            return self._branch(i, size)
        if name in OPERATIONS:
            return self._operation(i, size)
        if name == "addi":
            return self._add_immediate(i, size)
        if name in WITH_IMMEDIATE:
            return self._immediate(i, size)
        if name.startswith("csr"):
            return self._csr(i, bits)
        others: dict[str, Callable[[], Action]] = {
            "lui": lambda: self._upper(i, size),
            "auipc": lambda: self._upper_pc(i),
            "jal": lambda: self._jump(i, size),
            "jalr": lambda: self._jump_register(i, size),
            "ecall": lambda: self._raising(Cause.ECALL, 0),
            "ebreak": lambda: self._raising(Cause.BREAKPOINT, None),
            "mret": self._mret,
            "wfi": self._wfi,
            "fence": lambda: lambda pc: pc + 4 & WORD,
            "fence.i": lambda: lambda pc: pc + 4 & WORD,
        }
        return others[name]()

    def _operation(self, i: Instruction, size: int) -> Action:
        x, rd, rs1, rs2, operation = self.x, i.rd or SINK, i.rs1, i.rs2, OPERATIONS[i.name]

        def run(pc: int) -> int:
            x[rd] = operation(x[rs1], x[rs2])
            return pc + size & WORD

        return run

    def _immediate(self, i: Instruction, size: int) -> Action:
        x, rd, rs1, imm, operation = self.x, i.rd or SINK, i.rs1, i.imm & WORD, OPERATIONS[WITH_IMMEDIATE[i.name]]

        def run(pc: int) -> int:
            x[rd] = operation(x[rs1], imm)
            return pc + size & WORD

        return run

    def _add_immediate(self, i: Instruction, size: int) -> Action:
        """By itself, for it is every fourth instruction of a program."""
        x, rd, rs1, imm = self.x, i.rd or SINK, i.rs1, i.imm

        def run(pc: int) -> int:
            x[rd] = x[rs1] + imm & WORD
            return pc + size & WORD

        return run

    def _upper(self, i: Instruction, size: int) -> Action:
        x, rd, imm = self.x, i.rd or SINK, i.imm

        def run(pc: int) -> int:
            x[rd] = imm
            return pc + size & WORD

        return run

    def _upper_pc(self, i: Instruction) -> Action:
        x, rd, imm = self.x, i.rd or SINK, i.imm

        def run(pc: int) -> int:
            x[rd] = pc + imm & WORD
            return pc + 4 & WORD

        return run

    def _jump(self, i: Instruction, size: int) -> Action:
        x, rd, imm = self.x, i.rd or SINK, i.imm

        def run(pc: int) -> int:
            x[rd] = pc + size & WORD
            return pc + imm & WORD

        return run

    def _jump_register(self, i: Instruction, size: int) -> Action:
        x, rd, rs1, imm = self.x, i.rd or SINK, i.rs1, i.imm

        def run(pc: int) -> int:
            target = x[rs1] + imm & WORD & ~1
            x[rd] = pc + size & WORD
            return target

        return run

    def _branch(self, i: Instruction, size: int) -> Action:
        x, rs1, rs2, imm, taken = self.x, i.rs1, i.rs2, i.imm, BRANCHES[i.name]

        def run(pc: int) -> int:
            return pc + (imm if taken(x[rs1], x[rs2]) else size) & WORD

        return run

    def _load(self, i: Instruction, size: int) -> Action:
        x, rd, rs1, imm, load = self.x, i.rd or SINK, i.rs1, i.imm, self.memory.load
        count, sign = LOADS[i.name]
        extension = WORD ^ 2 * sign - 1 if sign else 0

        def run(pc: int) -> int:
            address = x[rs1] + imm & WORD
            value = load(address, count)
            self.access = (address, count, value, False)
            x[rd] = value | extension if value & sign else value
            return pc + size & WORD

        return run

    def _store(self, i: Instruction, size: int) -> Action:
        x, rs1, rs2, imm, store, count = self.x, i.rs1, i.rs2, i.imm, self.memory.store, STORES[i.name]

        def run(pc: int) -> int:
            address = x[rs1] + imm & WORD
            store(address, count, x[rs2])
            self.access = (address, count, x[rs2], True)
            return pc + size & WORD

        return run

    def _csr(self, i: Instruction, bits: int) -> Action:
        x, csrs, rd, rs1, uimm, address = self.x, self.csrs, i.rd, i.rs1, i.uimm, i.imm
        kind, immediate = i.name[4], i.name.endswith("i")
        writes = kind == "w" or bool(rs1 or uimm)

        def run(pc: int) -> int:
            if not csrs.usable(address):
                raise Trap(Cause.ILLEGAL, bits)
            old = None
            operand = uimm if immediate else x[rs1]
            if self.read_csr_value and (rd or kind != "w"):
                old = self.read_csr_value(address)
            if old is None:
                old = csrs.read(address)
            if writes:
                csrs.write(address, operand if kind == "w" else old | operand if kind == "s" else old & ~operand)
                self.stop = 0
            x[rd or SINK] = old
            return pc + 4 & WORD

        return run

    def _mret(self) -> Action:
        def run(pc: int) -> int:
            self.stop = 0
            return self.csrs.leave()

        return run

    def _wfi(self) -> Action:
        def run(pc: int) -> int:
            self.stop, self.waits = 0, True
            return pc + 4 & WORD

        return run
