"""Random programs for the GPSIMD engine: every memory and register of its cores, waits, barriers, and every end.

A program leaves the same bits whatever its cores' order: each has its own partitions, semaphores and part of shared
memory, and what depends on time is compared before it is kept.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rtl.contract.config import Config
from rtl.contract.gpsimd import SHARED_BYTES, Counter, Mailbox, Region, WaitFor, cores, lane_address, row_address
from rtl.contract.isa import INSTRUCTION_BYTES, Cause
from verif.checks import gpsimd_copies as copies
from verif.checks import riscv_words as w
from verif.checks.gpsimd_vectors import behind, off, vectors

__all__ = ["CODE", "DATA", "DATA_BYTES", "ENDS", "OUTSIDE", "TOHOST", "EngineProgram", "engine_program"]

CODE, DATA, DATA_BYTES = 0x100, 0x2000, 0x400
"""In local memory: where code is loaded to, and what a program writes."""
TOHOST = DATA + 0x3F8
OUTSIDE = 5
_SLOTS = 8  # bytes of a core's part of shared memory that others read
OPEN_BYTES = 2048
"""Of each partition that programs load from and store to."""

_T0, _T1, _T2 = 5, 6, 7
_VALUES = tuple(range(10, 26))
_MIE, _MTVEC, _MTIME = 0x304, 0x305, 0xC01
_WFI, _ECALL = (n.to_bytes(4, "little") for n in (0x10500073, 0x73))
_KEPT = ("WAIT_VALUE", "TRAP_PC", "TRAP_VALUE", "MTIMECMPH")
_SHOWN = (
    "CORE",
    "CORES",
    "LANES",
    "LOCAL_BYTES",
    "DMA_DONE",
    "DMA_FREE",
    "DONE",
    "PUT",
    "TRAP",
    "WAIT_VALUE",
    "TRAP_PC",
)
_SHOWN += ("TRAP_VALUE", "MTIMECMPH", "DMA_PUSH")
_PUSHES_MAX = 6  # of a statement; a core may have four under way

ENDS = (
    "done", "tohost", "exit", "tohost fails", "illegal", "null", "ecall", "told", "foreign rows", "foreign lanes",
    "psum", "register", "store to argument", "byte of register", "no semaphore", "behind local memory",
    "wrong push", "bad descriptor", "refused behind the end", "bad handler", "vectors off",
    "vector behind local memory", "watchdog", "asleep",
)  # fmt: skip
"""How the core `victim` of a program ends; with the first two no core fails."""


@dataclass(frozen=True, slots=True)
class EngineProgram:
    """Code of each core that runs, from local byte CODE on. `end`: one of ENDS; `cause`: of the run."""

    code: dict[int, bytes]
    end: str
    cause: Cause
    watchdog: int = 0
    outside: tuple[int, ...] = ()
    """Semaphores that somebody else sets to OUTSIDE while it runs."""
    signals: tuple[int, ...] = ()
    """Semaphores that are 0 before it."""
    copies: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    """Descriptors of each core, from local byte gpsimd_copies.COPIES on."""


def _li(rd: int, value: int) -> bytes:
    return w.load_constant(rd, value & 0xFFFFFFFF)


def _lw(rd: int, base: int, offset: int = 0) -> bytes:
    return w.immediate(0x03, 2, rd, base, offset)


def _poke(at: int, rs: int = _T1) -> bytes:
    return _li(_T0, at) + w.store(2, rs, _T0, 0)


def _poke_number(at: int, value: int) -> bytes:
    return _li(_T1, value) + _poke(at)


def _box(register: int, value: int) -> bytes:
    return _poke_number(Region.MAILBOX + register, value)


class _Maker:
    """Statements of core `core`, as bytes that may stand anywhere."""

    def __init__(self, rng: random.Random, cfg: Config, core: int, mask: int, shares: bool):
        self.shares = shares
        self.rng, self.cfg, self.core, self.mask = rng, cfg, core, mask
        self.count = cores(cfg.partitions)
        self.lanes = cfg.partitions // self.count
        share = cfg.issue.semaphores // self.count
        self.semaphores = (*range(core * share, core * share + 3), (core + 1) * share - 3)
        """Those of this core; of the two behind them one is others' to set, one is for the next core."""
        self.signal, self.outside = (core + 1) * share - 2, (core + 1) * share - 1
        self.pushed = 0
        self.kinds: tuple[Callable[[], bytes], ...] = (
            self.compute, self.memory, self.memory, self.memory, self.memory, self.semaphore, self.semaphore,
            self.register, self.keep, self.argument, self.print, self.times, self.counts, self.alarm, self.outsider,
            self.rest, self.copy, self.copy, *((self.vectors,) * 6 if cfg.gpsimd.vectors else ()),
        )  # fmt: skip

    def value(self) -> int:
        return self.rng.choice(_VALUES)

    def compute(self) -> bytes:
        return w.register(0, self.rng.choice((0, 4, 6, 7)), self.value(), self.value(), self.value())

    def memory(self) -> bytes:
        """A load or store of 1, 2 or 4 bytes."""
        size = self.rng.randrange(3)
        byte, lane = self.rng.randrange(OPEN_BYTES) >> size << size, self.rng.randrange(self.lanes)
        if self.rng.random() < 0.1:
            byte = self.cfg.sbuf.partition_bytes - (1 << size)
        share = SHARED_BYTES // self.count
        at = self.rng.choice((
            row_address(lane, byte),
            lane_address(lane, byte, self.lanes),
            Region.SHARED + self.core * share + byte % (share - _SLOTS) if self.shares else row_address(0, byte),
            Region.LOCAL + DATA + byte % (DATA_BYTES - 8),
            Region.LOCAL_TOO + DATA + byte % (DATA_BYTES - 8),
        ))  # fmt: skip
        if self.rng.random() < 0.5:
            return _li(_T0, at) + w.store(size, self.value(), _T0, 0)
        unsigned = self.rng.random() < 0.5 and size < 2
        return _li(_T0, at) + w.immediate(0x03, size + 4 * unsigned, self.value(), _T0, 0)

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

    def semaphore(self) -> bytes:
        page = self.rng.choice((Mailbox.SEMAPHORE_BASE, Mailbox.SEMAPHORE_ADD))
        at = _li(_T0, Region.MAILBOX + page + 4 * self.rng.choice(self.semaphores))
        if self.rng.random() < 0.5:
            return at + w.store(2, self.value(), _T0, 0)
        return at + _lw(self.value(), _T0)

    def register(self) -> bytes:
        return _li(_T0, Region.MAILBOX + Mailbox[self.rng.choice(_SHOWN)]) + _lw(self.value(), _T0)

    def keep(self) -> bytes:
        """MTIMECMPH gets ones above, so that no time comes."""
        name = self.rng.choice(_KEPT)
        high = _li(_T1, -1) if name == "MTIMECMPH" else w.immediate(0x13, 0, _T1, self.value(), 0)
        return high + _poke(Region.MAILBOX + Mailbox[name])

    def argument(self) -> bytes:
        return _li(_T0, Region.MAILBOX + 4 * self.rng.randrange(32)) + _lw(self.value(), _T0)

    def print(self) -> bytes:
        return _poke(Region.MAILBOX + Mailbox.PUT, self.value())

    def times(self) -> bytes:
        """Time goes on, and MTIMEH is what belongs to it; the CSR shows no less."""
        rd, load = self.value(), _li(_T0, Region.MAILBOX + Mailbox.MTIME)
        code = load + _lw(_T1, _T0) + _lw(_T2, _T0) + w.register(0, 3, rd, _T1, _T2)
        code += w.immediate(0x73, 2, _T1, 0, _MTIME) + w.register(0, 3, _T1, _T1, _T2)
        return code + w.register(0, 0, rd, rd, _T1) + _lw(_T1, _T0, 4) + w.register(0, 0, rd, rd, _T1)

    def counts(self) -> bytes:
        """Instructions between two looks at their counter."""
        rd = self.value()
        code = _li(_T0, Region.MAILBOX + Mailbox.COUNTERS + 8 * Counter.INSTRUCTIONS) + _lw(_T1, _T0)
        code += b"".join(self.compute() for _ in range(self.rng.randrange(3)))
        return code + _lw(_T2, _T0) + w.register(0x20, 0, rd, _T2, _T1)

    def wait(self, condition: WaitFor, value: int, semaphore: int = 0) -> bytes:
        """Asleep or not until a condition holds; the registers are 0 behind it."""
        code = _box(Mailbox.WAIT_SEMAPHORE, semaphore) + _box(Mailbox.WAIT_VALUE, value)
        code += _box(Mailbox.WAIT_COMPARE, condition) + _li(_T0, Region.MAILBOX + Mailbox.WAIT_STATUS)
        sleeps = self.rng.random() < 0.7
        pause = _WFI if sleeps else w.immediate(0x13, 0, 0, 0, 0)
        code += _lw(_T1, _T0) + w.branch(1, _T1, 0, 12) + pause + w.jump(0, -12)
        return code + _box(Mailbox.WAIT_COMPARE, 0) + _box(Mailbox.WAIT_VALUE, 0)

    def alarm(self, at_least: int = 0) -> bytes:
        """Asleep until the timer; MTIMECMP is all ones behind it."""
        code = _li(_T0, Region.MAILBOX) + _lw(_T1, _T0, Mailbox.MTIME) + _lw(_T2, _T0, Mailbox.MTIMEH)
        code += w.immediate(0x13, 0, _T1, _T1, at_least + self.rng.randrange(60)) + w.store(
            2, _T1, _T0, Mailbox.MTIMECMP
        )
        code += w.store(2, _T2, _T0, Mailbox.MTIMECMPH)
        if self.rng.random() < 0.5 and not at_least:
            code += self.wait(WaitFor.TIMER, 0)
        else:  # its own interrupt ends a wfi as well
            code += _WFI
        return code + _box(Mailbox.MTIMECMPH, -1) + _box(Mailbox.MTIMECMP, -1)

    def outsider(self) -> bytes:
        if self.rng.random() < 0.5:
            return self.wait(WaitFor.SEMAPHORE_EQ, OUTSIDE, self.outside)
        return self.wait(WaitFor.SEMAPHORE_GE, self.rng.randrange(-2, OUTSIDE + 1), self.outside)

    def push(self, number: int) -> bytes:
        """A descriptor, by either address of local memory."""
        at = self.rng.choice((Region.LOCAL, Region.LOCAL_TOO)) + copies.COPIES + INSTRUCTION_BYTES * number
        self.pushed += 1
        return _box(Mailbox.DMA_PUSH, at)

    def copy(self) -> bytes:
        """Descriptors that go side by side, then a wait for all, asleep or with an eye on DMA_DONE."""
        many = self.rng.random() < 0.7
        numbers = [self.rng.choice(copies.DISJOINT) for _ in range(self.rng.randint(1, _PUSHES_MAX))]
        code = b"".join(self.push(n) for n in (numbers if many else [copies.IN]))
        if self.rng.random() < 0.6:
            return code + self.wait(WaitFor.DMA, self.pushed)
        look = _li(_T0, Region.MAILBOX + Mailbox.DMA_DONE) + _li(_T2, self.pushed) + _lw(_T1, _T0)
        return code + look + w.branch(4, _T1, _T2, -4)

    def rest(self) -> bytes:
        """mcycle stands still while the core sleeps: few of its cycles pass until the timer."""
        rd, mcycle = self.value(), 0xB00
        code = w.immediate(0x73, 2, rd, 0, mcycle) + self.alarm(400)
        code += w.immediate(0x73, 2, _T1, 0, mcycle) + w.register(0x20, 0, rd, _T1, rd)
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
        code = _poke(self._slot(self.core, part), self.value()) + meeting
        return code + _li(_T0, self._slot(self._neighbour(-1), part)) + _lw(self.value(), _T0)

    def barrier(self, part: int, number: int) -> bytes:
        return self._meet(part, _box(Mailbox.BARRIER, 1) + self.wait(WaitFor.BARRIER, number))

    def hand_on(self, part: int, number: int) -> bytes:
        """Count up the semaphore of the next core, then wait for the own one."""
        share = self.cfg.issue.semaphores // self.count
        code = _box(Mailbox.SEMAPHORE_ADD + 4 * ((self._neighbour(1) + 1) * share - 2), 1)
        return self._meet(part, code + self.wait(WaitFor.SEMAPHORE_GE, number, self.signal))

    def begin(self) -> bytes:
        code = b"".join(_li(n, self.rng.getrandbits(32)) for n in _VALUES)
        return code + _li(_T0, 1 << 11 | 1 << 7) + w.immediate(0x73, 1, 0, _T0, _MIE)

    def leave(self) -> bytes:
        """All registers go to a partition."""
        return _li(_T0, row_address(self.lanes - 1, OPEN_BYTES)) + b"".join(
            w.store(2, n, _T0, 4 * n) for n in _VALUES
        )  # fmt: skip

    def last_store(self) -> bytes:
        """To SBUF, with all at hand for a store to tohost behind it."""
        code = b"" if self.rng.random() < 0.5 else self.push(self.rng.choice(copies.DISJOINT))
        code += _li(_T2, row_address(0, OPEN_BYTES + 64)) + _li(_T0, Region.LOCAL_TOO + TOHOST) + _li(_T1, 1)
        return code + w.store(2, self.value(), _T2, 0)

    def end(self, kind: str) -> bytes:
        """What `kind` of ENDS is; nothing comes behind it."""
        box = Region.MAILBOX
        bad: dict[str, bytes] = {
            "done": self.push(copies.DISJOINT[0]) + _box(Mailbox.DONE, 0) + _poke_number(Region.LOCAL + DATA, 0x600D),
            "tohost": self.last_store() + w.store(2, _T1, _T0, 0) + _poke_number(Region.LOCAL + DATA, 0x600D),
            "exit": _box(Mailbox.DONE, self.rng.getrandbits(32) | 1),
            "tohost fails": _poke_number(Region.LOCAL + TOHOST, self.rng.getrandbits(32) | 3),
            "illegal": bytes(4),
            "null": _poke_number(4 * self.rng.randrange(4), 0),
            "ecall": _ECALL,
            "told": _box(Mailbox.TRAP_PC, self.rng.getrandbits(32)) + _box(Mailbox.TRAP, self.rng.randrange(32)),
            "foreign rows": _li(_T0, row_address(self.lanes, 0)) + _lw(_T1, _T0),
            "foreign lanes": _poke_number(lane_address(0, self.cfg.sbuf.partition_bytes, self.lanes), 0),
            "psum": _poke_number(0x6000_0000, 0),
            "register": _li(_T0, box + 0x84 + 0x18) + _lw(_T1, _T0),
            "store to argument": _poke_number(box, 0),
            "byte of register": _li(_T0, box + Mailbox.CORE) + w.immediate(0x03, 0, _T1, _T0, 0),
            "no semaphore": _poke_number(box + Mailbox.SEMAPHORE_ADD + 4 * self.cfg.issue.semaphores, 0),
            "behind local memory": _li(_T0, Region.LOCAL + self.cfg.gpsimd.local_bytes) + _lw(_T1, _T0),
            "wrong push": _box(Mailbox.DMA_PUSH, self.rng.choice(copies.WRONG_PUSHES)),
            "bad descriptor": self.push(copies.DISJOINT[0]) + self.push(copies.BAD),
            "refused behind the end": self.push(copies.DISJOINT[0]) + self.push(copies.BAD) + _box(Mailbox.DONE, 0),
            "bad handler": _li(_T0, Region.SHARED) + w.immediate(0x73, 1, 0, _T0, _MTVEC) + _ECALL,
            "vectors off": off(),
            "vector behind local memory": behind(
                Region.LOCAL + self.cfg.gpsimd.local_bytes - 4 * self.rng.randrange(1, 8)
            ),
            "watchdog": b"",
            "asleep": _WFI,
        }
        return bad[kind] + w.jump(0, 0)


