"""Work on every element: sources broadcast and may be strided, pieces in flight overlap."""

from collections.abc import Callable, Sequence
from math import prod

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.graph.pieces import Piece, pieces
from firmware.numbers import element_bytes
from firmware.views import Tile, TileView

__all__ = ["each"]

SETS = 3
COLUMNS = 2048

Work = Callable[[TileView, list[TileView], list[TileView]], None]
"""The result, its sources, and tiles of its own: all with the same partitions and elements."""


def _held(tile: Tile, piece: Piece, strides: tuple[int, ...]) -> tuple[TileView, TileView]:
    """What is loaded of an operand, which does not repeat, and how the engines read it."""
    dims: list[tuple[int, int]] = []
    step = 1
    for n, stride in reversed(list(zip(piece.shape[1:], strides[1:], strict=True))):
        dims.insert(0, (step if stride else 0, n))
        step *= n if stride else 1
    held = tuple((max(s, 1), n if s else 1) for s, n in dims)
    return (
        TileView(tile, tile.start, piece.shape[0], tile.offset, held),
        TileView(tile, tile.start, piece.shape[0], tile.offset, tuple(dims)),
    )


def each(e: Emitter, out: Array, sources: Sequence[Array], work: Work, extra: Sequence[str] = ()) -> None:
    """out = work(sources), element by element. `extra`: formats of tiles that the work has for itself."""
    k = e.k
    arrays = [out, *(s.expand(out.shape) for s in sources)]
    kinds = [*(a.dtype for a in arrays), *extra]
    room = k.sbuf_free() // (SETS * sum(element_bytes(kind) for kind in kinds))
    columns = max(1, min(COLUMNS, (room - 8 * len(kinds)) // 8 * 8, out.elements))
    tall = k.cfg.partitions
    cuts = list(pieces(out.shape, [a.strides for a in arrays], tall, columns))
    columns = max(prod(piece.shape[1:]) for piece in cuts)
    sets = min(SETS, len(cuts))
    tiles = [
        [k.sbuf(f"{i} {j}", partitions=tall, columns=columns, dtype=kind) for j in range(sets)]
        for i, kind in enumerate(kinds)
    ]
    loaded: list[tuple[object, int]] = [(None, -1)] * len(arrays)
    for number, piece in enumerate(cuts):
        views: list[TileView] = []
        for i, array in enumerate(arrays[1:], 1):
            key = (piece.offsets[i], piece.shape, piece.strides[i])
            before, turn = loaded[i]
            turn = turn if before == key else turn + 1
            held, seen = _held(tiles[i][turn % sets], piece, piece.strides[i])
            if before != key:
                shape = (piece.shape[0], *held.shape[1:])
                k.dma(held, array.strided(piece.offsets[i], shape, piece.strides[i]).view())
                loaded[i] = (key, turn)
            views.append(seen)
        full = tuple(range(1, 1 + len(piece.shape)))
        result, *own = (_held(tiles[i][number % sets], piece, full)[0] for i in (0, *range(len(arrays), len(kinds))))
        work(result, views, own)
        k.dma(out.strided(piece.offsets[0], piece.shape, piece.strides[0]).view(), result)
