"""Runs one small kernel on the golden machine: arrays in SBUF, statements, arrays out."""

import numpy as np

from firmware.image import build_image
from firmware.kernel import Kernel, Tile, TileView
from firmware.numbers import bits_dtype
from rtl.contract.config import named
from verif.golden.machine import GoldenMachine

__all__ = ["P", "TINY", "Lab"]

TINY = named("tiny")
P = TINY.partitions


class Lab:
    """A kernel whose tiles are filled from arrays of bits and read back by name."""

    def __init__(self) -> None:
        self.k = Kernel(TINY, "lab")
        self.tiles: dict[str, Tile] = {}

    def put(self, name: str, dtype: str, bits: np.ndarray, start: int = 0) -> Tile:
        """A tile of SBUF with these bits, [partitions, columns]."""
        data = np.ascontiguousarray(bits).astype(bits_dtype(dtype))
        tile = self.k.sbuf(name, partitions=data.shape[0], columns=data.shape[1], dtype=dtype, start=start)
        self.k.dma(tile[:, :], self.k.hbm(f"in {name}", data.shape, dtype, data))
        return tile

    def out(self, name: str, dtype: str, columns: int, partitions: int = P, start: int = 0) -> Tile:
        """A tile whose bits come back."""
        tile = self.k.sbuf(name, partitions=partitions, columns=columns, dtype=dtype, start=start)
        self.tiles[name] = tile
        return tile

    def keep(self, tile: Tile) -> Tile:
        """The bits of a tile that was put come back too."""
        self.tiles[tile.name] = tile
        return tile

    def column(self, name: str, values: np.ndarray, start: int = 0) -> TileView:
        """One FP32 column with these values."""
        bits = np.asarray(values, np.float32).reshape(-1, 1).view(np.uint32)
        return self.put(name, "fp32", bits, start)[:, :]

    def run(self) -> dict[str, np.ndarray]:
        """Bits of the tiles of `out` by name. Any legal order gives the same ones."""
        for name, tile in self.tiles.items():
            self.k.dma(self.k.hbm(f"out {name}", (tile.partitions, tile.columns), tile.dtype), tile[:, :])
        self.program = self.k.program()
        image = build_image(self.program)
        first: dict[str, np.ndarray] = {}
        for order in (None, 1, 2):
            machine = GoldenMachine(TINY, order)
            machine.load(image)
            result = machine.run()
            assert not result.faults
            found = {name.removeprefix("out "): bits for name, bits in result.outputs.items()}
            first = first or found
            assert all(np.array_equal(first[name], bits) for name, bits in found.items()), "orders differ"
        return first
