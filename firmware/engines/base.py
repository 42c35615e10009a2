"""What all engines of the kernel language share: checks, accesses, the kernel's line, NOP and barrier."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from firmware.arguments import at_once, checked
from firmware.builder import Builder
from firmware.engines.absent import absent
from firmware.hazards import Access
from firmware.program import Semaphore
from firmware.views import CopyView, HbmView, KernelError, TileView
from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import core_place

__all__ = ["Engine", "access", "caller", "name_of", "need", "said_at"]

_FIRMWARE = Path(__file__).resolve().parents[1]
_LANGUAGE = {
    str(_FIRMWARE / name) for name in ("arguments.py", "kernel.py", "views.py", "hazards.py", "copies.py", "rings.py")
}
_FOLDERS = (str(_FIRMWARE / "engines"), str(_FIRMWARE / "loops"))


_SAID: list[str] = []


@contextmanager
def said_at(place: str) -> Iterator[None]:
    """Items in here belong to the line `place` of the user's kernel, for front ends that emit them later."""
    _SAID.append(place)
    try:
        yield
    finally:
        _SAID.pop()


def caller() -> str:
    """file:line of the statement of the kernel that is being executed."""
    if _SAID:
        return _SAID[-1]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_language(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}"


@cache
def _is_language(filename: str) -> bool:
    return filename in _LANGUAGE or filename.startswith(_FOLDERS)


@cache
def _short(filename: str) -> str:
    path, root = Path(filename), _FIRMWARE.parent
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name


def need(ok: bool, sentence: str) -> None:
    """KernelError with this sentence unless `ok`."""
    if not ok:
        raise KernelError(sentence)


def name_of(view: CopyView) -> str:
    """Name of the tile or tensor."""
    return view.tensor.name if isinstance(view, HbmView) else view.tile.name


def access(view: CopyView, writes: bool) -> Access:
    """What a view means to the analysis of hazards."""
    what = f"tensor {view.tensor.name}" if isinstance(view, HbmView) else f"tile {view.tile.name}"
    if not isinstance(view, HbmView) and view.tile.memory:  # else tiles never overlap
        what = view.tile.memory
    return Access(f"{what} of core {core_place(view.core)}", view.box, writes, view.core)


@checked
class Engine:
    """An engine's queue."""

    queue: Queue

    def __init__(self, kernel: Builder):
        self._k = kernel

    def nop(self) -> None:
        """An instruction that does nothing."""
        self._k.issue(self.queue, Opcode.NOP, source=caller())

    def wait(self, semaphore: Semaphore, value: int, *arrives: TileView | HbmView) -> None:
        """The next instruction waits until `semaphore` is at least `value`: see Kernel.wait."""
        self._k.wait(self.queue, semaphore, value, *arrives)

    def barrier(self) -> None:
        """The next instruction waits for everything that the kernel has said so far."""
        self._k.barrier(self.queue)

    @at_once()
    def keeps(self) -> tuple[Any, ...]:
        """For the kernel: what the engine holds from one instruction to another, if its statements go by that."""
        return ()

    @at_once()
    def forgets(self, before: Sequence[tuple[Any, ...]]) -> None:
        """For the kernel: a run may have left out what changed that, so it may be any of `before` as well."""

    if not TYPE_CHECKING:  # a type checker finds such names by itself

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise absent(type(self), self.queue.name.lower(), name)
