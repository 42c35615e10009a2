"""Mailbox of a core: registers by offset, and what they make pending."""

from collections.abc import Callable
from typing import Protocol

from rtl.contract.gpsimd import Counter, Mailbox, Region, WaitFor
from rtl.contract.isa import INSTRUCTION_BYTES, Update
from verif.golden.gpsimd.barrier import Barrier
from verif.golden.gpsimd.copies import CoreCopies
from verif.golden.gpsimd.ended import Ended
from verif.golden.gpsimd.place import Place
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Device
from verif.golden.riscv.traps import Cause, Trap

__all__ = ["MailboxRegisters", "Semaphores"]

WORD = 0xFFFFFFFF
EXTERNAL, TIMER = 1 << 11, 1 << 7
TENSOR_CYCLES = 2  # of a GPSIMD cycle
COUNTER_BYTES = 8
_COUNTED = (Counter.BUSY, Counter.INSTRUCTIONS)


class Semaphores(Protocol):
    """What firmware sees of the machine's semaphores."""

    semaphores: list[int]

    def update(self, index: int, update: Update, value: int) -> None: ...


def _signed(value: int) -> int:
    return value - (value >> 31 << 32)


class MailboxRegisters:
    """Registers at the start of a run, and then as loads and stores of `device` change them.

    There is no time: a GPSIMD cycle is an instruction that retired, or one that the core has slept (`slept`). A run
    begins at MTIME `began`. What a program makes of MTIME and of counters cannot be compared with hardware; counters
    but BUSY and INSTRUCTIONS are 0.
    """

    def __init__(
        self,
        place: Place,
        argument: int,
        hart: Hart,
        semaphores: Semaphores,
        barrier: Barrier,
        printed: bytearray,
        copies: CoreCopies,
        local: bytearray,
        began: int = 0,
    ):
        self.slept = 0
        self.began = began
        self.timer = (1 << 64) - 1  # MTIMECMP
        self.compare = 0  # WAIT_COMPARE
        self.device = Device(Mailbox.END, self._load, self._store)
        self._hart, self._semaphores, self._barrier = hart, semaphores, barrier
        self._core, self._copies = place.core, copies
        self._argument = argument.to_bytes(INSTRUCTION_BYTES, "little")
        self._kept: dict[Mailbox, int] = dict.fromkeys(
            (Mailbox.WAIT_SEMAPHORE, Mailbox.WAIT_VALUE, Mailbox.TRAP_PC, Mailbox.TRAP_VALUE), 0
        )
        self._high: dict[int, int] = {}  # upper halves by offset, as they were when the lower ones were loaded
        readers: dict[int, Callable[[], int]] = {
            Mailbox.CORE: lambda: place.core,
            Mailbox.CORES: lambda: place.cores,
            Mailbox.LANES: lambda: place.lanes,
            Mailbox.LOCAL_BYTES: lambda: place.local_bytes,
            Mailbox.BARRIER: lambda: barrier.passed,
            Mailbox.MTIME: lambda: self._low(Mailbox.MTIME, self.time),
            Mailbox.MTIMEH: lambda: self._high.get(Mailbox.MTIME, 0),
            Mailbox.MTIMECMP: lambda: self.timer,
            Mailbox.MTIMECMPH: lambda: self.timer >> 32,
            Mailbox.WAIT_COMPARE: lambda: self.compare,
            Mailbox.WAIT_STATUS: lambda: int(self.holds()),
            Mailbox.DMA_DONE: lambda: copies.done(place.core),
            Mailbox.DMA_FREE: lambda: copies.free(place.core),
            **dict.fromkeys((Mailbox.DONE, Mailbox.PUT, Mailbox.DMA_PUSH, Mailbox.TRAP), lambda: 0),
            **{at: lambda at=at: self._kept[at] for at in self._kept},
        }
        for counter in Counter:
            at = Mailbox.COUNTERS + COUNTER_BYTES * counter
            counted = counter in _COUNTED
            readers[at] = lambda counted=counted: self._low(Mailbox.COUNTERS, hart.csrs.retired * counted)
            readers[at + 4] = lambda: self._high.get(Mailbox.COUNTERS, 0)
        writers: dict[int, Callable[[int], None]] = {
            Mailbox.DONE: self._done,
            Mailbox.PUT: lambda value: printed.append(value & 0xFF),
            Mailbox.BARRIER: lambda _: barrier.arrive(place.core),
            Mailbox.MTIMECMP: lambda value: setattr(self, "timer", self.timer >> 32 << 32 | value),
            Mailbox.MTIMECMPH: lambda value: setattr(self, "timer", value << 32 | self.timer & WORD),
            Mailbox.WAIT_COMPARE: lambda value: setattr(self, "compare", value & 7),
            Mailbox.DMA_PUSH: lambda address: copies.push(place.core, local, address),
            Mailbox.TRAP: self._trap,
            **{at: lambda value, at=at: self._kept.update({at: value}) for at in self._kept},
            Mailbox.WAIT_SEMAPHORE: lambda value: self._kept.update({Mailbox.WAIT_SEMAPHORE: value & 0xFF}),
        }
        self._readers, self._writers = readers, writers

    @property
    def time(self) -> int:
        """MTIME."""
        return self.began + TENSOR_CYCLES * (self._hart.csrs.retired + self.slept)

    def holds(self) -> bool:
        """Whether the condition of WAIT_COMPARE holds."""
        value, every = _signed(self._kept[Mailbox.WAIT_VALUE]), self._semaphores.semaphores
        semaphore = every[self._kept[Mailbox.WAIT_SEMAPHORE] % len(every)]
        match self.compare:
            case WaitFor.SEMAPHORE_GE:
                return semaphore >= value
            case WaitFor.SEMAPHORE_EQ:
                return semaphore == value
            case WaitFor.TIMER:
                return self.time >= self.timer
            case WaitFor.DMA:
                return _signed(self._copies.done(self._core)) >= value
            case WaitFor.BARRIER:
                return self._barrier.passed >= value
            case _:
                return False

    def pending(self) -> int:
        """Bits of mip."""
        return EXTERNAL * self.holds() | TIMER * (self.time >= self.timer)

    def _load(self, address: int, size: int) -> int:
        offset = address - Region.MAILBOX
        if size != 4:
            raise Trap(Cause.LOAD_ACCESS, address)
        if offset < INSTRUCTION_BYTES:
            return int.from_bytes(self._argument[offset : offset + 4], "little")
        if offset >= Mailbox.SEMAPHORE_BASE:
            return self._semaphores.semaphores[self._semaphore(address, Cause.LOAD_ACCESS)] & WORD
        if offset not in self._readers:
            raise Trap(Cause.LOAD_ACCESS, address)
        return self._readers[offset]() & WORD

    def _store(self, address: int, size: int, value: int) -> None:
        offset = address - Region.MAILBOX
        if size != 4:
            raise Trap(Cause.STORE_ACCESS, address)
        if offset >= Mailbox.SEMAPHORE_BASE:
            index = self._semaphore(address, Cause.STORE_ACCESS)
            update = Update.ADD if offset >= Mailbox.SEMAPHORE_ADD else Update.SET
            self._semaphores.update(index, update, _signed(value))
        elif offset in self._writers:
            self._writers[offset](value)
        else:
            raise Trap(Cause.STORE_ACCESS, address)
        self._hart.pause()  # an interrupt may be pending now, or no longer

    def _semaphore(self, address: int, cause: Cause) -> int:
        """Index of the semaphore at an address of either window."""
        index = (address - Region.MAILBOX) % (Mailbox.SEMAPHORE_ADD - Mailbox.SEMAPHORE_BASE) // 4
        if index >= len(self._semaphores.semaphores):
            raise Trap(cause, address)
        return index

    def _low(self, at: int, value: int) -> int:
        """Bits 31:0 of a register of 64 bits; the others are kept."""
        self._high[at] = value >> 32 & WORD
        return value

    def _done(self, value: int) -> None:
        raise Ended.by_exit(value)

    def _trap(self, value: int) -> None:
        raise Ended.by_trap(self._kept[Mailbox.TRAP_PC], value)
