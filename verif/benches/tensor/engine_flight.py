"""What the tensor engine has taken and not retired: what its status must say of it, and what may happen meanwhile."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.isa import Cause, Opcode
from verif.benches.tensor.engine_steps import GROUPS, Step
from verif.golden.memory import Memory, offsets

__all__ = ["Flight"]


class Flight:
    """Instructions of a program, which are `taken` and `done` in order; of `columns` of matmuls `beats` have entered.

    `causes`: of those taken that write a bank of PSUM which one that leaves elsewhere wrote then and had not retired.
    As soon as an instruction is done, what no later one reads of its operands in `sbuf` becomes something else.
    """

    def __init__(self, cfg: Any, sbuf: Memory, program: list[Step]):
        self.cfg = cfg
        self.sbuf = sbuf
        self.program = program
        self.taken = self.done = self.beats = self.columns = 0
        self.causes: dict[int, int] = {}
        self._earliest: list[int] = []  # cycles
        self._last_beat = [[0] * GROUPS, [0] * GROUPS]  # stationary, moving
        self._last_reader: NDArray[np.int32] = np.full(sbuf.bytes.shape, -1, np.int32)
        for number, step in enumerate(program):
            for pattern, size in step.reads():
                first, count = pattern.partition_start, pattern.partition_count
                self._last_reader[first : first + count, _bytes(pattern, size)] = number

    def take(self, now: int) -> None:
        """The next instruction of the program is accepted in cycle `now`."""
        step = self.program[self.taken]
        self._earliest.append(self._sent(step, now))
        mine = self.banks(step)
        others = [s for s in self.program[self.done : self.taken] if self._exit(s) != self._exit(step)]
        if any(mine & self.banks(s) for s in others):
            self.causes[self.taken] = Cause.BANK_CONFLICT
        self.taken += 1
        self.columns += step.src.elements * (step.opcode == Opcode.MULTIPLY_MOVING)

    def end(self, now: int) -> None:
        """The oldest is done in cycle `now`, after what is accepted in it."""
        earliest = self._earliest[self.done]
        assert now > earliest, f"instruction {self.done} is done in cycle {now}, its beats take until {earliest}"
        self.sbuf.bytes[self._last_reader == self.done] ^= 0xFF
        self.done += 1

    def check(self, now: int, *, holds: int, draining: int) -> None:
        """Status of a cycle against what was taken and done before it."""
        flying = self.program[self.done : self.taken]
        told = f"cycle {now}: holds {holds}, draining {draining}"
        assert (holds | draining) == bool(flying), f"{told}, and {len(flying)} instructions have not retired"
        if GROUPS == 1 and all(s.opcode == Opcode.MULTIPLY_MOVING for s in flying):
            assert holds == (self.beats < self.columns), f"{told}, and {self.beats} of {self.columns} columns are sent"

    def _sent(self, step: Step, now: int) -> int:
        """The first cycle in which its last beat may enter: each row group takes one a cycle of either side."""
        each = GROUPS >> step.tile
        first = step.place(self.cfg.tensor.rows) * each
        groups, side = range(first, first + each), step.opcode == Opcode.MULTIPLY_MOVING
        beats = step.src.elements + step.turns * (self.cfg.tensor.rows >> step.tile)
        last = max(now, *(self._last_beat[side][g] for g in groups)) + beats
        for g in groups:
            self._last_beat[side][g] = last
        return last

    def banks(self, step: Step) -> set[int]:
        """Of its destination, all from that of the lowest element to that of the highest."""
        if step.dst is None:
            return set()
        banks = offsets(step.dst) // self.cfg.psum.bank_bytes
        return set(range(int(banks.min()), int(banks.max()) + 1))

    def _exit(self, step: Step) -> int:
        return step.exit(self.cfg.tensor.rows) + GROUPS * step.turns


def _bytes(pattern: AccessPattern, size: int) -> NDArray[np.int64]:
    """Of a partition, in elements of `size` bytes."""
    index = np.zeros(1, dtype=np.int64)
    for step, count in pattern.dims:
        index = (np.arange(count, dtype=np.int64)[:, None] * step + index).reshape(-1)
    return (pattern.offset + size * index[:, None] + np.arange(size)).reshape(-1)
