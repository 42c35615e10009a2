"""Tiles that go from SBUF of a core to SBUF of another, each with a signal, while both do something else.

The program of the core that gets them does nothing for a tile but wait for its signal. It has places for some tiles,
and tells the sender when one has been read, by the signal of a copy of 4 bytes. Another such copy, here, goes behind
each tile that leaves: it counts on its ring, in time for who waits for the place of that tile, which a fence would not
be.
"""

import numpy as np

from firmware.kernel import Kernel
from firmware.program import Completion
from firmware.views import KernelError, TileView
from rtl.contract.isa import Queue

__all__ = ["Stream", "note"]

CLASS = 1  # of all that goes to other cores: copies of a core's own do not wait behind what waits for a wire
STORE_RING = 1


def note(k: Kernel) -> TileView:
    """4 bytes in SBUF of a core, to be copied for a signal or a count. One serves all its streams."""
    tile = k.sbuf("note", partitions=1, columns=1, dtype="fp32")
    k.dma(tile[:, :], k.hbm("one", (1, 1), "fp32", np.full((1, 1), 0x3F800000, np.uint32))[:, :])
    return tile[:, :]


class Stream:
    """Tiles of FP32 from `near` to `far`. Both ends are called as often, in the order of the tiles; the kernels may be
    written one after the other."""

    def __init__(
        self,
        near: Kernel,
        far: Kernel,
        *,
        notes: tuple[TileView, TileView],
        partitions: int,
        columns: int,
        buffers: int,
        name: str = "",
    ):
        """partitions, columns: of the largest tile. buffers: places for tiles in `far`. notes: `note` of both cores.
        name: of the stream, if a core has several that come. Errors: KernelError."""
        if buffers < 1:
            raise KernelError(f"a stream of tiles needs a buffer at least, not {buffers} buffers")
        self._near, self._far, self._notes = near, far, notes
        self._told = near.sbuf("told", partitions=1, columns=2, dtype="fp32")  # by the other end; here
        self._places = [
            far.sbuf(f"come{name}{i}", partitions=partitions, columns=columns, dtype="fp32") for i in range(buffers)
        ]
        self._arrived, self._read = far.semaphore(f"arrived{name}"), near.semaphore("read")
        self._sent = self._received = 0

    def send(self, tile: TileView) -> None:
        """At the near end: the next tile [rows, columns], as soon as there is a place and it is finished."""
        buffers, number = len(self._places), self._sent
        self._sent += 1
        if number >= buffers:
            self._near.wait(Queue.GPSIMD, self._read, number - buffers + 1)
        place = self._places[number % buffers][: tile.partitions, : tile.elements]
        self._near.dma(place, tile, class_=CLASS, signal=self._arrived)
        self._near.dma(self._told[:, 1:2], self._notes[0], ring=STORE_RING, queue=Queue.GPSIMD)

    def receive(self, queue: Queue, rows: int, columns: int) -> TileView:
        """At the far end: the next tile, for which `queue` waits."""
        place = self._places[self._received % len(self._places)][:rows, :columns]
        self._received += 1
        self._far.wait(queue, self._arrived, self._received, place)
        return place

    def release(self, after: Completion) -> None:
        """At the far end: the place of the next tile that has not been released is free after this."""
        self._far.dma(self._told[:, 0:1], self._notes[1], class_=CLASS, after=[after], signal=self._read)
