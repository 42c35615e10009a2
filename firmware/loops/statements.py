"""Loops as statements of the kernel language."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import getitem
from typing import TYPE_CHECKING, Any, TypeVar, cast

from firmware.arguments import at_once, checked
from firmware.decisions.numbers import Number
from firmware.engines.base import caller, need
from firmware.loops.lazy import LazyView, has_lazy
from firmware.loops.record import Recorder

__all__ = ["Loops"]

T = TypeVar("T")


@checked
class Loops:
    """The part of a kernel that says them."""

    if TYPE_CHECKING:
        _recorder: Recorder

    @at_once()
    def loop(self, turns: int | Number) -> AbstractContextManager[int]:
        """`with k.loop(n) as i:` executes its block n times, with i from 0 to n - 1; n may be a register.

        Python runs the block once: i has no value there, and stands in indices and arguments for what it will be.
        A type checker takes it for the int that it stands for.
        """
        if isinstance(turns, Number):
            need(turns.high >= 0, f"a loop has at least 0 turns, and {turns!r} is never that many")
        else:
            need(turns >= 0, f"a loop has at least 0 turns, not {turns}")
        return cast(AbstractContextManager[int], self._recorder.loop(turns, caller()))

    @at_once(lazy=True)
    def if_(self, condition: Any) -> AbstractContextManager[None]:
        """`with k.if_(i < 3):` executes its block where that holds; with a register in it, in runs in which it does."""
        return self._recorder.block(condition, caller())

    @at_once(lazy=True)
    def pick(self, several: Sequence[T], index: Any) -> T:
        """several[index], for lists of tiles or views: Python's own lists cannot have a loop's index in brackets."""
        if has_lazy(index):
            return cast(T, LazyView(getitem, list(several), index))
        need(0 <= index < len(several), f"there are {len(several)} to pick from, and no number {index}")
        return several[index]

    @at_once()
    def turns(self, items: Iterable[T]) -> Iterator[T]:
        """`for x in k.turns(items):` is Python's loop over them, whose turns the program remembers, to be rolled up."""
        return self._turns_of(items)

    def _turns_of(self, items: Iterable[T]) -> Iterator[T]:
        note, turns = self._recorder.marks(), self._recorder.turns
        note(turns.begin)
        try:
            for one in items:
                note(turns.turn)
                yield one
        finally:
            note(turns.end)
