"""A golden hart: fetches, executes, traps, and tells what it did."""

from collections.abc import Callable

from verif.golden.riscv.csrs import Csrs
from verif.golden.riscv.execute import Actions
from verif.golden.riscv.memory import Memory
from verif.golden.riscv.retired import Retired
from verif.golden.riscv.traps import Cause, Trap
from verif.golden.riscv.vector.unit import VectorUnit

__all__ = ["Hart"]

INTERRUPTS = 1 << 11 | 1 << 7 | 1 << 3


class Hart:
    """RV32IMC_Zicsr_Zifencei, machine mode, and Zve32x if `vlen` tells the bits of a vector register. `pc`, `csrs`, the
    first 32 of `x` and `vector`, which is None without vectors, may be read and set between steps.

    `on_trap`, if there is one, is called when a trap has been entered; mcause and mepc are its own then.
    """

    def __init__(self, memory: Memory, hart_id: int = 0, reset_pc: int = 0x10000000, vlen: int | None = None):
        self.memory = memory
        self.x = [0] * 33
        vectors = None if vlen is None else VectorUnit(vlen, memory, self.x)
        self.vector = vectors.state if vectors else None
        self.csrs = Csrs(hart_id, self.vector)
        self.pc = reset_pc
        self._actions = Actions(memory, self.csrs, self.x, vectors)
        self._order = 0
        self._paused = False
        self.on_trap: Callable[[], None] | None = None

    @property
    def waits(self) -> bool:
        """Whether the last instruction of `run` was a WFI."""
        return self._actions.waits

    def pause(self) -> None:
        """Let `run` end behind the instruction that it executes; for registers that change what is pending."""
        self._actions.stop, self._paused = 0, True

    @property
    def read_csr_value(self) -> Callable[[int], int | None] | None:
        """Asked with its address when an instruction reads a CSR: what hardware saw, or None for the own value."""
        return self._actions.read_csr_value

    @read_csr_value.setter
    def read_csr_value(self, hook: Callable[[int], int | None] | None) -> None:
        self._actions.read_csr_value = hook

    def step(self, pending: int = 0) -> Retired:
        """One instruction, or the trap it takes. `pending`: mip; an enabled interrupt of it is taken before.

        The record is then that of the first instruction of the handler, with intr.
        """
        actions, csrs, x = self._actions, self.csrs, self.x
        cause = self._interrupt(pending)
        intr = int(cause != 0)
        pc = self.pc
        bits = rs1 = rs2 = rd = a = b = trap = 0
        actions.access = None
        try:
            bits = self.memory.fetch(pc)
            action = actions[bits]
            if instruction := actions.instructions[bits]:
                rs1, rs2, rd = instruction.rs1, instruction.rs2, instruction.rd
                a, b = x[rs1], x[rs2]
            self.pc = action(pc)
            csrs.retired += 1
        except Trap as error:
            rd, trap, cause = 0, 1, error.cause
            if cause == Cause.ILLEGAL:  # vectors and their CSRs, by what vtype, vstart and mstatus hold
                rs1 = rs2 = a = b = 0
            self._trap(error)
        address = rmask = wmask = rdata = wdata = 0
        if access := actions.last_access():
            at, size, value, stores = access
            address, lane = at & ~3, at & 3
            mask = (1 << size) - 1 << lane
            data = (value & (1 << 8 * size) - 1) << 8 * lane
            rmask, wmask, rdata, wdata = (0, mask, 0, data) if stores else (mask, 0, data, 0)
        order = self._order
        self._order += 1
        return Retired(
            order, bits, trap, intr, pc, self.pc, rs1, rs2, a, b, rd, x[rd], address, rmask, wmask, rdata, wdata, cause
        )  # fmt: skip

    def run(self, limit: int, pending: int = 0) -> int:
        """Up to `limit` steps without records, a few times as fast. How many there were.

        It ends after a WFI, and when a device asked for a `pause`. `pending` stays what it is meanwhile.
        """
        actions, csrs, fetch = self._actions, self.csrs, self.memory.fetch
        begin = csrs.retired + csrs.trapped
        made = 0
        actions.waits = self._paused = False
        while made < limit and not actions.waits and not self._paused:
            self._interrupt(pending)
            actions.stop = csrs.retired + limit - made
            pc = self.pc
            try:
                while csrs.retired < actions.stop:
                    pc = actions[fetch(pc)](pc)
                    csrs.retired += 1
                self.pc = pc
            except Trap as error:
                self.pc = pc
                self._trap(error)
            except Exception:  # a device has ended the run
                self.pc = pc
                raise
            made = csrs.retired + csrs.trapped - begin
        self._order += made
        return made

    def _interrupt(self, pending: int) -> int:
        """Take an interrupt if one is pending and enabled: its cause, or 0."""
        csrs = self.csrs
        csrs.mip = pending & INTERRUPTS
        cause = csrs.interrupt() if pending else 0
        if cause:
            self._enter(cause, 0)
        return cause

    def _trap(self, error: Trap) -> None:
        """An instruction at `pc` does not retire."""
        self.csrs.trapped += 1
        self._enter(error.cause, error.value)

    def _enter(self, cause: int, value: int) -> None:
        self.pc = self.csrs.enter(cause, value, self.pc)
        if self.on_trap:
            self.on_trap()
