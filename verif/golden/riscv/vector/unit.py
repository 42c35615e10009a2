"""The vector part of a hart: an action for each vector instruction, made once a word and, inside, once a vtype."""

from collections.abc import Callable

from verif.golden.riscv.decode import Instruction
from verif.golden.riscv.memory import Memory
from verif.golden.riscv.traps import Cause, Trap
from verif.golden.riscv.vector.configure import configure
from verif.golden.riscv.vector.decode import decode_vector
from verif.golden.riscv.vector.elementwise import ELEMENTWISE
from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.mask import MASKS
from verif.golden.riscv.vector.memory import memory_action
from verif.golden.riscv.vector.permute import PERMUTATIONS
from verif.golden.riscv.vector.reduce import REDUCTIONS
from verif.golden.riscv.vector.registers import Registers
from verif.golden.riscv.vector.state import VectorState
from verif.golden.riscv.vector.vtype import VType

__all__ = ["VectorUnit"]

WORD = 0xFFFFFFFF
DIRTY = 3  # of VS
ARITHMETIC = ELEMENTWISE | MASKS | REDUCTIONS | PERMUTATIONS
WRITES_X = ("vsetvli", "vsetivli", "vsetvl", "vmv.x.s", "vcpop", "vfirst")

Run = Callable[[], None]


class VectorUnit:
    """`state` holds vector registers and CSRs, `x` the hart's registers with 32 for writes to x0."""

    def __init__(self, vlen: int, memory: Memory, x: list[int]):
        self.state = VectorState(vlen)
        self._registers, self._memory = Registers(self.state, x), memory

    def prepare(self, word: int) -> tuple[Instruction, Callable[[int], int]] | None:
        """Registers x that an instruction uses, and its action; None for a word that is no vector instruction.

        The action raises Trap: illegal while VS is off, vtype does not suit it, or vstart is not 0 and it neither is a
        load or store nor sets vtype; else of memory, with vstart and what came before it done.
        """
        i = decode_vector(word)
        if i is None:
            return None
        state, plans = self.state, dict[int, Run | None]()
        from_start = i.name in ARITHMETIC

        def run(pc: int) -> int:
            if not state.status or (from_start and state.vstart):
                raise Trap(Cause.ILLEGAL, word)
            try:
                plan = plans[state.vtype]
            except KeyError:
                plan = plans[state.vtype] = self._plan(i, word)
            if plan is None:
                raise Trap(Cause.ILLEGAL, word)
            state.status = DIRTY
            plan()
            state.vstart = 0
            return pc + 4 & WORD

        return _uses(i), run

    def _plan(self, i: VectorInstruction, word: int) -> Run | None:
        """What the instruction does while vtype is what it is."""
        vtype = VType.of(self.state.vtype)
        if i.name.startswith("vset"):
            return configure(word, self._registers)
        if i.eew:
            return memory_action(i, vtype, self._registers, self._memory)
        return ARITHMETIC[i.name](i, vtype, self._registers) if vtype else None


def _uses(i: VectorInstruction) -> Instruction:
    reads_rs2 = i.name == "vsetvl" or i.name.endswith("strided")
    rd = i.vd if i.name in WRITES_X else 0
    return Instruction(i.name, rd, i.vs1 if i.form == "x" else 0, i.vs2 if reads_rs2 else 0)
