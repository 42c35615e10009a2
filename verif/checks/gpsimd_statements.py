"""Statements of random programs of GPSIMD cores: every memory and register, waits, barriers, copies.

They leave the same bits whatever the cores' order: each core has its own partitions, semaphores and part of shared
memory, and what depends on time is compared before it is kept.
"""

import random
from collections.abc import Callable

from rtl.contract.config import Config
from rtl.contract.gpsimd import SHARED_BYTES, Counter, Mailbox, Region, WaitFor, cores, lane_address, row_address
from rtl.contract.isa import INSTRUCTION_BYTES
from verif.checks import gpsimd_copies as copies
from verif.checks import riscv_words as w
from verif.checks.gpsimd_nowhere import nowhere
from verif.checks.gpsimd_vectors import vectors

__all__ = [
    "CODE", "DATA", "DATA_BYTES", "T0", "T1", "TOHOST", "WFI", "Statements", "box", "li", "lw",
    "poke_number",
]  # fmt: skip

CODE, DATA, DATA_BYTES = 0x100, 0x2000, 0x400
"""In local memory: where code is loaded to, and what a program writes."""
TOHOST = DATA + 0x3F8
_SLOTS = 8  # bytes of a core's part of shared memory that others read
OPEN_BYTES = 2048
"""Of each partition that programs load from and store to."""

T0, T1, T2 = 5, 6, 7
_TIMES = 8
_VALUES = tuple(range(10, 26))
_MIE, _MIP, _MTIME, _MTIMEH = 0x304, 0x344, 0xC01, 0xC81
_CLOSE = 1024  # root cycles, between two looks at the time that follow each other
_MTVEC, _MEPC, _MCAUSE, _MTVAL = 0x305, 0x341, 0x342, 0x343
WFI = (0x10500073).to_bytes(4, "little")
_MRET = (0x30200073).to_bytes(4, "little")
_KEPT = ("WAIT_VALUE", "TRAP_PC", "TRAP_VALUE", "MTIMECMP", "MTIMECMPH", "WAIT_SEMAPHORE", "WAIT_COMPARE")
_SHOWN = (
    "CORE", "CORES", "LANES", "LOCAL_BYTES", "DMA_DONE", "DMA_FREE", "DONE", "PUT", "TRAP", "WAIT_VALUE", "TRAP_PC",
    "TRAP_VALUE", "MTIMECMP", "MTIMECMPH", "DMA_PUSH", "BARRIER", "WAIT_SEMAPHORE", "WAIT_COMPARE",
)  # fmt: skip
_PUSHES_MAX = 6  # of a statement; a core may have four under way


def li(rd: int, value: int) -> bytes:
    return w.load_constant(rd, value & 0xFFFFFFFF)


def lw(rd: int, base: int, offset: int = 0) -> bytes:
    return w.immediate(0x03, 2, rd, base, offset)


def poke(at: int, rs: int = T1) -> bytes:
    return li(T0, at) + w.store(2, rs, T0, 0)


def poke_number(at: int, value: int) -> bytes:
    return li(T1, value) + poke(at)


def box(register: int, value: int) -> bytes:
    return poke_number(Region.MAILBOX + register, value)