def _cause(end: str) -> Cause:
    known = {"done": Cause.NONE, "tohost": Cause.NONE, "exit": Cause.GP_EXIT, "tohost fails": Cause.GP_EXIT}
    known |= dict.fromkeys(("wrong push", "bad descriptor", "refused behind the end"), Cause.GP_DMA)
    known |= {"watchdog": Cause.GP_WATCHDOG, "asleep": Cause.GP_WATCHDOG}
    return known.get(end, Cause.GP_TRAP)


def engine_program(seed: int, cfg: Config, end: str, statements: int = 12, mask: int | None = None) -> EngineProgram:
    """A run on some of the cores. The lowest of them, or another, ends as `end` says; then others wait for nobody."""
    rng = random.Random(seed)
    count = cores(cfg.partitions)
    mask = mask or rng.randrange(1, 1 << count)
    running = [k for k in range(count) if mask >> k & 1]
    victim = rng.choice(running)
    cause = _cause(end)
    makers = {k: _Maker(rng, cfg, k, mask, not cause) for k in running}
    code = {k: maker.begin() for k, maker in makers.items()}
    handed = 0
    for part in range(1, 3):
        for k, maker in makers.items():
            code[k] += b"".join(rng.choice(maker.kinds)() for _ in range(rng.randrange(statements)))
        meets = rng.random() < 0.5
        handed += not meets
        for k, maker in makers.items():
            code[k] += maker.barrier(part, part - handed) if meets else maker.hand_on(part, handed)
    for k, maker in makers.items():
        mine = k == victim
        code[k] += maker.leave() + maker.end(
            end
            if mine
            else "done"
            if not cause or rng.random() < 0.5 or end == "refused behind the end"
            else "watchdog"
        )
    late = (30_000 if cfg.gpsimd.vectors else 6000) if end in ("watchdog", "asleep") else 0
    outside, signals = (tuple(getattr(maker, name) for maker in makers.values()) for name in ("outside", "signal"))
    pushed = {k: copies.descriptors(rng, cfg, k) for k in running}
    return EngineProgram(code, end, cause, late, outside, signals, pushed)
