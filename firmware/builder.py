"""What engines and rings may ask of the program under construction. Kernel is one; they know no more of it."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from firmware.hazards import Access, Known
from firmware.program import Completion, HbmTensor, Instruction, Semaphore, SemaphoreWait
from firmware.views import HbmView, Tile, TileView
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import Config
from rtl.contract.isa import Opcode, Queue

__all__ = ["Builder"]


@runtime_checkable  # arguments are checked where a program is written (firmware/arguments.py)
class Builder(Protocol):
    """A program under construction, for `cfg` and the core with number `core`. Errors: KernelError, one sentence."""

    cfg: Config
    core: int

    def issue(
        self,
        queue: Queue,
        opcode: Opcode,
        *,
        accesses: tuple[Access, ...] = (),
        needs: Known | None = None,
        more: tuple[SemaphoreWait, ...] = (),
        source: str = "",
        **fields: Any,
    ) -> None:
        """Append an instruction with its waits: for `needs`, or for what its accesses need, and `more` of them."""
        ...

    def needs(self, queue: Queue, accesses: tuple[Access, ...]) -> Known:
        """What must be complete before an instruction with these accesses."""
        ...

    def follows(self, queue: Queue, needs: Known, producer: int, count: int) -> bool:
        """Whether an instruction of `queue` with these needs starts after item `count` of a producer."""
        ...

    def items(self, queue: Queue) -> int:
        """Items of a queue so far."""
        ...

    def instructions(self, queue: Queue) -> list[Instruction]:
        """What a queue has so far."""
        ...

    def wait(self, queue: Queue, semaphore: Semaphore, value: int, *arrives: TileView | HbmView) -> None:
        """The next instruction of `queue` waits until `semaphore` is at least `value`."""
        ...

    def barrier(self, queue: Queue) -> None:
        """The next instruction of `queue` waits for everything said so far."""
        ...

    def pattern(self, view: TileView, what: str) -> AccessPattern:
        """The pattern of an operand, called `what` in errors."""
        ...

    def free_pattern(self, view: TileView, what: str) -> AccessPattern:
        """The same for an operand whose partitions have a rule of their own."""
        ...

    def reserve_own_rings(self) -> None:
        """The last semaphores count what queues copy directly."""
        ...

    def may_be_left_out(self) -> bool:
        """Whether what is said now is in a block that a run may leave out."""
        ...

    def columns_sent(self, count: int) -> None:
        """Count moving columns of the array, those of row groups at once as one."""
        ...

    def add_tensor(self, tensor: HbmTensor) -> None:
        """A tensor under its name, unless there is one."""
        ...

    def hbm(self, name: str, shape: tuple[int, ...], dtype: str, data: np.ndarray | None = None) -> HbmView:
        """A tensor in HBM: an input with the bits `data`, else an output."""
        ...

    def sbuf(self, name: str, *, partitions: int, columns: int, dtype: str, start: int = 0, align: int = 16) -> Tile:
        """Allocate `columns` elements on each of `partitions` partitions of SBUF."""
        ...

    def dma(
        self,
        dst: TileView | HbmView,
        src: TileView | HbmView,
        *,
        ring: int | None = None,
        queue: Queue | None = None,
        class_: int = 0,
        after: Sequence[Completion] = (),
        signal: Semaphore | None = None,
    ) -> Completion:
        """Copy `src` to `dst`."""
        ...
