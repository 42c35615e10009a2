"""What the rules look at: a run's counters, program and configuration, and its critical path if there is a trace."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from firmware.program import Descriptor, Instruction, Program
from rtl.contract import rates
from rtl.contract.config import Config, ConfigError
from rtl.contract.config_changes import changed, merge, parsed
from rtl.contract.isa import INSTRUCTION_BYTES, Opcode, Queue
from rtl.contract.memmap import Space
from sim.advice.bounding import Bounding, bounding, bounds
from sim.run.result import RunResult
from sim.trace.critical import Step, critical_path
from sim.trace.path_states import path_states, rewritten
from sim.trace.recorded import NEVER, Recorded

__all__ = ["Facts", "Work", "facts_of"]


@dataclass(frozen=True, slots=True)
class Work:
    """What an opcode asks of an engine: its cycles at best, elements, and whether PSUM is among its operands."""

    opcode: Opcode
    cycles: Fraction
    elements: int
    psum: bool

    @property
    def rate(self) -> float:
        """Elements a lane an engine cycle."""
        return float(self.elements / self.cycles)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """`path`: cycles of the critical path by engine and state, None without a trace; `path_work`: those by engine and
    opcode, or what the kernel calls it (Instruction.part); `waited_tiles`: those that
    follow a tile's last read by somebody else (sim.trace.path_states)."""

    cfg: Config
    program: Program
    result: RunResult
    limits: Mapping[str, int]
    bound: Bounding
    path: Mapping[tuple[str, str], int] | None = None
    path_work: Mapping[tuple[str, str], int] | None = None
    path_copies: Mapping[int, int] = field(default_factory=dict)  # cycles of copies, by their bytes
    waited_tiles: Mapping[str, int] | None = None
    hbm_ways: np.ndarray  # [times, 2]: bytes read and written, of each 256 cycles or of the run

    def share(self, engine: str, *states: str) -> float:
        """Share of the run's cycles in which everything waited for an engine in one of these states: cycles of the
        critical path; without a trace those of the busiest engine's counters, and none of the others'."""
        if self.path is not None:
            cycles = sum(self.path.get((engine, state), 0) for state in states)
        elif engine == self.bound.busiest:
            found = self.result.engines[engine]
            counts = {"busy": found.busy, "idle": found.idle, **found.stall}
            cycles = sum(counts.get(state, 0) for state in states)
        else:
            cycles = 0
        return cycles / max(1, self.result.cycles)

    def work_share(self, engine: str, *names: str) -> float:
        """Share of the path in which an engine was at work for these opcodes or parts; without a trace that of the
        beats of its multiplications, if it is the busiest."""
        if self.path_work is not None:
            cycles = sum(self.path_work.get((engine, name), 0) for name in names)
        elif engine == self.bound.busiest:
            cycles = sum(i.dst.elements for i in self.instructions(engine) if i.part in names and i.dst)
        else:
            cycles = 0
        return min(1.0, cycles / max(1, self.result.cycles))

    def busy(self, engine: str) -> float:
        """Share of the run's cycles in which an engine is busy."""
        return self.result.engines[engine].busy / max(1, self.result.cycles)

    def value(self, key: str) -> Any:
        """A field of the configuration by `section.name`."""
        section, _, name = key.partition(".")
        return getattr(getattr(self.cfg, section), name)

    def changed(self, settings: Mapping[str, int]) -> Config | None:
        """The configuration with these fields, None if it is refused."""
        changes: dict[str, Any] = {}
        for key, value in settings.items():
            merge(changes, parsed(f"{key}={value}"))
        try:
            return changed(self.cfg, changes, "advice")
        except ConfigError:
            return None

    def doubled(self, key: str) -> dict[str, int]:
        """The setting that doubles a field, none if that is refused."""
        settings = {key: 2 * self.value(key)}
        return settings if self.changed(settings) else {}

    @property
    def descriptors(self) -> Iterator[Descriptor]:
        """Of all rings."""
        return self.program.copies()

    def instructions(self, engine: str) -> list[Instruction]:
        """Those of an engine's queue."""
        return self.program.queues.get(Queue[engine.upper()], [])

    @cached_property
    def hbm_bytes(self) -> int:
        """Read and written, instructions and descriptors too."""
        return self.result.hbm_bytes_read + self.result.hbm_bytes_written

    @cached_property
    def fetched_share(self) -> float:
        """Share of HBM's bytes that are words of queues and rings; what programs on GPSIMD cores copy is none."""
        if any(i.opcode == Opcode.GP_RUN for i in self.instructions("gpsimd")):
            words = [*self.program.queues.values(), *self.program.rings]
            fetched = INSTRUCTION_BYTES * sum(len(some) for some in words)
        else:
            fetched = self.result.hbm_bytes_read - self.program.hbm_read_bytes
        return max(0, fetched) / self.hbm_bytes if self.hbm_bytes else 0.0

    @cached_property
    def heaviest(self) -> Work | None:
        """The vector engine's opcode with most cycles."""
        work: dict[Opcode, Work] = {}
        for i in self.instructions("vector"):
            cycles = rates.cycles(i.opcode, self.cfg, i.src0, i.src1, i.dst)
            psum = any(o is not None and o.space == Space.PSUM for o in (i.src0, i.src1, i.dst))
            was = work.get(i.opcode, Work(i.opcode, Fraction(0), 0, False))
            work[i.opcode] = Work(
                i.opcode, was.cycles + cycles, was.elements + rates.elements(i.src0, i.dst), was.psum or psum
            )
        most = max(work.values(), key=lambda w: w.cycles, default=None)
        return most if most and most.cycles else None


def _work(program: Program, recorded: Recorded, steps: list[Step]) -> dict[tuple[str, str], int]:
    """Cycles of the path in which an instruction runs, by engine and what it does."""
    found: Counter[tuple[str, str]] = Counter()
    for step in steps:
        if step.cause == "runs":
            queue = Queue(int(recorded.item_queue[step.item]))
            i = program.queues[queue][int(recorded.item_sequence[step.item])]
            found[queue.name.lower(), i.part or i.opcode.name.lower()] += step.end - step.begin
    return found


def facts_of(cfg: Config, program: Program, result: RunResult, recorded: Recorded | None = None) -> Facts:
    """The facts of a run."""
    ways = result.hbm_bytes_read, result.hbm_bytes_written
    limits = bounds(cfg, program, sum(ways), max(ways))
    path = work = tiles = None
    copies: Counter[int] = Counter()
    by_time = np.array([ways], np.int64)
    if recorded is not None and recorded.coarse_from == recorded.cycles:  # of a part nothing is concluded
        steps = critical_path(recorded)
        path = path_states(recorded, steps, cfg.issue.queue_depth)
        tiles = rewritten(recorded, steps)
        work = _work(program, recorded, steps)
        for step in steps:
            if step.copy != NEVER:
                copies[int(recorded.copy_bytes[step.copy])] += step.end - step.begin
        by_time = recorded.beats.astype(np.int64) * cfg.hbm.port_bytes
    bound = bounding(result, limits)
    return Facts(
        cfg=cfg,
        program=program,
        result=result,
        limits=limits,
        bound=bound,
        path=path,
        path_work=work,
        path_copies=copies,
        waited_tiles=tiles,
        hbm_ways=by_time,
    )
