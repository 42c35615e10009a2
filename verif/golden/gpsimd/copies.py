"""Copies that cores push: descriptors in local memory, and which of them have completed."""

from collections import Counter
from collections.abc import Callable

from rtl.contract.gpsimd import COPIES_MAX, Region
from rtl.contract.isa import INSTRUCTION_BYTES, Cause
from verif.golden.gpsimd.ended import Ended
from verif.golden.lines import Item, Line

__all__ = ["CoreCopies"]

Start = Callable[[int], tuple[Cause, int, Item | None]]
"""Judges a descriptor and makes an item of it; see verif.golden.copies.Copies."""


class CoreCopies:
    """The ring of all cores: `line` has what is under way, for others to progress. `start`: what a descriptor does."""

    def __init__(self, start: Start):
        self.line = Line("ring of the cores", [], False)
        self._start = start
        self._pushed: Counter[int] = Counter()
        self._done: Counter[int] = Counter()

    def begin(self) -> None:
        """A run begins; none is under way."""
        self._pushed.clear()
        self._done.clear()

    def done(self, core: int) -> int:
        """DMA_DONE."""
        return self._done[core]

    def free(self, core: int) -> int:
        """DMA_FREE."""
        return max(0, COPIES_MAX - self._pushed[core] + self._done[core])

    def push(self, core: int, local: bytearray, address: int) -> None:
        """A store of `address` to DMA_PUSH. Errors: Ended, of a descriptor that is refused."""
        offset = address - (Region.LOCAL_TOO if address >= Region.LOCAL_TOO else Region.LOCAL)
        if address % INSTRUCTION_BYTES:
            raise Ended.by_copy(Cause.MISALIGNED)
        if not 0 <= offset < len(local):
            raise Ended.by_copy(Cause.OUT_OF_RANGE)
        word = int.from_bytes(local[offset : offset + INSTRUCTION_BYTES], "little")
        cause, _, item = self._start(word)
        if item is None:
            raise Ended.by_copy(cause)
        others = item.ended

        def ended() -> None:
            if others is not None:
                others()
            self._done.update((core,))

        item.word, item.ended = word, ended
        self._pushed[core] += 1
        self.line.flight.append(item)
