"""Chunks of constant operands, K-major, in the order in which products need them: loads run ahead over all nodes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firmware.engines.base import caller, said_at
from firmware.graph.arrays import Array
from firmware.numbers import element_bytes
from firmware.views import Tile, TileView
from rtl.contract.isa import Queue

if TYPE_CHECKING:
    from firmware.graph.emitter import Emitter

__all__ = ["Chunk", "Weights"]

SHARE = 2  # slots take at most this part of SBUF
SLOTS = 64
RING = 2  # of their own, if there are as many
LAG = 2  # slots that are not loaded anew yet: of the chunk in use and of those just before


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a K tile, and columns, of a constant. `where`: the user's line and name of the node that needs it."""

    array: Array
    where: str

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

    def plan(self, chunks: list[Array]) -> None:
        """More chunks [rows, columns] of the node at hand, behind those before."""
        where = caller()
        self._chunks += [Chunk(chunk, where) for chunk in chunks]

    def start(self) -> None:
        """Take the slots and let the first loads go."""
        if not self._chunks:
            return
        k = self._emitter.k
        size = max(chunk.bytes for chunk in self._chunks)
        count = max(LAG + 1, min(SLOTS, len(self._chunks), k.sbuf_free() // SHARE // size))
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
        """Loads as far as slots allow. The array, in whose queue they stand, has long left the slots that they take."""
        k = self._emitter.k
        while self._loaded < min(len(self._chunks), self._taken + len(self._tiles) - LAG):
            own = self._emitter.cfg.dma.rings > RING
            ring, queue = (RING, Queue.TENSOR) if own else (None, None)
            chunk = self._chunks[self._loaded]
            with said_at(chunk.where):  # whichever node is at work
                k.dma(self._view(self._loaded), chunk.array.view(), ring=ring, queue=queue)
            self._loaded += 1
