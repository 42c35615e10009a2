"""What runs decide, as a part of a kernel: registers, what must stay behind them, what engines hold behind blocks."""

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any

from firmware.arguments import at_once, checked
from firmware.decisions.numbers import Number, Register, parts_of
from firmware.decisions.reckoner import REGISTERS_MAX
from firmware.decisions.regions import Regions
from firmware.decisions.steps import Step, steps_of
from firmware.engines.base import Engine, access, caller, need
from firmware.hazards import Access, Hazards, Known
from firmware.loops.record import Recorder
from firmware.program import Program
from firmware.rings import Rings
from firmware.views import HbmView
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, Queue

__all__ = ["Decisions"]

WORD_BYTES = 4  # of a register


@checked
class Decisions:
    """The part of a kernel that says them."""

    if TYPE_CHECKING:
        cfg: Config
        core: int
        tensor: Any
        vector: Any
        scalar: Any
        gpsimd: Any
        _program: Program
        _recorder: Recorder
        _regions: Regions
        _read: set[str]
        _hazards: Hazards
        _rings: Rings
        _producers: int
        _semaphores: int

        def needs(self, queue: Queue, accesses: tuple[Access, ...]) -> Known: ...

    @at_once()
    def register(self, view: HbmView, maximum: int) -> Number:
        """The number at `view`, an int32 or uint32 element of HBM, as each run finds it: from 0 to `maximum`.

        It stands for how often a loop turns, in conditions of k.if_ and, reckoned with, in both. Any other number ends
        the run with BAD_SIZE. Nothing may be copied to its tensor any more.
        """
        need(not self._recorder.open, "a register is read before the loops that it is for, not in the body of one")
        need(not view.moved, f"a register lies in one place; that of {view.tensor.name} is moved by another")
        need(prod(view.shape) == 1, f"a register is one element; the view of {view.tensor.name} has {prod(view.shape)}")
        need(view.dtype in ("int32", "uint32"), f"a register is int32 or uint32; {view.tensor.name} is {view.dtype}")
        need(view.core == self.core, f"a register is read here, and {view.tensor.name} lies in another core")
        need(0 <= maximum < 1 << 31, f"a register is at most {(1 << 31) - 1}, not {maximum}")
        need(len(self._program.registers) < REGISTERS_MAX, f"a kernel has {REGISTERS_MAX} registers at most")
        index = len(self._program.registers)
        register = Register(index, view.tensor.name, view.offset * WORD_BYTES, maximum, caller(), self)
        self._read.add(access(view, False).memory)
        self._program.registers.append(register)
        self._regions.load(register, self.needs(Queue.SYNC, (access(view, False),)))
        return register

    def _settle_all(self) -> None:
        self._rings.settle_all()

    def _stays(self, accesses: Iterable[Access]) -> None:
        """KernelError if what queues have read as a register would change: they read it at different times."""
        for one in accesses:
            need(
                not (one.writes and one.memory in self._read),
                f"{one.memory} has been read as a register, so it must not change any more",
            )

    def _own(self, numbers: Iterable[Any]) -> None:
        """KernelError unless registers are this kernel's."""
        for register in (r for number in numbers for r in parts_of(number)):
            need(register.owner is self, f"{register!r} is one of another kernel")

    def _counts(self) -> Known:
        """Items of each producer so far."""
        return {producer: self._hazards.count(producer) for producer in self._hazards.implied}

    def _engines(self) -> tuple[Engine, ...]:
        return self.tensor, self.vector, self.scalar, self.gpsimd

    def _keeps(self) -> list[object]:
        """What each engine holds from one instruction to another."""
        return [engine.keeps() for engine in self._engines()]

    def _forgets(self, engine: int, before: list[tuple[Any, ...]]) -> None:
        self._engines()[engine].forgets(before)

    def reserve_own_rings(self) -> None:
        """For rings: the last semaphores count what queues copy directly."""
        need(
            self._rings.direct or self._producers + self._semaphores + len(COPY_QUEUES) <= self.cfg.issue.semaphores,
            f"direct copies need a semaphore for each of {len(COPY_QUEUES)} queues, and issue.semaphores = "
            f"{self.cfg.issue.semaphores} leaves less",
        )
        self._rings.direct = True

    def may_be_left_out(self) -> bool:
        """For rings and engines: whether what is said now is in a block that a run may leave out."""
        return self._regions.open

    def _steps(self) -> dict[Queue, list[Step]]:
        """Of each queue whose runs decide what it executes."""
        found: dict[Queue, list[Step]] = {}
        for queue, instructions in self._program.queues.items():
            own = self._rings.own_producer(queue) if queue in COPY_QUEUES else None
            moves = [number for i in instructions for _, number in i.moves]
            found[queue] = steps_of(queue, own, len(instructions), self._regions.events, self._hazards, moves)
        return found
