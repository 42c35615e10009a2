"""An image as GP_LOAD moves it: words by lane, from the place of a row of local memory on."""

from dataclasses import dataclass

import numpy as np

from firmware.gpsimd.image import Image

__all__ = ["WORD_BYTES", "Placed", "placed"]

WORD_BYTES = 4


@dataclass(frozen=True)
class Placed:
    """What a core holds: `data`, whole rows of a word a lane, from byte `offset` of local memory; address of tohost, or
    0."""

    offset: int
    data: bytes
    tohost: int

    def by_lane(self, lanes: int) -> np.ndarray:
        """uint32 [lanes, rows]."""
        return np.ascontiguousarray(np.frombuffer(self.data, "<u4").astype(np.uint32).reshape(-1, lanes).T)


def placed(image: Image, lanes: int) -> Placed:
    """The image for cores of so many lanes; zeros fill its first and its last row."""
    row_bytes = WORD_BYTES * lanes
    before = (image.start - image.base) % row_bytes
    data = bytes(before) + image.load_bytes()
    offset = image.start - image.base - before
    return Placed(offset, data + bytes(-len(data) % row_bytes), image.symbols.get("tohost", 0))
