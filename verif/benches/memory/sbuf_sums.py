"""What a mover's port of SBUF does with writes that add: who is under way, and what SBUF is asked for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.descriptor import DmaAdd
from verif.golden.dma import added

__all__ = ["Sum", "Sums", "like"]

PLACES = 4
ADD_CYCLES = 3


@dataclass
class Sum:
    """16 bytes that are on their way: written from cycle `due` on, when SBUF lets it."""

    lane: int
    pair: int
    data: int
    bytes: int
    last: bool
    due: int


class Sums:
    """Sums of one mover's port, oldest first."""

    def __init__(self) -> None:
        self.under_way: list[Sum] = []

    def meets(self, lane: int, pair: int) -> bool:
        """One of the same bytes is under way."""
        return any((s.lane, s.pair) == (lane, pair) for s in self.under_way)

    @property
    def full(self) -> bool:
        """No other may begin."""
        return len(self.under_way) == PLACES

    def head(self, cycle: int) -> Sum | None:
        """The one that is to be written in this cycle."""
        return self.under_way[0] if self.under_way and self.under_way[0].due <= cycle else None

    def begin(self, old: NDArray[np.uint8], data: int, add: int, cycle: int, **where: int) -> None:
        """One whose old bytes are read in this cycle."""
        new = np.frombuffer(data.to_bytes(16, "little"), np.uint8)
        value = int.from_bytes(added(old, new, DmaAdd(add)).tobytes(), "little")
        self.under_way.append(Sum(data=value, due=cycle + ADD_CYCLES, **where))


def like(rng: np.random.Generator, data: int, add: int) -> int:
    """Elements near each other in size, so that sums are rounded and cancel; some special."""
    if add == DmaAdd.INT32:
        return data
    kind, one = ("<u2", 0x3F80) if add == DmaAdd.BF16 else ("<u4", 0x3F800000)
    bits = np.frombuffer(data.to_bytes(16, "little"), kind).copy()
    spread = {2: 0x0FFF, 4: 0x0FFFFFFF}[bits.itemsize]
    near = (bits & spread & ~np.asarray(0, kind)) + (one - spread // 2 & ~0x7F)
    near[rng.random(len(bits)) < 0.1] = 0
    return int.from_bytes((near | bits & (1 << 8 * bits.itemsize - 1)).astype(kind).tobytes(), "little")
