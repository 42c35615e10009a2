"""What a query does not see: the least number in place of its scores."""

import numpy as np

from firmware.kernel import Kernel, Tile, TileView
from firmware.kernels.attention_blocks import Block, Sight

__all__ = ["Hidden"]

MINUS_INFINITY = float("-inf")


class Hidden:
    """Columns that say where the keys begin and end that a row sees, and the instructions that compare with them."""

    def __init__(self, k: Kernel, size: int, sight: Sight):
        """size: rows of a tile of queries."""
        self.k, self.size, self.sight = k, size, sight
        if sight.causal:
            self.rows = self._row_numbers("row", 0)
        if sight.window is not None:
            self.least = self._row_numbers("least", sight.window)

    def _row_numbers(self, name: str, less: int) -> Tile:
        """A column that holds r - less in row r."""
        tile = self.k.sbuf(f"{name}0", partitions=self.size, columns=1, dtype="fp32")
        numbers = (np.arange(self.size) - less).astype(np.float32).view(np.uint32)[:, None]
        self.k.dma(tile[:, :], self.k.hbm(f"{name}_numbers", (self.size, 1), "fp32", numbers)[:, :])
        return tile

    def hide(self, b: Block, scores: TileView) -> None:
        """The least number in place of keys that a query does not see, one of row r at the key `place` + r."""
        early, late = b.hidden
        place = self.sight.place(b.q.start)
        rows = slice(0, b.q.size)
        if late:
            first = b.keys.size - late
            start = b.keys.start + first - place
            hidden = scores[:, first:]
            self.k.vector.range_select(hidden, hidden, "le", self.rows[rows, :], "ge", MINUS_INFINITY, start=start)
        if early:
            hidden = scores[:, :early]
            start = b.keys.start - place
            self.k.vector.range_select(hidden, hidden, "gt", self.least[rows, :], "ge", MINUS_INFINITY, start=start)
