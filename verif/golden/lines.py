"""Queues and rings of the golden machine: words to be issued, and items in flight."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtl.contract.isa import INSTRUCTION, INSTRUCTION_BYTES, Cause, Queue, Update
from verif.golden.sequencer import Shown

__all__ = ["Failed", "Item", "Line", "Steps", "behind", "words"]


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
    """A queue or a ring: its words in HBM, how many items have been issued, and those in flight. `shows`: what its
    sequencer makes of the words; None: each once, in order."""

    name: str
    words: list[int]
    ordered: bool
    shows: Iterator[Shown] | None = None
    sees_itself: bool = False  # a read waits until all writes before it have been made
    issued: int = 0
    done: int = 0
    halted: bool = False
    flight: list[Item] = field(default_factory=list)
    head: tuple[int, dict[str, int]] = (-1, {})  # the instruction decoded last, by position
    judged: tuple[int, bool] = (-1, False)  # the instruction checked last, and whether it is wrong by itself
    front: tuple[int, Shown | None] = (-1, None)  # what is issued next, by position

    def next_shown(self) -> Shown | None:
        """What is to be issued next; None behind the last. The sequencer goes on when asked for it, not before: all
        that it has shown has then been issued."""
        if self.front[0] != self.issued:
            if self.shows is None:
                self.shows = (Shown(n, word) for n, word in enumerate(self.words))
            self.front = (self.issued, next(self.shows, None))
        return self.front[1]

    def next_word(self) -> int:
        """The same, as a word; there must be one."""
        shown = self.next_shown()
        assert shown is not None
        return shown.word

    @property
    def ended(self) -> bool:
        """Whether all of it has completed."""
        return self.done == self.issued and self.next_shown() is None

    def next_instruction(self) -> dict[str, int]:
        """Fields of the instruction to be issued next; decoded once, asked for often."""
        if self.head[0] != self.issued:
            self.head = (self.issued, INSTRUCTION.unpack(self.next_word()))
        return self.head[1]


def words(hbm: NDArray[np.uint8], base: int, count: int) -> list[int]:
    """`count` instructions or descriptors from byte `base` of HBM."""
    data = hbm[base : base + count * INSTRUCTION_BYTES].tobytes()
    return [int.from_bytes(data[i : i + INSTRUCTION_BYTES], "little") for i in range(0, len(data), INSTRUCTION_BYTES)]


def behind(item: Item, before: list[Item]) -> bool:
    """One of its way has not committed."""
    return any(other.state < 2 and other.way == item.way for other in before)
