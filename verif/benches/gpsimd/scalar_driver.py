"""Memory, device and interrupts around a scalar core, and a golden hart that follows what retires."""

from collections import deque
from collections.abc import Callable

import numpy as np

from rtl.contract.gpsimd import Counter
from rtl.gpsimd.layouts import ACCESS, RETIRED, TRAPPED
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.benches.gpsimd.scalar_core_top import DEVICE, DEVICE_BYTES, RAM, RAM_BYTES
from verif.benches.gpsimd.scalar_times import ScalarTimes
from verif.benches.gpsimd.soup import CODE_BYTES, HANDLER, SOUP_BYTES
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Device, Memory
from verif.golden.riscv.retired import Retired

__all__ = ["TOHOST", "ScalarDriver"]

TOHOST = 0xE000  # a place in RAM

_ACCESS, _RETIRED, _TRAPPED = opened(ACCESS), opened(RETIRED), opened(TRAPPED)
_PROMPT = 6
"""Instructions that may still retire when an interrupt is pending and enabled: three stages', and while mip is set."""
_PRIORITY = (11, 3, 7)
_UNDER_WAY = 4
"""Instructions that have not retired and may have stored something."""
_MEMORY = 4
"""Cycles back that an interrupt may have been seen before it stops an instruction."""
_STATES = (
    Counter.BUSY, Counter.SLEEP, Counter.FETCH, Counter.BRANCH, Counter.LOAD, Counter.UNIT, Counter.MEMORY,
    Counter.VECTOR,
)  # fmt: skip
"""Of a core that runs, as far as it can tell itself."""


