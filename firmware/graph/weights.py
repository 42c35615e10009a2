"""Chunks of constant operands, K-major, in the order in which products need them: loads run ahead over all nodes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firmware.graph.arrays import Array
from firmware.numbers import element_bytes
from firmware.views import Tile, TileView

if TYPE_CHECKING:
    from firmware.graph.emitter import Emitter

__all__ = ["Chunk", "Weights"]

SHARE = 2  # slots take at most this part of SBUF
SLOTS = 64
SLOT_COLUMNS = 512  # BF16
RING = 2


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a K tile, and columns, of a constant."""

    array: Array

    @property
    def bytes(self) -> int:
        """Of a partition."""
        return self.array.shape[1] * element_bytes(self.array.dtype)


class Weights:
    """`plan` all chunks first, in order; `next` then gives one after the other."""

    def __init__(self, emitter: "Emitter"):
        self._emitter = emitter
        self._chunks: list[Chunk] = []
        self._tiles: list[Tile] = []
        self._loaded = self._taken = 0

    @property
    def columns(self) -> int:
        """BF16 numbers of a partition that a slot takes."""
        return min(SLOT_COLUMNS, self._emitter.cfg.tensor.moving_max)

    def plan(self, chunks: list[Array]) -> None:
        """More chunks [rows, columns], behind those before."""
        self._chunks += map(Chunk, chunks)

    def start(self) -> None:
        """Take the slots and let the first loads go."""
        if not self._chunks:
            return
        k = self._emitter.k
        size = max(chunk.bytes for chunk in self._chunks)
        count = max(2, min(SLOTS, len(self._chunks), k.sbuf_free() // SHARE // size))
        rows = k.cfg.tensor.rows
        self._tiles = [
            k.sbuf(f"weights {i}", partitions=rows, columns=-(-size // 4) * 4, dtype="uint8") for i in range(count)
        ]
        self._ahead()

    def next(self) -> TileView:
        """The next chunk [rows, columns]. It stays until as many more have come as there are slots, less one."""
        self._ahead()
        view = self._view(self._taken)
        self._taken += 1
        return view

    def _view(self, number: int) -> TileView:
        array = self._chunks[number].array
        tile = self._tiles[number % len(self._tiles)].reinterpret(array.dtype)
        return tile[: array.shape[0], : array.shape[1]]

    def _ahead(self) -> None:
        """Loads as far as slots allow: those of chunks before the one that was given last are free."""
        k = self._emitter.k
        while self._loaded < min(len(self._chunks), self._taken + len(self._tiles) - 1):
            k.dma(self._view(self._loaded), self._chunks[self._loaded].array.view(), ring=self._ring)
            self._loaded += 1

    @property
    def _ring(self) -> int:
        return RING if self._emitter.cfg.dma.rings > RING else 0
