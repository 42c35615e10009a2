"""Queues and rings of the golden machine: words to be issued, and items in flight."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtl.contract.isa import INSTRUCTION, INSTRUCTION_BYTES, Cause, Queue, Update

__all__ = ["Failed", "Item", "Line", "Steps", "words"]


@dataclass(frozen=True, slots=True)
class Failed:
    """What an instruction reads if it fails: why its queue halts when it completes, and the address of the fault."""

    cause: Cause
    address: int = 0


class Steps(Protocol):
    """The execution of an instruction that takes more than one event; then its `read` gives what came of it."""

    @property
    def ready(self) -> bool:
        """Whether it can go on by itself."""
        ...

    def advance(self) -> bool:
        """A slice of it; True when it is over."""
        ...

    def expire(self) -> None:
        """Nothing else can happen any more."""
        ...


@dataclass(slots=True)
class Item:
    """An issued instruction or descriptor: `read` returns what `commit` then stores. Its `steps` come before."""

    read: Callable[[], Any]
    commit: Callable[[Any], None]
    signal: tuple[int, Update, int] | None
    state: int = 0  # 0 issued, 1 read, 2 committed
    value: Any = None
    failed: Failed | None = None  # when it completes
    steps: Steps | None = None
    way: tuple[int, ...] | None = None  # which writes of its line come in their order: these to one memory of a core
    follows: bool = False  # it commits behind all of its way before it in its line
    ended: Callable[[], None] | None = None  # called when it has completed
    word: int = 0
    queue: Queue | None = None  # that it came from; of a descriptor none
    sequence: int = 0  # its place there


@dataclass(slots=True)
class Line:
    """A queue or a ring: its words, how many have been issued, and those in flight."""

    name: str
    words: list[int]
    ordered: bool
    sees_itself: bool = False  # a read waits until all writes before it have been made
    issued: int = 0
    done: int = 0
    halted: bool = False
    flight: list[Item] = field(default_factory=list)
    head: tuple[int, dict[str, int]] = (-1, {})  # the instruction decoded last, by position
    judged: tuple[int, bool] = (-1, False)  # the instruction checked last, and whether it is wrong by itself

    def next_instruction(self) -> dict[str, int]:
        """Fields of the instruction to be issued next; decoded once, asked for often."""
        if self.head[0] != self.issued:
            self.head = (self.issued, INSTRUCTION.unpack(self.words[self.issued]))
        return self.head[1]


def words(hbm: NDArray[np.uint8], base: int, count: int) -> list[int]:
    """`count` instructions or descriptors from byte `base` of HBM."""
    data = hbm[base : base + count * INSTRUCTION_BYTES].tobytes()
    return [int.from_bytes(data[i : i + INSTRUCTION_BYTES], "little") for i in range(0, len(data), INSTRUCTION_BYTES)]
