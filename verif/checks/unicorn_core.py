"""A GPSIMD core made of unicorn, which this project did not write: scalar code of an image, a mailbox in Python.

No vectors, no SBUF timing, one core. A trap goes to mtvec as the core would send it there.
"""

from dataclasses import dataclass, field
from typing import Any

from unicorn import (
    UC_ARCH_RISCV,
    UC_HOOK_INTR,
    UC_HOOK_MEM_INVALID,
    UC_MEM_FETCH_PROT,
    UC_MEM_FETCH_UNMAPPED,
    UC_MEM_WRITE_PROT,
    UC_MEM_WRITE_UNMAPPED,
    UC_MODE_RISCV32,
)
from unicorn import riscv_const as riscv
from unicorn.unicorn import Uc, UcError

from firmware.gpsimd.image import Image
from rtl.contract.gpsimd import LOCAL_BYTES, Mailbox, Region

__all__ = ["Outcome", "run_image"]

MPP_MACHINE = 3 << 11
LOAD_FAULT, STORE_FAULT, FETCH_FAULT = 5, 7, 1
_STORES = (UC_MEM_WRITE_UNMAPPED, UC_MEM_WRITE_PROT)
_FETCHES = (UC_MEM_FETCH_UNMAPPED, UC_MEM_FETCH_PROT)


@dataclass
class Outcome:
    """How a run ended. `done` is the exit value; `trap` (mcause, mepc, mtval) if it ended in one."""

    printed: str = ""
    done: int | None = None
    trap: tuple[int, int, int] | None = None
    stores: list[tuple[int, int]] = field(default_factory=list)
    """Other stores to the mailbox: offset, value."""

    memory: bytes = b""
    """SBUF of this core's partitions, one after the other, 2^18 bytes each."""


def run_image(
    image: Image,
    *,
    entry: int | None = None,
    registers: dict[int, int] | None = None,
    sbuf: bytes = b"",
    local_bytes: int = LOCAL_BYTES,
    instructions: int = 50_000_000,
) -> Outcome:
    """Run until DONE or TRAP is written. `registers` of the mailbox by offset. RuntimeError if it never ends."""
    outcome = Outcome()
    u = Uc(UC_ARCH_RISCV, UC_MODE_RISCV32)
    u.mem_map(Region.LOCAL, local_bytes)
    u.mem_write(Region.LOCAL, b"\xa5" * local_bytes)  # nothing is 0 by chance
    u.mem_write(image.start, image.bytes())
    if sbuf:
        u.mem_map(Region.SBUF_ROWS, len(sbuf))
        u.mem_write(Region.SBUF_ROWS, sbuf)
    values = {Mailbox.CORES: 1, Mailbox.LANES: 1, Mailbox.LOCAL_BYTES: local_bytes, **(registers or {})}

    def load(_: Uc, offset: int, size: int, __: Any) -> int:
        assert size == 4 and offset % 4 == 0, f"a load of {size} bytes at {offset:#x} of the mailbox"
        return values.get(offset, 0)

    def store(core: Uc, offset: int, size: int, value: int, _: Any) -> None:
        assert size == 4 and offset % 4 == 0, f"a store of {size} bytes at {offset:#x} of the mailbox"
        if offset == Mailbox.PUT:
            outcome.printed += chr(value & 0xFF)
        elif offset == Mailbox.DONE:
            outcome.done = value - (value >> 31 << 32)
            core.emu_stop()
        elif offset == Mailbox.TRAP:
            outcome.trap = (value, values.get(Mailbox.TRAP_PC, 0), values.get(Mailbox.TRAP_VALUE, 0))
            core.emu_stop()
        else:
            values[offset] = value
            outcome.stores.append((offset, value))

    u.mmio_map(Region.MAILBOX, Mailbox.END + 0xFFF & ~0xFFF, load, None, store, None)
    pending: list[tuple[int, int, int]] = []

    def fault(core: Uc, access: int, address: int, *_: Any) -> bool:
        cause = STORE_FAULT if access in _STORES else FETCH_FAULT if access in _FETCHES else LOAD_FAULT
        pending.append((cause, core.reg_read(riscv.UC_RISCV_REG_PC), address))
        return False

    def exception(core: Uc, number: int, _: Any) -> None:
        at = core.reg_read(riscv.UC_RISCV_REG_PC) - 4  # unicorn is past the instruction
        pending.append((number, at, 0))
        core.emu_stop()

    u.hook_add(UC_HOOK_MEM_INVALID, fault)
    u.hook_add(UC_HOOK_INTR, exception)
    pc = image.entry if entry is None else entry
    for _ in range(100):
        try:
            u.emu_start(pc, 0xFFFF_FFFF, count=instructions)
        except UcError:
            if not pending:
                raise
        if outcome.done is not None or outcome.trap is not None:
            outcome.memory = bytes(u.mem_read(Region.SBUF_ROWS, len(sbuf))) if sbuf else b""
            return outcome
        if not pending:
            break
        cause, at, value = pending.pop()
        pending.clear()
        u.reg_write(riscv.UC_RISCV_REG_MCAUSE, cause)
        u.reg_write(riscv.UC_RISCV_REG_MSTATUS, u.reg_read(riscv.UC_RISCV_REG_MSTATUS) | MPP_MACHINE)
        u.reg_write(riscv.UC_RISCV_REG_MEPC, at)
        u.reg_write(riscv.UC_RISCV_REG_MTVAL, value)
        pc = u.reg_read(riscv.UC_RISCV_REG_MTVEC)
    raise RuntimeError(f"no DONE after {instructions:,} instructions, at {u.reg_read(riscv.UC_RISCV_REG_PC):#010x}")
