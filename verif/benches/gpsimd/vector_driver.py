"""A vector unit with memory around it, and a golden hart that does the same instructions."""

import random

import numpy as np

from rtl.gpsimd.layouts import ACCESS
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.benches.gpsimd.vector_unit_top import DEVICE, DEVICE_BYTES, RAM, RAM_BYTES
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Device, Memory
from verif.golden.riscv.retired import Retired

__all__ = ["VSTART", "VXRM", "VXSAT", "VectorDriver"]

_ACCESS = opened(ACCESS)
CODE = 0x2000_0000
VSTART, VXSAT, VXRM, VCSR, VL, VTYPE, VLENB = 0x008, 0x009, 0x00A, 0x00F, 0xC20, 0xC21, 0xC22
_LIMIT_CYCLES = 20_000


class VectorDriver(Bench):
    """Executes words one after the other; results and traps are compared with each, registers and memory when the unit
    is quiet: behind each, and with `overlap` only behind some.

    cycles_taken: by the last one, until it was done; cycles_to_quiet: until all was. stalls: how often memory is not
    ready or answers late; slowly: how often rows of memory are not moved as such.
    """

    def __init__(self, dut, stalls: float = 0.0):
        super().__init__(dut)
        self.lanes = len(dut.mask__0) // 4
        self.line_bytes = 4 * self.lanes
        self.stalls = stalls
        self.slowly = 0.2
        self.random = random.Random(int(self.rng.integers(1 << 31)))
        self.ram = bytearray(self.rng.bytes(RAM_BYTES))
        self.code = bytearray(4)
        self.stored: list[tuple[int, int, int]] = []  # to the device: address, mask of bytes, value
        self.golden_stored: list[tuple[int, int, int]] = []
        self.golden_ram = bytearray(self.ram)
        memory = Memory()
        memory.add(RAM, self.golden_ram)
        memory.add(CODE, self.code)
        memory.add(DEVICE, Device(DEVICE_BYTES, self._device_load, self._device_store))
        self.hart = Hart(memory, reset_pc=CODE, vlen=32 * self.lanes)
        self.v = np.zeros_like(self.hart.vector.v)
        self.cycles_taken = self.cycles_to_quiet = 0
        self.cycle = 0
        self.overlap = 0.0
        self.behind: list[str] = []  # what has been executed since the unit was quiet
        self.answer: tuple[int, int] | None = None  # of an element that is loaded: cycles until it comes, word
        self.last: bool | None = None  # the row that was stored; None before the first
        self.by_rows = self.lasts = 0  # stores that go by rows, and rows that were told to be a store's last
        self.moved, self.golden_moved = [0, 0], [0, 0]  # bytes loaded and stored by rows beyond
        ready = ("access__ready", "line_ready", "row_ready")
        for name in ("start", "enabled", "csr_write", "reply_valid", "slowly", "stalls", "banks", *ready):
            getattr(dut, name).value = 0

    def _device_load(self, address: int, size: int) -> int:
        return self._device_word(address) >> 8 * (address & 3)

    @staticmethod
    def _device_word(address: int) -> int:
        return (address >> 2) * 0x9E3779B1 & 0xFFFFFFFF

    def _device_store(self, address: int, size: int, value: int) -> None:
        lane = address & 3
        mask = (1 << size) - 1 << lane
        self.golden_stored.append((address & ~3, mask, (value & (1 << 8 * size) - 1) << 8 * lane))

    async def write_csr(self, number: int, value: int) -> None:
        """As an instruction would."""
        await self.settle()
        dut = self.dut
        dut.csr.value, dut.csr_value.value, dut.csr_write.value = number, value, 1
        await self.edge
        dut.csr_write.value = 0
        self.hart.csrs.write(number, value)

    async def compare_csrs(self) -> None:
        """All that there are."""
        await self.settle()
        for number in (VSTART, VXSAT, VXRM, VCSR, VL, VTYPE, VLENB):
            self.dut.csr.value = number
            await self.edge
            assert self.dut.csr_exists.value == 1
            have, need = int(self.dut.csr_read.value), self.hart.csrs.read(number)
            assert have == need, f"{self.what}: CSR {number:#x} is {have:#x}, golden {need:#x}"

    async def execute(self, word: int, rs1: int, rs2: int, enabled: int = 3) -> Retired:
        """The instruction with these values in the registers that it names, if it reads them; x0 is 0."""
        hart, dut = self.hart, self.dut
        state = hart.vector
        first, second = word >> 15 & 31, word >> 20 & 31
        rs1, rs2 = rs1 if first else 0, rs2 if second else 0
        if first == second:
            rs2 = rs1
        hart.x[first], hart.x[second], hart.pc = rs1, rs2, CODE
        self.code[:] = word.to_bytes(4, "little")
        state.status = enabled
        before = f"vtype {state.vtype:#x}, vl {state.vl}, vstart {state.vstart}, vxrm {state.vxrm}"
        self.what = f"{word:#010x} with x[{first}] {rs1:#x}, x[{second}] {rs2:#x}, {before}"
        dut.bits.value, dut.rs1.value, dut.rs2.value = word, rs1, rs2
        dut.enabled.value = int(enabled != 0)
        dut.slowly.value = int(self.random.random() < self.slowly)
        dut.has_kept_word.value = int(self.random.random() < self.slowly)
        dut.kept_word.value = self.random.randrange(RAM_BYTES // 4)
        dut.start.value = 1
        self.behind.append(self.what)
        self.cycles_taken = 0
        while True:
            await self._cycle()
            self.cycles_taken += 1
            assert self.cycles_taken < _LIMIT_CYCLES, f"{self.what}: does not end"
            if dut.done.value == 1:
                break
        got = {name: int(getattr(dut, name).value) for name in ("traps", "cause", "tval", "result")}
        dut.start.value = 0
        for name in ("bits", "rs1", "rs2"):
            getattr(dut, name).value = self.random.getrandbits(32)
        elements, row_bytes = self._row_elements(word, rs1), self._row_bytes(word, rs1)
        want = hart.step()
        if not want.trap:
            self.by_rows += elements > 0 and word & 0x7F == 0x27
            self.golden_moved[word & 0x7F == 0x27] += row_bytes
        assert got["traps"] == want.trap, f"{self.what}: traps {got['traps']}, golden {want.trap} ({hart.csrs.mcause})"
        if want.trap:
            assert got["cause"] == want.cause, f"{self.what}: cause {got['cause']}, golden {want.cause}"
            assert got["tval"] == hart.csrs.mtval, f"{self.what}: tval {got['tval']:#x}, golden {hart.csrs.mtval:#x}"
        elif want.rd_addr:
            assert got["result"] == want.rd_wdata, f"{self.what}: rd {got['result']:#x}, golden {want.rd_wdata:#x}"
        if self.random.random() >= self.overlap:
            await self.settle()
        return want

    async def random_registers(self) -> None:
        """All registers from memory: anything, small numbers, or those at the end of a range."""
        rng, size = self.random, 8 * self.line_bytes
        for register in (0, 8, 16, 24):
            kind, values = rng.random(), rng.randbytes(size)
            if kind < 0.3:
                width = rng.choice((1, 2, 4))
                values = b"".join(rng.randrange(64).to_bytes(width, "little") for _ in range(size // width))
            elif kind < 0.4:
                values = bytes(rng.choice((0, 0, 0x7F, 0x80, 0xFF, 1)) for _ in range(size))
            await self.settle()
            for ram in (self.ram, self.golden_ram):
                ram[:size] = values
            await self.execute(7 << 29 | 1 << 25 | 8 << 20 | 5 << 15 | 6 << 12 | register << 7 | 7, RAM, 0)  # vl8re32.v

    def _row_elements(self, word: int, address: int) -> int:
        """Of a load or store that is to go by rows: side by side in RAM, aligned, from the first element on; else 0."""
        state, kind = self.hart.vector, word >> 20 & 31
        if word & 0x5F != 7 or word >> 26 & 3 or state.vstart or self.dut.slowly.value == 1:
            return 0
        size = {0: 1, 5: 2, 6: 4}.get(word >> 12 & 7, 0)
        whole = ((word >> 29) + 1) * self.line_bytes
        elements = {0: state.vl, 16: state.vl, 8: whole, 11: -(-state.vl // 8)}.get(kind, 0)
        if not size or (kind != 8 and word >> 29) or address % size:
            return 0
        end = address + elements * (1 if kind == 8 else size)
        inside = RAM <= address and end <= RAM + RAM_BYTES
        return elements if inside else 0

    def _row_bytes(self, word: int, address: int) -> int:
        """Bytes that it moves by rows, where these are beyond local memory; else 0."""
        elements = self._row_elements(word, address)
        if address < RAM + RAM_BYTES // 2 or not elements:
            return 0
        if word >> 25 & 1 or word >> 20 & 31 in (8, 11):
            active = elements
        else:
            bits = int.from_bytes(self.hart.vector.v[0].tobytes(), "little")
            active = (bits & (1 << elements) - 1).bit_count()
        return active * (1 if word >> 20 & 31 == 8 else {0: 1, 5: 2, 6: 4}[word >> 12 & 7])

    async def settle(self) -> None:
        """Until nothing is under way; then all is compared."""
        if not self.behind:
            return
        self.cycles_to_quiet = self.cycles_taken
        while True:
            await self._cycle()
            if self.dut.quiet.value == 1:
                break
            self.cycles_to_quiet += 1
            assert self.cycles_to_quiet < _LIMIT_CYCLES, f"{self.what}: does not end"
        what = "; ".join(self.behind[-8:])
        self.behind.clear()
        assert self.last is not False, f"{what}: no row that is stored is the last"
        assert self.lasts == self.by_rows, f"{what}: {self.lasts} rows are the last of {self.by_rows} stores"
        self.lasts = self.by_rows = 0
        assert self.moved == self.golden_moved, f"{what}: {self.moved} bytes are told moved, golden {self.golden_moved}"
        self.moved, self.golden_moved = [0, 0], [0, 0]
        state = self.hart.vector
        if not np.array_equal(self.v, state.v):
            register, byte = np.argwhere(self.v != state.v)[0]
            have, need = (bytes(v[register][::-1]).hex() for v in (self.v, state.v))
            raise AssertionError(f"{what}: v{register} from byte {byte} on is {have}, golden {need}")
        if self.ram != self.golden_ram:
            at = [n for n in range(RAM_BYTES) if self.ram[n] != self.golden_ram[n]]
            there = ", ".join(f"{RAM + n:#x} is {self.ram[n]:#x}, golden {self.golden_ram[n]:#x}" for n in at[:4])
            raise AssertionError(f"{what}: {there}")
        assert self.stored == self.golden_stored, f"{what}: the device got {self.stored}, golden {self.golden_stored}"
        self.stored.clear()
        self.golden_stored.clear()

    async def _cycle(self) -> None:
        """A cycle of all that is around the unit."""
        dut, rng = self.dut, self.random
        ready = int(rng.random() >= self.stalls)
        dut.access__ready.value = ready
        dut.reply_valid.value = 0
        dut.reply.value = rng.getrandbits(32)
        goes = [rng.random() >= self.stalls for _ in range(2)]
        dut.line_ready.value, dut.row_ready.value = int(goes[0]), int(goes[1])
        dut.stalls.value = rng.getrandbits(self.lanes) & rng.getrandbits(self.lanes) if self.stalls else 0
        if self.answer:
            late, word = self.answer
            self.answer = (late - 1, word) if late else None
            if not late:
                dut.reply_valid.value, dut.reply.value = 1, word
        await self.edge
        self.cycle += 1
        self.moved[0] += int(dut.line_moved.value)
        self.moved[1] += int(dut.row_moved.value)
        for n in range(3):
            if getattr(dut, f"written__{n}").value == 1:
                self._write(*(int(getattr(dut, f"{name}__{n}").value) for name in ("number", "mask", "data")))
        dut.line.value = rng.getrandbits(8 * self.line_bytes)
        if goes[0] and dut.line_en.value == 1:
            place = int(dut.line_row.value) * self.line_bytes - RAM
            inside = 0 <= place < RAM_BYTES
            held = self.ram[place : place + self.line_bytes] if inside else rng.randbytes(self.line_bytes)
            dut.line.value = int.from_bytes(held, "little")
        self._banks()
        if goes[1] and dut.row_en.value == 1:  # what is read meanwhile is the old row
            self.last = dut.row_last.value == 1
            self.lasts += self.last
            self._store_row(int(dut.row.value), int(dut.row_mask.value), int(dut.row_data.value))
        if ready and dut.access__valid.value == 1:
            access = _ACCESS(int(dut.access__payload.value))
            word = self._access(access.address, access.write, access.mask, access.data)
            if not access.write:
                self.answer = rng.randrange(4) if rng.random() < self.stalls else 0, word

    def _banks(self) -> None:
        """Words of RAM by banks."""
        dut = self.dut
        dut.banks.value = self.random.getrandbits(8 * self.line_bytes)
        enabled = int(dut.bank_en.value)
        if not enabled:
            return
        data, words = int(dut.bank_data.value), []
        for n in range(self.lanes):
            place = int(getattr(dut, f"bank_row__{n}").value) * self.line_bytes + 4 * n
            words.append(self.ram[place : place + 4])
            if enabled >> n & 1 and dut.bank_write.value == 1:
                self.ram[place : place + 4] = (data >> 32 * n & 0xFFFFFFFF).to_bytes(4, "little")
        if dut.bank_write.value == 0:
            dut.banks.value = int.from_bytes(b"".join(words), "little")

    def _write(self, number: int, mask: int, data: int) -> None:
        for n, value in enumerate(data.to_bytes(self.line_bytes, "little")):
            if mask >> n & 1:
                self.v[number, n] = value

    def _store_row(self, row: int, mask: int, data: int) -> None:
        place = row * self.line_bytes - RAM
        for n, value in enumerate(data.to_bytes(self.line_bytes, "little")):
            if mask >> n & 1:
                assert 0 <= place + n < RAM_BYTES, f"{self.what}: a row is stored outside memory"
                self.ram[place + n] = value

    def _access(self, address: int, write: int, mask: int, value: int) -> int:
        word = address & ~3
        if not RAM <= word < RAM + RAM_BYTES:
            if write:
                lanes = sum(255 << 8 * n for n in range(4) if mask >> n & 1)
                self.stored.append((word, mask, value & lanes))
            return self._device_word(word)
        place = word - RAM
        for n in range(4):
            if write and mask >> n & 1:
                self.ram[place + n] = value >> 8 * n & 255
        return int.from_bytes(self.ram[place : place + 4], "little")
