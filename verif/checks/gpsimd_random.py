"""Random programs for the GPSIMD engine: statements of its cores, and every end."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from rtl.contract.config import Config
from rtl.contract.gpsimd import Mailbox, Region, cores, lane_address, row_address
from rtl.contract.isa import Cause
from verif.checks import gpsimd_copies as copies
from verif.checks import riscv_words as w
from verif.checks.gpsimd_statements import DATA, T0, T1, TOHOST, WFI, Statements, box, li, lw, poke_number
from verif.checks.gpsimd_vectors import behind, off

__all__ = ["ENDS", "EngineProgram", "engine_program"]

_MTVEC = 0x305
_ECALL = (0x73).to_bytes(4, "little")

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
    outside: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Semaphores that somebody else sets while it runs: what they are before, and then."""
    signals: tuple[int, ...] = ()
    """Semaphores that are 0 before it."""
    copies: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    """Descriptors of each core, from local byte gpsimd_copies.COPIES on."""
    traps: Mapping[int, int] = field(default_factory=dict[int, int])
    """Of each core, that its handler takes if the program ends well."""


def _ending(core: Statements, kind: str) -> bytes:
    """What `kind` of ENDS is; nothing comes behind it."""
    mailbox = Region.MAILBOX
    bad: dict[str, bytes] = {
        "done": core.push(copies.DISJOINT[0]) + box(Mailbox.DONE, 0) + poke_number(Region.LOCAL + DATA, 0x600D),
        "tohost": core.last_store() + w.store(2, T1, T0, 0) + poke_number(Region.LOCAL + DATA, 0x600D),
        "exit": box(Mailbox.DONE, core.rng.getrandbits(32) | 1),
        "tohost fails": poke_number(Region.LOCAL + TOHOST, core.rng.getrandbits(32) | 3),
        "illegal": bytes(4),
        "null": poke_number(4 * core.rng.randrange(4), 0),
        "ecall": _ECALL,
        "told": box(Mailbox.TRAP_PC, core.rng.getrandbits(32)) + box(Mailbox.TRAP, core.rng.randrange(32)),
        "foreign rows": li(T0, row_address(core.lanes, 0)) + lw(T1, T0),
        "foreign lanes": poke_number(lane_address(0, core.cfg.sbuf.partition_bytes, core.lanes), 0),
        "psum": poke_number(0x6000_0000, 0),
        "register": li(T0, mailbox + 0x84 + 0x18) + lw(T1, T0),
        "store to argument": poke_number(mailbox, 0),
        "byte of register": li(T0, mailbox + Mailbox.CORE) + w.immediate(0x03, 0, T1, T0, 0),
        "no semaphore": poke_number(mailbox + Mailbox.SEMAPHORE_ADD + 4 * core.cfg.issue.semaphores, 0),
        "behind local memory": li(T0, Region.LOCAL + core.cfg.gpsimd.local_bytes) + lw(T1, T0),
        "wrong push": box(Mailbox.DMA_PUSH, core.rng.choice(copies.WRONG_PUSHES)),
        "bad descriptor": core.push(copies.DISJOINT[0]) + core.push(copies.BAD),
        "refused behind the end": core.push(copies.DISJOINT[0]) + core.push(copies.BAD) + box(Mailbox.DONE, 0),
        "bad handler": li(T0, Region.SHARED) + w.immediate(0x73, 1, 0, T0, _MTVEC) + _ECALL,
        "vectors off": off(),
        "vector behind local memory": behind(Region.LOCAL + core.cfg.gpsimd.local_bytes - 4 * core.rng.randrange(1, 8)),
        "watchdog": b"",
        "asleep": WFI,
    }
    return bad[kind] + w.jump(0, 0)


def _cause(end: str) -> Cause:
    known = {"done": Cause.NONE, "tohost": Cause.NONE, "exit": Cause.GP_EXIT, "tohost fails": Cause.GP_EXIT}
    known |= dict.fromkeys(("wrong push", "bad descriptor", "refused behind the end"), Cause.GP_DMA)
    known |= {"watchdog": Cause.GP_WATCHDOG, "asleep": Cause.GP_WATCHDOG}
    return known.get(end, Cause.GP_TRAP)


def engine_program(
    seed: int, cfg: Config, end: str, statements: int = 12, mask: int | None = None, *, dense: bool = False
) -> EngineProgram:
    """A run on some of the cores. The lowest of them, or another, ends as `end` says; then others wait for nobody.
    dense: most instructions are vectors', which the cores must have."""
    rng = random.Random(seed)
    count = cores(cfg.partitions)
    mask = mask or rng.randrange(1, 1 << count)
    running = [k for k in range(count) if mask >> k & 1]
    victim = rng.choice(running)
    cause = _cause(end)
    makers = {k: Statements(rng, cfg, k, mask, not cause, dense) for k in running}
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
        how = end
        if not mine:
            well = not cause or dense or rng.random() < 0.5 or end == "refused behind the end"
            how = "done" if well else "watchdog"
        code[k] += maker.leave() + _ending(maker, how)
    late = 30_000 if cfg.gpsimd.vectors else 6000
    late += rng.randrange(1 << 11) if end in ("watchdog", "asleep") else rng.choice((0, 1 << rng.randrange(16, 24)))
    if not cause:
        late = rng.choice((0, late))
    if late and (dense or statements > 24) and end not in ("watchdog", "asleep"):
        late = 1 << 23  # the golden machine counts instructions, and these take many cycles
    outside = {maker.outside: (maker.before, maker.set) for maker in makers.values()}
    signals = tuple(maker.signal for maker in makers.values())
    traps = {k: maker.traps for k, maker in makers.items()}
    pushed = {k: copies.descriptors(rng, cfg, k) for k in running}
    return EngineProgram(code, end, cause, late, outside, signals, pushed, traps)
