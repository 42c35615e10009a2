"""Room of a kernel in SBUF and PSUM: tiles one behind the other, names, and blocks whose room others get."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from firmware.engines.base import need
from firmware.numbers import bits_dtype, element_bytes
from firmware.program import Allocation
from firmware.rings import FENCE
from firmware.views import KernelError, MemoryFullError, Tile
from rtl.contract.config import Config
from rtl.contract.memmap import Space

__all__ = ["Room", "held_in"]


def held_in(name: str, dtype: str) -> np.dtype:
    """What holds an element. KernelError, with the tensor's or tile's name, if there is no such format."""
    try:
        return bits_dtype(dtype)
    except ValueError as error:
        raise KernelError(f"{name}: {error}") from None


class Room:
    """Of the core `core`. Errors: KernelError, MemoryFullError."""

    def __init__(self, cfg: Config, core: int):
        self.tiles: list[Allocation] = []
        self.partitions, self.core = cfg.partitions, core
        self._size = {Space.SBUF: cfg.sbuf.partition_bytes, Space.PSUM: cfg.psum.partition_bytes}
        self._used = dict.fromkeys(self._size, 0)
        self.most_bytes = dict(self._used)
        """Of a partition, at any time."""
        self._names: set[str] = {FENCE}
        self._prefix, self._shared = "", False

    def name(self, name: str) -> str:
        """The name with that of the block in which it is said, taken from now on."""
        full = self._prefix + name
        need(bool(name) and full not in self._names, f"the name {full!r} is empty or taken already")
        self._names.add(full)
        return full

    def free_bytes(self, space: Space, align: int = 1) -> int:
        """Of a partition, behind the next allocation with this alignment."""
        return max(0, self._size[space] - self._next(space, align))

    def share(self) -> None:
        """Tiles from now on may get bytes that others had."""
        self._shared = True

    @contextmanager
    def scratch(self, name: str) -> Iterator[None]:
        """Tiles of this block are gone at its end. Names in it begin with `name`."""
        need(self._shared, "scratch needs Kernel.share before the first tile")
        used, prefix = dict(self._used), self._prefix
        self._prefix = f"{prefix}{name} "
        try:
            yield
        finally:
            self._used, self._prefix = used, prefix

    def tile(self, space: Space, name: str, start: int, partitions: int, columns: int, dtype: str, align: int) -> Tile:
        """`columns` elements on each of `partitions` partitions from `start` on."""
        name = self.name(name)
        held_in(f"tile {name}", dtype)
        need(columns >= 1, f"tile {name} must have at least 1 column, not {columns}")
        need(
            align >= 1 and align & (align - 1) == 0,
            f"tile {name} is aligned to {align} bytes; that must be a power of two, at least 1",
        )
        need(
            partitions >= 1 and start >= 0 and start + partitions <= self.partitions,
            f"tile {name} takes partitions {start} to {start + partitions - 1}; there are {self.partitions} from 0",
        )
        offset, wanted, size = self._next(space, align), columns * element_bytes(dtype), self._size[space]
        if offset + wanted > size:
            raise MemoryFullError(
                f"tile {name} needs {wanted} bytes of each {space.name} partition, but only "
                f"{max(0, size - offset)} of {size} are free"
            )
        self._used[space] = offset + wanted
        self.most_bytes[space] = max(self.most_bytes[space], offset + wanted)
        self.tiles.append(
            Allocation(name=name, space=space, start=start, partitions=partitions, offset=offset, bytes=wanted)
        )
        memory = space.name if self._shared else ""
        return Tile(name, space, start, partitions, offset, columns, dtype, self.core, memory)

    def _next(self, space: Space, align: int) -> int:
        return -(-self._used[space] // align) * align
