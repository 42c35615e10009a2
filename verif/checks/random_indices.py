"""Statements of random kernels whose rows indices choose: gathers, scatters and sums, indices that come just before."""

import numpy as np

from firmware.kernel import TileView
from verif.checks.random_maker import Maker

__all__ = ["RandomIndices"]


class RandomIndices:
    """Over the tiles of a Maker and one more with indices, whose words are written again and again."""

    def __init__(self, maker: Maker):
        self._m = maker
        self._tile = maker.k.sbuf("indices", partitions=maker.cfg.partitions, columns=maker.width, dtype="int32")
        self._count = 0

    def statement(self) -> None:
        """New indices somewhere, then one or two copies by them."""
        m = self._m
        rng, p = m.rng, m.cfg.partitions
        tile = m.pick("bf16", "fp16", "fp32")
        others = [t for t in m.tiles if t.dtype == tile.dtype and t is not tile]
        rows, columns = m.upto(p), m.upto(m.width)
        kind = int(rng.integers(4))
        skip = bool(rng.integers(2))
        down = bool(rng.integers(2))
        add = tile.dtype if tile.dtype in ("fp32", "bf16") and rng.random() < 0.6 else None
        distinct = kind in (1, 2) or not add
        indices = self._indices(rows, p, down=down, skip=skip, distinct=distinct)
        at, left = (int(rng.integers(0, size - n + 1)) for size, n in ((p, rows), (m.width, columns)))
        inside = tile[at : at + rows, left : left + columns]
        box = slice(left, left + columns)
        if kind == 0:
            m.k.gather(inside, m.inputs[tile.name][:, box], indices, skip=skip, add=add, **m.way())
        elif kind == 1:
            m.k.scatter(m.outputs[tile.name][:, box], inside, indices, skip=skip, **m.way())
        elif others and kind == 2:
            m.k.scatter(others[0][:, box], inside, indices, skip=skip, **m.way())
        elif others:
            way = m.way()  # sums of one index come in the order of the ring
            for _ in range(m.upto(2)):
                m.k.scatter(others[0][:, box], inside, indices, skip=skip, add=add, **way)

    def _indices(self, rows: int, table: int, *, down: bool, skip: bool, distinct: bool) -> TileView:
        """`rows` of them, some none of the table if they may be."""
        m = self._m
        rng = m.rng
        chosen = rng.permutation(table)[:rows] if distinct else rng.integers(0, table, rows)
        if skip:
            chosen = np.where(rng.random(rows) < 0.3, rng.choice([table, -1, 1 << 30], rows), chosen)
        shape = (rows, 1) if down else (1, rows)
        self._count += 1
        given = m.k.hbm(f"chosen{self._count}", shape, "int32", chosen.astype(np.int32).view(np.uint32).reshape(shape))
        at, left = (int(rng.integers(0, size - n + 1)) for size, n in zip((table, m.width), shape, strict=True))
        here = self._tile[at : at + shape[0], left : left + shape[1]]
        m.k.dma(here, given[:, :], **m.way())
        return here