class Statements:
    """Statements of core `core`, as bytes that may stand anywhere. `dense`: most of their instructions are vectors'."""

    def __init__(self, rng: random.Random, cfg: Config, core: int, mask: int, shares: bool, dense: bool = False):
        self.shares, self.dense = shares, dense
        self.rng, self.cfg, self.core, self.mask = rng, cfg, core, mask
        self.count = cores(cfg.partitions)
        self.lanes = cfg.partitions // self.count
        share = cfg.issue.semaphores // self.count
        self.semaphores = (*range(core * share, core * share + 3), (core + 1) * share - 3)
        """Those of this core; of the two behind them one is others' to set, one is for the next core."""
        self.signal, self.outside = (core + 1) * share - 2, (core + 1) * share - 1
        bit = self.rng.randrange(32)
        sign = 1 << 31
        self.set = ((self.rng.getrandbits(32) | 1 << bit) & (sign - 1 if bit == 31 else -1) ^ sign) - sign
        self.before = self.set - (1 << bit)
        """Of `outside`: what somebody else sets, and less by one bit, what it is at the start."""
        self.pushed = self.traps = 0
        self.kinds: tuple[Callable[[], bytes], ...] = (
            self.compute, self.memory, self.memory, self.memory, self.memory, self.semaphore, self.semaphore,
            self.register, self.keep, self.argument, self.print, self.times, self.counts, self.alarm, self.outsider,
            self.rest, self.no_time, self.nowhere, self.copy, self.copy,
            *((self.vectors,) * 6 if cfg.gpsimd.vectors else ()), *((self.many_vectors,) * 80 if dense else ()),
        )  # fmt: skip

    def value(self) -> int:
        return self.rng.choice(_VALUES)

    def compute(self) -> bytes:
        return w.register(0, self.rng.choice((0, 4, 6, 7)), self.value(), self.value(), self.value())

    def _place(self, size: int) -> int:
        """Where 1 << size bytes can be loaded and stored."""
        byte, lane = self.rng.randrange(OPEN_BYTES) >> size << size, self.rng.randrange(self.lanes)
        if self.rng.random() < 0.1:
            byte = self.cfg.sbuf.partition_bytes - (1 << size)
        share = SHARED_BYTES // self.count
        return self.rng.choice((
            row_address(lane, byte),
            lane_address(lane, byte, self.lanes),
            Region.SHARED + self.core * share + byte % (share - _SLOTS) if self.shares else row_address(0, byte),
            Region.LOCAL + DATA + byte % (DATA_BYTES - 8),
            Region.LOCAL_TOO + DATA + byte % (DATA_BYTES - 8),
        ))  # fmt: skip

    def memory(self) -> bytes:
        """A load or store of 1, 2 or 4 bytes."""
        size = self.rng.randrange(3)
        at = self._place(size)
        if self.rng.random() < 0.5:
            return li(T0, at) + w.store(size, self.value(), T0, 0)
        unsigned = self.rng.random() < 0.5 and size < 2
        return li(T0, at) + w.immediate(0x03, size + 4 * unsigned, self.value(), T0, 0)

    def _window(self, size_bytes: int) -> int:
        """Where so many bytes, a multiple of 4, can be loaded and stored."""
        byte = self.rng.randrange(DATA_BYTES - 8 - size_bytes)
        share = SHARED_BYTES // self.count
        shared = Region.SHARED + self.core * share + byte % (share - _SLOTS - size_bytes)
        at = self.rng.choice((
            row_address(self.rng.randrange(self.lanes), byte),
            lane_address(0, byte, self.lanes), lane_address(0, byte, self.lanes),
            shared if self.shares else row_address(0, byte),
            Region.LOCAL + DATA + byte, Region.LOCAL + DATA + byte, Region.LOCAL_TOO + DATA + byte,
        ))  # fmt: skip
        return at & ~3

    def vectors(self) -> bytes:
        return vectors(self.rng, self._window, self.value)

    def many_vectors(self) -> bytes:
        """The same a few times, on what the time before left."""
        body = vectors(self.rng, self._window, self.value, 96) + w.immediate(0x13, 0, _TIMES, _TIMES, -1)
        return li(_TIMES, self.rng.randrange(4, 24)) + body + w.branch(1, _TIMES, 0, -len(body))

    def semaphore(self) -> bytes:
        page = self.rng.choice((Mailbox.SEMAPHORE_BASE, Mailbox.SEMAPHORE_ADD))
        at = li(T0, Region.MAILBOX + page + 4 * self.rng.choice(self.semaphores))
        if self.rng.random() < 0.5:
            return at + w.store(2, self.value(), T0, 0)
        return at + lw(self.value(), T0)

    def register(self) -> bytes:
        return li(T0, Region.MAILBOX + Mailbox[self.rng.choice(_SHOWN)]) + lw(self.value(), T0)

    def keep(self) -> bytes:
        """Some registers, which keep what they are given while others change; ones above let no time come, and
        WAIT_COMPARE is 0 behind it."""
        rd, code = self.value(), li(T0, Region.MAILBOX)
        for name in self.rng.sample(_KEPT, 4):
            code += li(T1, -1) if name == "MTIMECMPH" else w.immediate(0x13, 0, T1, self.value(), 0)
            code += w.store(2, T1, T0, Mailbox[name])
        for name in self.rng.sample(_KEPT, 4):
            code += lw(T1, T0, Mailbox[name]) + w.immediate(0x13, 1, rd, rd, 1) + w.register(0, 0, rd, rd, T1)
        return code + w.store(2, 0, T0, Mailbox.WAIT_COMPARE)

    def argument(self) -> bytes:
        """The sum of some words."""
        rd, code = self.value(), li(T0, Region.MAILBOX)
        return code + b"".join(lw(T1, T0, 4 * n) + w.register(0, 0, rd, rd, T1) for n in self.rng.sample(range(32), 12))

    def print(self) -> bytes:
        return poke(Region.MAILBOX + Mailbox.PUT, self.value())

    def times(self) -> bytes:
        """Time goes on, and MTIMEH is what belongs to it; the CSRs show no less, and little more."""
        rd, load = self.value(), li(T0, Region.MAILBOX + Mailbox.MTIME)
        code = load + lw(T1, T0) + lw(T2, T0) + w.register(0, 3, rd, T1, T2)
        code += w.immediate(0x73, 2, T1, 0, _MTIME) + w.register(0, 3, T1, T1, T2)
        code += w.register(0, 0, rd, rd, T1) + w.immediate(0x73, 2, T1, 0, _MTIME) + w.register(0x20, 0, T1, T1, T2)
        code += w.immediate(0x13, 3, T1, T1, _CLOSE) + w.immediate(0x13, 1, T1, T1, 1) + w.register(0, 0, rd, rd, T1)
        code += w.immediate(0x73, 2, T2, 0, _MTIMEH) + w.register(0, 0, rd, rd, T2)
        return code + lw(T1, T0, 4) + w.register(0, 0, rd, rd, T1)

    def no_time(self) -> bytes:
        """The timer is due if MTIME is MTIMECMP, and not for long with one more bit of MTIMECMPH; mip says the same."""
        rd = self.value()
        code = box(Mailbox.WAIT_COMPARE, WaitFor.TIMER) + li(T0, Region.MAILBOX)
        code += lw(T1, T0, Mailbox.MTIME) + lw(T2, T0, Mailbox.MTIMEH)
        code += w.store(2, T1, T0, Mailbox.MTIMECMP) + w.store(2, T2, T0, Mailbox.MTIMECMPH)
        code += lw(rd, T0, Mailbox.WAIT_STATUS) + w.immediate(0x73, 2, T1, 0, _MIP) + w.register(0, 0, rd, rd, T1)
        code += li(T1, 1 << self.rng.randrange(32)) + w.register(0, 0, T1, T1, T2)
        code += w.store(2, T1, T0, Mailbox.MTIMECMPH) + lw(T1, T0, Mailbox.WAIT_STATUS)
        code += w.immediate(0x13, 1, rd, rd, 4) + w.register(0, 0, rd, rd, T1)
        code += w.immediate(0x73, 2, T1, 0, _MIP) + w.register(0, 4, rd, rd, T1)
        code += box(Mailbox.MTIMECMPH, -1) + box(Mailbox.MTIMECMP, -1)
        return code + box(Mailbox.WAIT_COMPARE, 0)

    def nowhere(self) -> bytes:
        """Loads and stores where nothing is; a handler steps over them, and keeps where they were and why."""
        where, why = self.rng.sample(_VALUES, 2)
        handler = w.immediate(0x73, 2, T1, 0, _MEPC) + w.immediate(0x13, 0, T1, T1, 4)
        handler += w.immediate(0x73, 1, 0, T1, _MEPC) + w.immediate(0x73, 2, T1, 0, _MTVAL)
        handler += w.register(0, 0, where, where, T1) + w.immediate(0x73, 2, T1, 0, _MCAUSE)
        handler += w.immediate(0x13, 1, why, why, 4) + w.register(0, 0, why, why, T1) + _MRET
        code = w.upper(0x17, T1, 0) + w.immediate(0x13, 0, T1, T1, 16) + w.immediate(0x73, 1, 0, T1, _MTVEC)
        code += w.jump(0, 4 + len(handler)) + handler
        for _ in range(4):
            at, size, stores = nowhere(self.rng, self.cfg)
            code += li(T0, at) + (w.store(size, T1, T0, 0) if stores else w.immediate(0x03, size, T1, T0, 0))
            self.traps += 1
        return code + w.immediate(0x73, 1, 0, 0, _MTVEC)

    def counts(self) -> bytes:
        """Instructions between two looks at their counter."""
        rd = self.value()
        code = li(T0, Region.MAILBOX + Mailbox.COUNTERS + 8 * Counter.INSTRUCTIONS) + lw(T1, T0)
        code += b"".join(self.compute() for _ in range(self.rng.randrange(3)))
        return code + lw(T2, T0) + w.register(0x20, 0, rd, T2, T1)

    def wait(self, condition: WaitFor, value: int, semaphore: int = 0) -> bytes:
        """Asleep or not until a condition holds; the registers are 0 behind it."""
        code = box(Mailbox.WAIT_SEMAPHORE, semaphore) + box(Mailbox.WAIT_VALUE, value)
        code += box(Mailbox.WAIT_COMPARE, condition) + li(T0, Region.MAILBOX + Mailbox.WAIT_STATUS)
        sleeps = self.rng.random() < (0.95 if self.dense else 0.7)
        pause = WFI if sleeps else w.immediate(0x13, 0, 0, 0, 0)
        code += lw(T1, T0) + w.branch(1, T1, 0, 12) + pause + w.jump(0, -12)
        return code + box(Mailbox.WAIT_COMPARE, 0) + box(Mailbox.WAIT_VALUE, 0)

    def alarm(self, at_least: int = 0, kept: int = 0) -> bytes:
        """Asleep until the timer, and not less, some with a load still under way; MTIMECMP is all ones behind it.
        Register `kept` keeps its value."""
        rd, other = self.rng.sample([n for n in _VALUES if n != kept], 2)
        code = li(T0, Region.MAILBOX) + lw(T1, T0, Mailbox.MTIME) + lw(T2, T0, Mailbox.MTIMEH)
        code += w.immediate(0x13, 0, T1, T1, at_least + self.rng.randrange(60)) + w.store(2, T1, T0, Mailbox.MTIMECMP)
        code += w.store(2, T2, T0, Mailbox.MTIMECMPH) + w.immediate(0x13, 0, rd, T1, 0)
        if self.rng.random() < 0.5 and not at_least:
            code += self.wait(WaitFor.TIMER, 0)
        else:  # its own interrupt ends a wfi as well
            if self.rng.random() < 0.5:
                code += li(T0, self._place(2)) + lw(other, T0)
            code += WFI
        code += li(T0, Region.MAILBOX) + lw(T1, T0, Mailbox.MTIME)
        code += w.register(0x20, 0, rd, T1, rd) + w.register(0, 2, rd, rd, 0)
        return code + box(Mailbox.MTIMECMPH, -1) + box(Mailbox.MTIMECMP, -1)

    def outsider(self) -> bytes:
        """Until somebody else has set a semaphore, which is looked at behind that."""
        if self.rng.random() < 0.5:
            code = self.wait(WaitFor.SEMAPHORE_EQ, self.set, self.outside)
        else:
            least = self.rng.choice((self.set, self.rng.randint(self.before + 1, self.set)))
            code = self.wait(WaitFor.SEMAPHORE_GE, least, self.outside)
        return code + li(T0, Region.MAILBOX + Mailbox.SEMAPHORE_BASE + 4 * self.outside) + lw(self.value(), T0)

    def push(self, number: int) -> bytes:
        """A descriptor, by either address of local memory."""
        at = self.rng.choice((Region.LOCAL, Region.LOCAL_TOO)) + copies.COPIES + INSTRUCTION_BYTES * number
        self.pushed += 1
        return box(Mailbox.DMA_PUSH, at)

    def copy(self) -> bytes:
        """Descriptors that go side by side, then a wait for all, asleep or with an eye on DMA_DONE."""
        many = self.rng.random() < 0.7
        numbers = [self.rng.choice(copies.DISJOINT) for _ in range(self.rng.randint(1, _PUSHES_MAX))]
        code = b"".join(self.push(n) for n in (numbers if many else [copies.IN]))
        if self.rng.random() < 0.6:
            return code + self.wait(WaitFor.DMA, self.pushed)
        look = li(T0, Region.MAILBOX + Mailbox.DMA_DONE) + li(T2, self.pushed) + lw(T1, T0)
        return code + look + w.branch(4, T1, T2, -4)

    def rest(self) -> bytes:
        """mcycle stands still while the core sleeps: few of its cycles pass until the timer."""
        rd, mcycle = self.value(), 0xB00
        code = w.immediate(0x73, 2, rd, 0, mcycle) + self.alarm(400, kept=rd)
        code += w.immediate(0x73, 2, T1, 0, mcycle) + w.register(0x20, 0, rd, T1, rd)
        return code + w.immediate(0x13, 3, rd, rd, 150)

    def _neighbour(self, step: int) -> int:
        others = [k for k in range(self.count) if self.mask >> k & 1]
        return others[(others.index(self.core) + step) % len(others)]

    def _slot(self, core: int, part: int) -> int:
        """A word of shared memory that a core leaves for others before they meet."""
        return Region.SHARED + (core + 1) * SHARED_BYTES // self.count - 4 * part

    def _meet(self, part: int, meeting: bytes) -> bytes:
        """Leave a word, meet, and take that of the core before."""
        if not self.shares:
            return meeting
        code = poke(self._slot(self.core, part), self.value()) + meeting
        return code + li(T0, self._slot(self._neighbour(-1), part)) + lw(self.value(), T0)

    def barrier(self, part: int, number: int) -> bytes:
        return self._meet(part, box(Mailbox.BARRIER, 1) + self.wait(WaitFor.BARRIER, number))

    def hand_on(self, part: int, number: int) -> bytes:
        """Count up the semaphore of the next core, then wait for the own one."""
        share = self.cfg.issue.semaphores // self.count
        code = box(Mailbox.SEMAPHORE_ADD + 4 * ((self._neighbour(1) + 1) * share - 2), 1)
        return self._meet(part, code + self.wait(WaitFor.SEMAPHORE_GE, number, self.signal))

    def begin(self) -> bytes:
        code = b"".join(li(n, self.rng.getrandbits(32)) for n in _VALUES)
        return code + li(T0, 1 << 11 | 1 << 7) + w.immediate(0x73, 1, 0, T0, _MIE)

    def leave(self) -> bytes:
        """All registers go to a partition."""
        return li(T0, row_address(self.lanes - 1, OPEN_BYTES)) + b"".join(
            w.store(2, n, T0, 4 * n) for n in _VALUES
        )  # fmt: skip

    def last_store(self) -> bytes:
        """To SBUF, with all at hand for a store to tohost behind it."""
        code = b"" if self.rng.random() < 0.5 else self.push(self.rng.choice(copies.DISJOINT))
        code += li(T2, row_address(0, OPEN_BYTES + 64)) + li(T0, Region.LOCAL_TOO + TOHOST) + li(T1, 1)
        return code + w.store(2, self.value(), T2, 0)
