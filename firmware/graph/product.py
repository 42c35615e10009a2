"""Products whose operands lie in HBM in any order: rows of the result on partitions, columns move.

The left operand comes to SBUF, K on partitions (transposed by the array where it does not lie so), for as many tiles of
rows as a part of PSUM holds; the right one streams past, chunk by chunk, and all results that a chunk touches grow at
once. A constant right operand comes through Weights, ahead of the node that needs it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.graph.turned import PLACES, Turner
from firmware.kernel import Tile, TileView
from firmware.kernels.spans import Span, spans
from firmware.numbers import decode, element_bytes, encode
from rtl.contract.config import Config

__all__ = ["Geometry", "Product", "bias_parts", "chunks"]

SHARE = 6  # the left operand takes at most this part of SBUF
SLOTS = 3  # of chunks that are no constants
ROW_COLUMNS = 512
BIAS_PARTS = 3  # BF16 numbers that make one of FP32

Take = Callable[[Span, Span, TileView], None]
"""Rows, columns, their sums in PSUM."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a product [rows, depth] [depth, columns] is cut. `kept`: the left operand of a group stays in SBUF."""

    depth: list[Span]
    groups: list[list[Span]]
    columns: list[Span]
    kept: bool

    @classmethod
    def of(cls, cfg: Config, rows: int, depth: int, columns: int, kind: str) -> "Geometry":
        size = min(cfg.tensor.rows, cfg.tensor.cols)
        bank = cfg.psum.bank_bytes // 4
        wide = min(columns, bank, cfg.tensor.moving_max)
        half = max(1, (cfg.psum.partition_bytes // cfg.psum.bank_bytes - PLACES) // 2)
        tiles, cuts = spans(rows, size), spans(depth, size)
        together = half * max(1, bank // (wide + wide % 2))
        room = cfg.sbuf.partition_bytes // SHARE
        fits = room // (len(cuts) * -(-size * element_bytes(kind) // 16) * 16)
        together = max(1, min(together, fits))
        groups = [tiles[at : at + together] for at in range(0, len(tiles), together)]
        return cls(cuts, groups, spans(columns, wide), fits >= 1)


def chunks(geometry: Geometry, right: Array, bias: Array | None) -> list[Array]:
    """Chunks of a right operand [depth, columns] in the order in which a product takes them. bias: its parts, [parts,
    columns], whose sum comes on top."""
    return [
        array.part(0, d.start, d.size).part(1, c.start, c.size)
        for _ in geometry.groups
        for c in geometry.columns
        for array, cuts in ((right, geometry.depth), (bias, [Span(0, bias.shape[0])] if bias else []))
        for d in (cuts if array is not None else [])
        if array is not None
    ]


def bias_parts(bias: np.ndarray, kind: str) -> np.ndarray:
    """Bits of rows [parts, columns] in the format of a product whose sum is a vector, to the last bit of FP32."""
    parts: list[np.ndarray] = []
    for _ in range(BIAS_PARTS if kind == "bf16" else 1):
        parts.append(encode(bias, kind))
        bias = bias - decode(parts[-1], kind)
    return np.stack(parts)


class Product:
    """Memory of the products of one node, which all have one shape and one kind."""

    def __init__(self, e: Emitter, geometry: Geometry, kind: str):
        self.e, self.k, self.g, self.kind = e, e.k, geometry, kind
        self.turner = Turner(e, kind)
        self.size = self.turner.size
        cfg, k = e.cfg, e.k
        bank = cfg.psum.bank_bytes
        count = cfg.psum.partition_bytes // bank - PLACES
        width = geometry.columns[0].size
        self.width = width
        banks = [k.psum(f"sums {i}", partitions=self.size, columns=bank // 4, align=bank) for i in range(count)]
        step = width + width % 2
        places = [[b[:, at : at + width] for b in part for at in range(0, bank // 4 - width + 1, step)]
                  for part in (banks[::2], banks[1::2])]  # fmt: skip
        self.halves = places
        tall = max(len(group) for group in geometry.groups)
        names = len(geometry.depth) if geometry.kept else SLOTS
        wide = tall * self.size
        left = k.sbuf("left", partitions=self.size, columns=names * wide, dtype=kind)
        self.left = self._own = [left[:, i * wide : (i + 1) * wide] for i in range(names)]
        self.tiles: dict[str, list[Tile]] = {}
        self._turns: dict[str, int] = {}

    def slot(self, name: str, columns: int, dtype: str) -> Tile:
        """The next of some tiles."""
        if name not in self.tiles:
            self.tiles[name] = [
                self.k.sbuf(f"{name} {i}", partitions=self.size, columns=columns, dtype=dtype) for i in range(SLOTS)
            ]
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        return self.tiles[name][turn % SLOTS]

    def run(self, left: Array, right: Array | None, take: Take, bias: int = 0) -> None:
        """left [rows, depth] times right [depth, columns]; None: what Weights has next. bias: parts of one there."""
        ones = self.slot("ones", self.size, self.kind)[:bias, :] if bias else None
        if ones is not None:
            self.k.vector.memset(ones, 1.0)
        if not self.g.kept:
            self.e.kept.store(left)
        turned = self.e.kept.turned(left, self.kind) if self.g.kept else None
        self.left, made = (self._own, False) if turned is None else turned
        for group in self.g.groups:
            first = group[0].start
            if self.g.kept and not made:
                for tile in group:
                    self._rows(left, tile, tile.start - first)
            for columns in self.g.columns:
                targets = self.halves[self.e.sums % 2]
                self.e.sums += 1
                for number, depth in enumerate(self.g.depth):
                    held = self._left(left, group, number, depth)
                    chunk = self._chunk(right, depth, columns)
                    for tile, target in zip(group, targets, strict=False):
                        at = tile.start - first
                        self.k.tensor.load(held[: depth.size, at : at + tile.size])
                        self.k.tensor.matmul(chunk, target[: tile.size, : columns.size], accumulate=number > 0)
                if ones is not None:
                    chunk = self.e.weights.next()
                    for tile, target in zip(group, targets, strict=False):
                        self.k.tensor.load(ones[:, : tile.size])
                        self.k.tensor.matmul(chunk, target[: tile.size, : columns.size], accumulate=True)
                for tile, target in zip(group, targets, strict=False):
                    take(tile, columns, target[: tile.size, : columns.size])

    def _rows(self, left: Array, tile: Span, at: int) -> None:
        """A tile of rows into its columns of the left operand."""
        whole = left.part(0, tile.start, tile.size)
        if left.strides[0] == 1 and left.strides[1] != 1:
            for number, depth in enumerate(self.g.depth):
                target = self.left[number][: depth.size, at : at + tile.size]
                self._load(target, whole.part(1, depth.start, depth.size).permute((1, 0)), "across")
            return
        wide = ROW_COLUMNS // self.size * self.size or self.size
        wide = min(wide, self.e.cfg.sbuf.partition_bytes // 128 // self.size * self.size) or self.size
        for part in spans(left.shape[1], wide):
            source = whole.part(1, part.start, part.size)
            slot = self.e.kept.view(source)
            if slot is None:
                slot = self.slot("rows", wide, left.dtype)[: tile.size, : part.size]
                self.k.dma(slot, source.view())
            cuts = spans(part.size, self.size)
            targets = [self.left[(part.start + c.start) // self.size][: c.size, at : at + tile.size] for c in cuts]
            self.turner.row(targets, [slot[:, cut.start : cut.stop] for cut in cuts])

    def _left(self, left: Array, group: list[Span], number: int, depth: Span) -> TileView:
        if self.g.kept:
            return self.left[number]
        turn = self._turns.get("left", 0)
        self._turns["left"] = turn + 1
        target = self.left[turn % SLOTS]
        part = left.part(0, group[0].start, group[0].size).part(1, depth.start, depth.size)
        self._operand(target[: depth.size, : group[0].size], part.permute((1, 0)))
        return target

    def _chunk(self, right: Array | None, depth: Span, columns: Span) -> TileView:
        if right is None:
            return self.e.weights.next()
        target = self.slot("right", self.width, self.kind)[: depth.size, : columns.size]
        self._operand(target, right.part(0, depth.start, depth.size).part(1, columns.start, columns.size))
        return target

    def _operand(self, target: TileView, source: Array) -> None:
        """target [depth, columns] = source, which may lie the other way."""
        if source.strides[1] == 1 or source.shape[1] == 1 or source.strides[0] != 1:
            self._load(target, source, "straight")
            return
        for cut in spans(source.shape[1], self.size):
            slot = self.slot(f"turned {source.dtype} rows", self.size, source.dtype)[: cut.size, : source.shape[0]]
            self.k.dma(slot, source.part(1, cut.start, cut.size).permute((1, 0)).view())
            self.turner.turn(target[:, cut.start : cut.stop], slot)

    def _load(self, target: TileView, source: Array, name: str) -> None:
        if source.dtype == self.kind:
            self.k.dma(target, source.view())
            return
        columns = max(self.width, self.size)
        slot = self.slot(f"{name} {source.dtype}", columns, source.dtype)[: target.partitions, : target.elements]
        self.k.dma(slot, source.view())
        self.k.vector.copy(target, slot)
