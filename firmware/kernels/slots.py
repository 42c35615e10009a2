"""Slots of SBUF that chunks of an operand share, when not all of them fit at once."""

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush

from firmware.kernel import Kernel, Tile
from firmware.kernels.tiling import Chunk

__all__ = ["Slots"]

NEVER = 1 << 62  # the step of a use that does not come


class Slots:
    """Slots of one side. What leaves is the chunk that is needed last (or no more), oldest use first.

    `scales`: format of the scales or tags that each slot holds too, in `scale_tiles`, if any, and `of_scales` how many
    columns of them, if not as many.
    """

    def __init__(
        self, k: Kernel, name: str, count: int, columns: int, dtype: str, scales: str = "", of_scales: int = 0
    ):
        rows = k.cfg.tensor.rows
        self.tiles: list[Tile] = [
            k.sbuf(f"{name}{i}", partitions=rows, columns=columns, dtype=dtype) for i in range(count)
        ]
        self.scale_tiles: list[Tile] = [
            k.sbuf(f"{name}_scales{i}", partitions=rows, columns=of_scales or columns, dtype=scales)
            for i in range(count if scales else 0)
        ]
        self.where: dict[Chunk, int] = {}
        self._free = list(range(count))
        self._next_use: dict[Chunk, int] = {}
        self._leaving: list[tuple[int, int, int, Chunk]] = []  # heap; entries may be out of date
        self._pushed = 0

    def used(self, chunk: Chunk, step: int, uses: Sequence[int]) -> None:
        """`chunk` was used at `step`; `uses` are all steps that need it."""
        index = bisect_right(uses, step)
        self._push(chunk, uses[index] if index < len(uses) else NEVER, step)

    def place(self, chunk: Chunk, step: int) -> Tile | None:
        """A slot for `chunk`, needed at `step`, if no chunk needed before then has to leave."""
        if not self._free:
            while self._leaving:
                following, _, _, other = self._leaving[0]
                if other in self.where and self._next_use[other] == -following:
                    break
                heappop(self._leaving)
            if not self._leaving or -self._leaving[0][0] <= step:
                return None
            self._free.append(self.where.pop(heappop(self._leaving)[3]))
        slot = self._free.pop(0)
        self.where[chunk] = slot
        self._push(chunk, step, -1)
        return self.tiles[slot]

    def _push(self, chunk: Chunk, following: int, last: int) -> None:
        self._next_use[chunk] = following
        self._pushed += 1
        heappush(self._leaving, (-following, last, self._pushed, chunk))
