"""A golden hart with vectors, memory and a device around it, for tests that execute one instruction after the other."""

import numpy as np
from numpy.typing import NDArray

from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Device, Memory
from verif.golden.riscv.retired import Retired
from verif.golden.riscv.traps import Cause, Trap

__all__ = ["BYTES", "CODE", "DATA", "DEVICE", "DEVICE_BYTES", "VectorRig"]

CODE, DATA, BYTES = 0x10000000, 0x20000000, 0x400
DEVICE, DEVICE_BYTES = 0x40000000, 64


class VectorRig:
    """Vectors are on; behind `BYTES` of random bytes from `DATA` on there is nothing; the device takes whole words and
    notes accesses in `seen`."""

    def __init__(self, vlen: int | None = 128):
        self.code = bytearray(0x100)
        self.data = bytearray(np.random.default_rng(1).bytes(BYTES))
        self.seen: list[tuple[int, ...]] = []
        space = Memory()
        space.add(CODE, self.code)
        space.add(DATA, self.data)
        space.add(DEVICE, Device(DEVICE_BYTES, self.load, self.store))
        self.hart = Hart(space, reset_pc=CODE, vlen=vlen)
        self.hart.csrs.mtvec = CODE + 0x80
        if self.hart.vector:
            self.state = self.hart.vector
            self.state.status = 1
            self.state.v[:] = np.random.default_rng(2).integers(0, 256, self.state.v.shape, np.uint8)

    def load(self, address: int, size: int) -> int:
        if size != 4:
            raise Trap(Cause.LOAD_ACCESS, address)
        self.seen.append((address - DEVICE,))
        return address

    def store(self, address: int, size: int, value: int) -> None:
        if size != 4:
            raise Trap(Cause.STORE_ACCESS, address)
        self.seen.append((address - DEVICE, value))

    def configure(self, vtype: int, vl: int) -> None:
        self.state.vtype, self.state.vl = vtype, vl

    def do(self, word: int) -> Retired:
        """Execute one instruction, wherever the pc was."""
        self.code[:4] = word.to_bytes(4, "little")
        self.hart.pc = CODE
        return self.hart.step()

    def elements(self, register: int, bits: int) -> NDArray[np.integer]:
        """A copy of what a register and those behind hold."""
        return self.state.elements(register, bits).copy()

    def words(self, offset: int, count: int, bits: int = 32) -> NDArray[np.integer]:
        """A copy of memory."""
        return np.frombuffer(bytes(self.data), f"<u{bits // 8}")[offset * 8 // bits :][:count].copy()
