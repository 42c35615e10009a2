"""What random kernels are made of: tiles with bits of any kind, views of any pattern, statements."""

from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel, Tile, TileView
from firmware.numbers import bits_dtype
from rtl.contract.access_pattern import start_partition_rule
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import COPY_QUEUES, Queue

__all__ = ["Maker"]

DTYPES = ("bf16", "bf16", "fp16", "fp32")
ORDINARY = {"fp32": (-7, 9), "bf16": (-7, 9), "fp16": (-4, 2), "e4m3fn": (-4, 4), "e5m2": (-7, 7)}
"""Exponents of ordinary values: from, to."""
TRIGGERS = (Queue.SYNC, Queue.GPSIMD, Queue.SCALAR)


class Maker:
    """A kernel under construction over tiles of SBUF and PSUM that hold all partitions."""

    def __init__(self, cfg: Config, seed: int):
        self.cfg = cfg
        self.rng = np.random.default_rng(seed)
        self.k = Kernel(cfg, f"random {seed}")
        self.triggers = [TRIGGERS[i] for i in self.rng.integers(len(TRIGGERS), size=cfg.dma.rings)]
        self.width = min(cfg.tensor.moving_max, cfg.psum.partition_bytes // 8)
        self.directly: bool | None = None  # copies go by queues' own rings: all; some, if False; none
        self.inputs: dict[str, HbmView] = {}
        self.outputs: dict[str, HbmView] = {}
        self.everything: list[Tile] = []
        self.tiles = [self.tile(f"{dtype}_{i}", dtype, self.width) for i, dtype in enumerate(DTYPES)]
        self.sums = [self.k.psum(f"sums_{i}", partitions=cfg.tensor.cols, columns=self.width) for i in range(2)]

    def tile(self, name: str, dtype: str, columns: int) -> Tile:
        """A tile on all partitions, with bits for it in HBM and a place there for what becomes of them."""
        p = self.cfg.partitions
        tile = self.k.sbuf(name, partitions=p, columns=columns, dtype=dtype)
        self.inputs[name] = self.k.hbm(f"in_{name}", (p, columns), dtype, self._bits(dtype, p, columns))
        self.outputs[name] = self.k.hbm(f"out_{name}", (p, columns), dtype)
        self.everything.append(tile)
        return tile

    def _bits(self, dtype: str, rows: int, columns: int) -> np.ndarray:
        """Mostly ordinary values of any size, some patterns of any kind, NaN and infinities among them."""
        kind = bits_dtype(dtype)
        fmt = FORMATS[dtype]
        any_bits = self.rng.integers(0, 1 << fmt.bits, (rows, columns), dtype=np.uint64)
        if fmt.integer:
            return any_bits.astype(kind)
        low, high = (fmt.bias + e << fmt.mantissa for e in ORDINARY[dtype])
        ordinary = self.rng.integers(low, high, (rows, columns), dtype=np.uint64)
        sign = self.rng.integers(0, 2, (rows, columns), dtype=np.uint64) << np.uint64(fmt.bits - 1)
        odd = self.rng.random((rows, columns)) < 0.02
        return np.where(odd, any_bits, ordinary | sign).astype(kind)

    def way(self) -> dict[str, Any]:
        """How a copy goes: any ring, or a queue's own."""
        ring = int(self.rng.integers(self.cfg.dma.rings))
        if self.directly is None:
            return {"ring": ring, "queue": self.triggers[ring]}
        queue, direct = COPY_QUEUES[int(self.rng.integers(len(COPY_QUEUES)))], self.rng.random() < 0.3
        if self.directly or direct:
            return {"queue": queue, "direct": True}
        return {"ring": ring, "queue": self.triggers[ring]}

    def upto(self, limit: int) -> int:
        """1 to `limit`; small, large and everything between alike often."""
        return int(self.rng.choice([1, limit, int(self.rng.integers(1, limit + 1))]))

    def partitions(self, limit: int, count: int | None = None) -> tuple[int, int]:
        """A legal (start, count) below `limit`."""
        total = self.cfg.partitions
        while True:
            n = self.upto(limit) if count is None else count
            start = int(self.rng.integers(0, 4)) * (total // 4)
            if start + n <= limit and start_partition_rule(start, n, total):
                return start, n

    def pattern(self, tile: Tile, start: int, count: int, elements: int, *, ascending: bool = False) -> TileView:
        """A view of `elements` elements on given partitions: contiguous, strided or in two dimensions."""
        room = self.width
        kind = int(self.rng.integers(4))
        step = int(self.rng.integers(1, room // elements + 1))
        if kind == 0 or step == 1:
            at = int(self.rng.integers(0, room - elements + 1))
            view = tile[start : start + count, at : at + elements]
        else:
            span = (elements - 1) * step + 1
            at = int(self.rng.integers(0, room - span + 1))
            view = tile[start : start + count, at : at + span : step]
        divisors = [d for d in range(2, elements) if elements % d == 0]
        if kind >= 2 and divisors:
            view = view.split(0, int(self.rng.choice(divisors)))
            if kind == 3 and not ascending:
                view = view.permute((1, 0))
        return view

    def pick(self, *dtypes: str) -> Tile:
        """A tile of SBUF of one of these formats."""
        fitting = [t for t in self.tiles if t.dtype in dtypes]
        return fitting[int(self.rng.integers(len(fitting)))]

    def multiply(self) -> None:
        """A load, and one to three matmuls with it."""
        k, cfg = self.k, self.cfg
        start, count = self.partitions(cfg.tensor.rows)
        columns = self.upto(min(cfg.tensor.cols, self.width))
        k.tensor.load(self.pattern(self.pick("bf16", "fp16"), start, count, columns))
        for _ in range(int(self.rng.integers(1, 4))):
            elements = self.upto(self.width)
            moving = self.pattern(self.pick("bf16", "fp16"), start, count, elements)
            sums = self.sums[int(self.rng.integers(2))]
            target = self.pattern(sums, 0, columns, elements, ascending=True)
            k.tensor.matmul(moving, target, accumulate=bool(self.rng.integers(2)))

    def turn(self) -> None:
        """A transpose of any rows and columns, to any place of PSUM."""
        start, count = self.partitions(min(self.cfg.tensor.rows, self.width))
        columns = self.upto(min(self.cfg.tensor.cols, self.width))
        source = self.pattern(self.pick(*DTYPES), start, count, columns)
        self.k.tensor.transpose(source, self.pattern(self.sums[int(self.rng.integers(2))], 0, columns, count))

    def convert(self) -> None:
        """A copy between two tiles, out of PSUM half of the time."""
        elements = self.upto(self.width)
        target = self.pick("bf16", "fp16", "fp32")
        if self.rng.integers(2):
            source = self.sums[int(self.rng.integers(2))]
            at, count = self.partitions(self.cfg.tensor.cols)
        else:
            source = self.tiles[(self.tiles.index(target) + 1) % len(self.tiles)]
            at, count = self.partitions(self.cfg.partitions)
        to, _ = self.partitions(self.cfg.partitions, count)
        self.k.vector.copy(self.pattern(target, to, count, elements), self.pattern(source, at, count, elements))

    def add(self) -> None:
        """Sums of one ring by DMA, several to the same box, from HBM and SBUF."""
        p = self.cfg.partitions
        tile = self.pick("fp32", "bf16")
        rows, columns = self.upto(p), self.upto(self.width)
        to, right = (int(self.rng.integers(0, size - n + 1)) for size, n in ((p, rows), (self.width, columns)))
        way = self.way()
        inside = tile[to : to + rows, right : right + columns]
        other = next((t for t in self.tiles if t.dtype == tile.dtype and t is not tile), tile)
        for _ in range(self.upto(3)):
            at, left = (int(self.rng.integers(0, size - n + 1)) for size, n in ((p, rows), (self.width, columns)))
            box = (slice(at, at + rows), slice(left, left + columns))
            source = other[box] if other is not tile and self.rng.random() < 0.5 else self.inputs[tile.name][box]
            self.k.dma(inside, source, **way, add=tile.dtype if self.rng.random() < 0.8 else None)

    def move(self) -> None:
        """A copy by DMA: SBUF to SBUF, from HBM or to HBM, any box, any ring, any queue."""
        p = self.cfg.partitions
        tile = self.pick(*DTYPES)
        rows, columns = self.upto(p), self.upto(self.width)
        at, to = (int(self.rng.integers(0, p - rows + 1)) for _ in range(2))
        left, right = (int(self.rng.integers(0, self.width - columns + 1)) for _ in range(2))
        way = self.way()
        inside = tile[to : to + rows, right : right + columns]
        box = (slice(at, at + rows), slice(left, left + columns))
        kind = int(self.rng.integers(3))
        if kind == 0:
            self.k.dma(inside, self.inputs[tile.name][box], **way)
        elif kind == 1:
            self.k.dma(self.outputs[tile.name][box], inside, **way)
        else:
            other = next((t for t in self.tiles if t.dtype == tile.dtype and t is not tile), None)
            if other is not None:
                self.k.dma(inside, other[box], **way)

    def begin(self) -> None:
        """Bits everywhere: tiles from HBM, all of PSUM from the array."""
        for tile in self.everything:
            self.k.dma(tile[:, :], self.inputs[tile.name], ring=0, queue=self.triggers[0])
        rows, cols = self.cfg.tensor.rows, self.cfg.tensor.cols
        self.k.tensor.load(self.tiles[0][:rows, :cols])
        for sums in self.sums:
            self.k.tensor.matmul(self.tiles[1][:rows, :], sums[:, :])

    def end(self) -> None:
        """Everything to HBM; PSUM through a tile that is stored before."""
        for tile in self.everything:
            self.k.dma(self.outputs[tile.name], tile[:, :])
        fp32 = self.pick("fp32")
        cols = self.cfg.tensor.cols
        for i, sums in enumerate(self.sums):
            out = self.k.hbm(f"out_sums_{i}", (cols, self.width), "fp32")
            self.k.vector.copy(fp32[:cols, :], sums[:, :])
            self.k.dma(out, fp32[:cols, :])