class ScalarDriver(Bench):
    """A RAM of the hardware and one of the golden hart, both from `ram`, from address `at` on; each instruction that
    retires is compared.

    `rng`: of the test, for all its programs.
    """

    def __init__(self, dut, rng: np.random.Generator, ram: bytearray, stalls: float, interrupts: float, at: int = RAM):
        super().__init__(dut)
        self.at = at
        self.rng = rng
        self.ram = bytearray(ram)
        self.line_bytes = len(dut.reply) // 8
        self.stalls = stalls
        self.interrupts = interrupts
        self.number = int(rng.integers(1 << 32))  # mhartid
        self.hart = self.golden(ram)
        self.seen = self.seen_rd = self.seen_to = 0  # what the hardware's instruction read, and wrote to rd
        self.times = ScalarTimes()
        self.trapped: deque[tuple[int, int, int]] = deque()  # nowhere, cause and pc of traps that were told
        self.asked_lines = 0
        self.stored: deque[tuple[int, int]] = deque(maxlen=1000)  # instructions compared by then, and place
        self.on_retired: list[Callable[[Retired], None]] = []
        self.retired = 0
        self.cycles: list[int] = []  # in which each retired
        self.states: list[int] = []  # of each cycle, a gpsimd.Counter
        self.causes: set[int] = set()
        self.interrupted: set[int] = set()
        self.spoilt = False  # a store went where code is
        self.done = False  # ... or to TOHOST
        self.cycle = 0
        self.pending = 0
        self.recent: deque[int] = deque([0])  # `pending`, of some cycles
        self.due = 0  # instructions for which an interrupt has been pending and enabled
        for name in ("line__ready", "access__ready", "reply_valid", "access_reply_valid", "pending", "mtime", "start"):
            getattr(dut, name).value = 0
        dut.hart.value = self.number
        dut.ram.value = at // RAM_BYTES

    def golden(self, ram: bytearray) -> Hart:
        """A hart at the start of what `ram` holds."""
        vlen = 8 * self.line_bytes if self.options.get("vectors", True) else None
        hart = Hart(self._memory(ram), hart_id=self.number, reset_pc=self.at, vlen=vlen)
        hart.read_csr_value = self._timed
        return hart

    def compare_memory(self) -> None:
        """All but what instructions that have not retired may have stored."""
        if self.ram == self.golden_ram:
            return
        late = {place for retired, place in self.stored if retired + _UNDER_WAY > self.retired}
        for place in range(0, RAM_BYTES, 4):
            have, need = (int.from_bytes(ram[place : place + 4], "little") for ram in (self.ram, self.golden_ram))
            assert have == need or place in late, f"RAM from {place:#x} on is {have:#x}, golden {need:#x}"

    def _memory(self, ram: bytearray) -> Memory:
        memory = Memory()
        self.golden_ram = bytearray(ram)
        memory.add(self.at, self.golden_ram)
        memory.add(DEVICE, Device(DEVICE_BYTES, self._read_device, lambda address, size, value: None))
        return memory

    def _read_device(self, address: int, size: int) -> int:
        return self.seen >> 8 * (address & 3)

    def _timed(self, number: int) -> int | None:
        if not self.times.is_timed(number):
            return None
        if self.seen_to:
            self.times.check(number, self.seen_rd, self.cycle, {_mip(pending) for pending in self.recent})
        return self.seen_rd

    async def run(self, instructions: int, *, patched: bool = False) -> None:
        """Until that many have retired, or it sleeps for ever, or executes data.

        A program that changes its code, `patched`, runs until it stores to TOHOST; another until it changes its code.
        """
        dut, rng = self.dut, self.rng
        if not self.cycle:
            dut.start.value, dut.entry.value = 1, self.at
            await self.edge
            dut.start.value, dut.entry.value = 0, int(rng.integers(1 << 32))
        line: tuple[int, int] | None = None  # cycle of the answer, number
        load: tuple[int, int] | None = None  # cycle of the answer, word
        line_ready = access_ready = 0
        quiet = 0
        while self.retired < instructions and not (self.done if patched else self.spoilt):
            await self.edge
            self.cycle += 1
            quiet += 1
            self.recent.append(self.pending)
            self.states.append(int(dut.state.value))
            assert dut.waits.value == 0 or self.states[-1] == Counter.SLEEP, "it sleeps, and does not say so"
            assert dut.waits.value == 0 or load is None, "its clock may stand still, and a load is to be answered"
            asleep = self.states[-2:] == [Counter.SLEEP] * 2
            assert dut.waits.value == 1 or not asleep, "it sleeps, and its clock must go on"
            assert self.states[-1] in _STATES, f"it is in state {self.states[-1]}"
            told = _TRAPPED(int(dut.trapped.value))
            if told.valid:
                self.trapped.append((told.nowhere, told.cause, told.pc))
            if dut.retired_valid.value == 1:
                quiet = 0
                got = _RETIRED(int(dut.retired.value))
                if CODE_BYTES <= got.pc_rdata - self.at < HANDLER and not patched:
                    return  # it executes data, which it may have changed
                self.cycles.append(self.cycle)
                self._compare(got)
            if quiet > 500 and dut.waits.value == 1 and not self.hart.csrs.mie:
                return  # nothing can wake it
            assert quiet < 3000, f"nothing retires any more, after {self.retired} instructions"
            if line_ready and dut.line__valid.value == 1:
                number = int(dut.line__payload.value)
                assert line is None, "a second line is asked for before the first has come"
                line = self.cycle + self._delay(), number
                self.asked_lines += 1
            if access_ready and dut.access__valid.value == 1:
                access = _ACCESS(int(dut.access__payload.value))
                word = self._access(access.address, access.write, access.mask, access.data)
                if not access.write:
                    assert load is None, "a second load before the first has its word"
                    load = self.cycle + self._delay(), word
            dut.reply_valid.value = int(line is not None and line[0] <= self.cycle)
            if line is not None and line[0] <= self.cycle:
                place = line[1] * self.line_bytes - self.at
                inside = 0 <= place < RAM_BYTES
                held = self.ram[place : place + self.line_bytes] if inside else rng.bytes(self.line_bytes)
                dut.reply.value = int.from_bytes(held, "little")
                dut.reply_fault.value = int(not inside)
                line = None
            dut.access_reply_valid.value = int(load is not None and load[0] <= self.cycle)
            dut.access_reply.value = int(rng.integers(1 << 32))
            if load is not None and load[0] <= self.cycle:
                dut.access_reply.value = load[1]
                load = None
            line_ready = int(rng.random() >= self.stalls)
            access_ready = int(rng.random() >= self.stalls)
            dut.line__ready.value = line_ready
            dut.access__ready.value = access_ready
            self.times.shown.append(int(rng.integers(1 << 63)) << 1 | int(rng.integers(2)))
            dut.mtime.value = self.times.shown[-1]
            if rng.random() < self.interrupts or (dut.waits.value == 1 and rng.random() < 0.1):
                self._raise(int(rng.integers(8)))

    def _delay(self) -> int:
        return int(self.rng.integers(1, 6)) - 1 if self.rng.random() < self.stalls else 0

    def _raise(self, pending: int) -> None:
        self.pending = pending
        self.dut.pending.value = pending

    def _access(self, address: int, write: int, mask: int, value: int) -> int:
        place = (address & ~3) - self.at
        if not 0 <= place < RAM_BYTES:
            if write:
                self.store_word(address - DEVICE, value)
            return self.device_word(address - DEVICE)
        if write:
            self.stored.append((self.retired, place))
            self.spoilt |= place < CODE_BYTES or place >= HANDLER
            self.done |= place == TOHOST
            for n in range(4):
                if mask >> n & 1:
                    self.ram[place + n] = value >> 8 * n & 255
        return int.from_bytes(self.ram[place : place + 4], "little")

    def store_word(self, place: int, value: int) -> None:
        """What a store to the device does."""

    def device_word(self, place: int) -> int:
        """What the device shows: in its first word where the handler of a soup goes on, else anything."""
        if place:
            return int(self.rng.integers(1 << 32))
        return self.at + 2 * int(self.rng.integers(20, SOUP_BYTES // 2 - 40))

    def _compare(self, got) -> None:
        self.retired += 1
        self.seen, self.seen_rd, self.seen_to = got.mem_rdata, got.rd_wdata, got.rd_addr
        pending, pc, mtvec = 0, self.hart.pc, self.hart.csrs.mtvec
        if got.intr:
            pending = self._check_interrupt(got.cause if not got.trap else 0)
        want = self.hart.step(pending)
        names = ["order", "insn", "trap", "intr", "pc_rdata", "pc_wdata", "rd_addr", "rd_wdata", "mem_addr"]
        names += ["mem_rmask", "mem_wmask", "mem_wdata", "cause"]
        if want.cause not in (1, 2) or not want.trap:
            names += ["rs1_addr", "rs1_rdata", "rs2_addr", "rs2_rdata"]
        for name in names:
            have, need = getattr(got, name), int(getattr(want, name)) & (31 if name == "cause" else -1)
            if name == "mem_wdata":
                lanes = sum(255 << 8 * n for n in range(4) if want.mem_wmask >> n & 1)
                have &= lanes
            assert have == need, (
                f"instruction {want.order} at {want.pc_rdata:#x}, {want.insn:#x}: {name} {have:#x}, golden {need:#x}"
            )
        lanes = sum(255 << 8 * n for n in range(4) if want.mem_rmask >> n & 1)
        assert got.mem_rdata & (lanes or -1) == want.mem_rdata
        told = [(int(mtvec < 4), want.cause & 31, where) for where in [pc] * want.intr + [want.pc_rdata] * want.trap]
        heard = [self.trapped.popleft() for _ in told if self.trapped]
        assert [one[::2] for one in told] == [one[::2] for one in heard], f"traps are told as {heard}, golden {told}"
        assert heard[-1:] == told[-1:], f"a trap is told as {heard}, golden {told}"
        if want.insn & 0x7F == 0x73 and not want.trap:
            self.times.written(want.insn, self.cycle, self.hart.csrs)
        if want.trap:
            self.causes.add(want.cause)
        if want.intr:
            self.interrupted.add(want.cause & 31)
        for told in self.on_retired:
            told(want)
        while len(self.recent) > _MEMORY:
            self.recent.popleft()
        if want.intr:
            self._raise(0 if self.rng.random() < 0.8 else int(self.rng.integers(8)))
        csrs = self.hart.csrs
        self.due = self.due + 1 if csrs.enabled and csrs.mie & _mip(self.pending) else 0
        assert self.due <= _PROMPT, f"an enabled interrupt waits for {self.due} instructions"

    def _check_interrupt(self, cause: int) -> int:
        """mip of a moment since the instruction before when `cause` was the first of those enabled; 0: any cause."""
        for pending in self.recent:
            enabled = _mip(pending) & self.hart.csrs.mie
            first = next((n for n in _PRIORITY if enabled >> n & 1), 0)
            if first and cause in (0, first):
                return _mip(pending)
        raise AssertionError(f"interrupt {cause} was taken, and pending were {[bin(p) for p in self.recent]}")


def _mip(pending: int) -> int:
    """The register mip of the three inputs."""
    return (pending & 1) << 3 | (pending >> 1 & 1) << 7 | (pending >> 2 & 1) << 11
