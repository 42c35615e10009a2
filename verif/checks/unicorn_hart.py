"""A RISC-V hart that others wrote, for comparison: unicorn, one instruction at a time."""

from collections.abc import Iterable, Sequence

from unicorn import UC_ARCH_RISCV, UC_ERR_FETCH_UNMAPPED, UC_ERR_INSN_INVALID, UC_HOOK_INTR, UC_MODE_RISCV32
from unicorn import riscv_const as names
from unicorn.unicorn import Uc, UcError

__all__ = ["UnicornHart"]

REGISTERS = [names.UC_RISCV_REG_X0 + n for n in range(32)]
NOWHERE = 0xFFFFFFF0
SPACING = 8
FILL = b"\x01\xa0" * 2048  # C.J to itself: what is translated ahead ends there
BREAKPOINT = 3  # which unicorn keeps for itself: all it says is an error


class UnicornHart:
    """SiFive E31, RV32IMAC without floating point: what it has beyond our hart are atomics and user mode.

    It does not trap misaligned accesses. Its pc moves 4 after any illegal instruction, also one of 2 bytes, so a trap
    reports only its cause.
    """

    def __init__(self, code: int, code_bytes: int, data: int, data_bytes: int):
        """Memory is whole pages of 4096 bytes; instructions are put into `code`, among jumps to themselves."""
        self._uc = Uc(UC_ARCH_RISCV, UC_MODE_RISCV32)
        self._uc.ctl_set_cpu_model(names.UC_CPU_RISCV32_SIFIVE_E31)
        self._uc.mem_map(code, code_bytes)
        self._uc.mem_map(data, data_bytes)
        for page in range(0, code_bytes, len(FILL)):
            self._uc.mem_write(code + page, FILL)
        self._uc.hook_add(UC_HOOK_INTR, self._trapped)
        self._code, self._code_bytes, self._next = code, code_bytes, 0
        self.cause: int | None = None
        self._seen: set[int] = set()

    def _trapped(self, uc: Uc, cause: int, _: object) -> None:
        self.cause = cause
        uc.emu_stop()

    def place(self, instruction: bytes) -> int:
        """Put an instruction at the next of the places, which are used in turn; its address."""
        address = self._code + self._next
        self._next = (self._next + SPACING) % self._code_bytes
        self._put(address, instruction)
        return address

    def skip(self, room_bytes: int) -> None:
        """Leave the filling, so that jumps from one group of instructions do not reach another."""
        self._next = (self._next + room_bytes) % self._code_bytes

    def clear(self, address: int) -> None:
        """Take an illegal instruction away again: unicorn traps on a jump to it, before it is executed."""
        self._put(address, FILL[:SPACING])

    def _put(self, address: int, code: bytes) -> None:
        self._uc.mem_write(address, code)
        if address in self._seen:  # it keeps what it has translated, and forgetting takes ten times an instruction
            self._uc.ctl_remove_cache(address, address + SPACING)

    def set(self, registers: Iterable[tuple[int, int]]) -> None:
        """(number, value) pairs."""
        self._uc.reg_write_batch([(REGISTERS[n], v) for n, v in registers])

    def step(self, pc: int) -> tuple[int | None, int, Sequence[int]]:
        """Execute what lies at `pc`: cause of a trap or None, the next pc, all 32 registers."""
        self.cause = None
        try:
            self._uc.emu_start(pc, NOWHERE, count=1)
        except UcError as error:
            if error.errno == UC_ERR_INSN_INVALID and self.cause is None:
                self.cause = BREAKPOINT
            elif error.errno != UC_ERR_FETCH_UNMAPPED and self.cause is None:  # the target of a jump is not asked for
                raise
        after = self._uc.reg_read_batch([*REGISTERS, names.UC_RISCV_REG_PC])
        self._seen.update((pc, after[32]))
        return self.cause, after[32], after[:32]

    def read(self, address: int, count: int) -> bytes:
        """Bytes of the memory."""
        return bytes(self._uc.mem_read(address, count))

    def write(self, address: int, content: bytes) -> None:
        """Bytes into the memory."""
        self._uc.mem_write(address, content)
