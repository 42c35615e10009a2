"""Rows of an array on partitions, in pieces of columns if a row does not fit."""

from math import prod

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.kernel import Tile, TileView
from firmware.kernels.spans import Span, spans
from firmware.numbers import element_bytes

__all__ = ["Rows", "as_rows"]

SETS = 2


def as_rows(array: Array) -> Array:
    """[rows, columns] of an array whose elements lie one behind the other."""
    wide = array.shape[-1] if array.shape else 1
    return array.reshape((prod(array.shape) // wide, wide))


class Rows:
    """Tiles for pieces of rows. `kinds`: formats of the tiles that a piece needs, by name."""

    def __init__(self, e: Emitter, shape: tuple[int, int], kinds: dict[str, str], reserve: int = 0):
        """reserve: bytes of a partition that others need."""
        self.e = e
        self.k = k = e.k
        self.tiles = spans(shape[0], k.cfg.partitions)
        self.tall = min(shape[0], k.cfg.partitions)
        self.sets = min(SETS, len(self.tiles)) if len(self.tiles) > 1 else 1
        size = sum(element_bytes(kind) for kind in kinds.values())
        room = (k.sbuf_free() - reserve - 16 * SETS * (len(kinds) + 1)) // size
        sets = self.sets if shape[1] * self.sets <= room else SETS
        self.cuts = spans(shape[1], max(8, min(shape[1], room // sets)))
        self.sets = sets
        wide = self.cuts[0].size
        self._tiles = {
            name: [k.sbuf(f"{name} {i}", partitions=self.tall, columns=wide, dtype=kind) for i in range(sets)]
            for name, kind in kinds.items()
        }
        self._turn = 0
        self._columns: dict[str, list[Tile]] = {}

    @property
    def whole(self) -> bool:
        """Whether a row is one piece."""
        return len(self.cuts) == 1

    def turn(self) -> None:
        """The next set of tiles."""
        self._turn += 1

    def tile(self, name: str, rows: Span, cut: Span) -> TileView:
        """A tile of the set whose turn it is."""
        return self._tiles[name][self._turn % self.sets][: rows.size, : cut.size]

    def columns(self, name: str, rows: Span, count: int = 1) -> TileView:
        """FP32 numbers of each row; two sets that take turns with the tiles of rows."""
        if name not in self._columns:
            self._columns[name] = [
                self.k.sbuf(f"{name} {i}", partitions=self.tall, columns=count, dtype="fp32") for i in range(SETS)
            ]
        return self._columns[name][rows.start // self.k.cfg.partitions % SETS][: rows.size, :]

    def load(self, name: str, source: Array, rows: Span, cut: Span) -> TileView:
        """A piece of the source, on its way if it is not there."""
        part = source.part(0, rows.start, rows.size).part(1, cut.start, cut.size)
        kept = self.e.kept.view(part)
        if kept is not None:
            return kept
        view = self.tile(name, rows, cut)
        self.k.dma(view, part.view())
        return view

    def target(self, name: str, array: Array, rows: Span, cut: Span) -> TileView:
        """Where a piece of the result is made."""
        kept = self.e.kept.view(array.part(0, rows.start, rows.size).part(1, cut.start, cut.size))
        return self.tile(name, rows, cut) if kept is None else kept

    def store(self, target: Array, rows: Span, cut: Span, view: TileView) -> None:
        """A piece of the result on its way."""
        part = target.part(0, rows.start, rows.size).part(1, cut.start, cut.size)
        if self.e.kept.view(part) is None:
            self.k.dma(part.view(), view)
