"""Workload `forward`: cores in a row; tiles of FP32 go through all of them, each adds a number of its own.

Core 0 brings a tile from HBM, the last one stores it; between two cores it goes from SBUF to SBUF with a signal, and
the program of the core that gets it does nothing for that but wait. There are `buffers` places for tiles that come: who
has read a tile tells the sender so, by the signal of a copy of 4 bytes. Another one, here, goes behind each tile that
leaves: it counts on its ring, in time for who waits for the place of that tile, which a fence would not be.
"""

import numpy as np

from firmware.cores.ensemble import Ensemble, Mark, numbered
from firmware.kernel import Kernel
from firmware.program import Completion
from firmware.views import HbmView, KernelError, Tile
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["forward"]

CLASS = 1
STORE_RING = 1
HBM_BUFFERS = 3  # places for tiles that come from HBM or go there: a copy under way, its latency, one in use


class _Stage:
    """What a core of the row has."""

    def __init__(self, cfg: Config, number: int, shape: tuple[int, ...], come: int):
        self.k = k = Kernel(cfg, f"stage{number}", numbered(cfg, number))
        self.come = self._tiles("come", come, shape)
        self.results = self._tiles("result", HBM_BUFFERS, shape)
        self.note = k.sbuf("note", partitions=1, columns=1, dtype="fp32")
        self.told = k.sbuf("told", partitions=1, columns=2, dtype="fp32")  # by the one behind; here
        self.arrived, self.read = k.semaphore("arrived"), k.semaphore("read")
        self.x: HbmView | None = None
        self.y: HbmView | None = None

    def tell(self, other: "_Stage", after: Completion) -> None:
        """Say to the one before that a tile has been read."""
        self.k.dma(other.told[:, 0:1], self.note[:, :], class_=CLASS, after=[after], signal=other.read)

    def count(self) -> None:
        """A copy that counts those before it on its ring: those to other cores with their signals do not."""
        self.k.dma(self.told[:, 1:2], self.note[:, :], ring=STORE_RING, queue=Queue.GPSIMD)

    def _tiles(self, name: str, count: int, shape: tuple[int, ...]) -> list[Tile]:
        partitions, columns = shape
        return [self.k.sbuf(f"{name}{i}", partitions=partitions, columns=columns, dtype="fp32") for i in range(count)]


def forward(cfg: Config, x: np.ndarray, added: np.ndarray, *, buffers: int = 2) -> Ensemble:
    """Programs for float32 x [tiles, partitions, columns] and added [cores]; core n of the row has endpoint number n.

    Output: `y` of the last core, ((x + added[0]) + added[1]) + ... with a rounding each. Marks: `added`, when the last
    core has added to each tile. A core alone brings, adds and stores. Errors: KernelError.
    """
    tiles, cores = len(x), len(added)
    if cores < 1 or tiles < 1 or buffers < 1:
        raise KernelError(
            f"forward needs a core, a tile and a buffer at least, not {cores} cores, {tiles} tiles, {buffers} buffers"
        )
    stages = [_Stage(cfg, n, x.shape[1:], buffers if n else HBM_BUFFERS) for n in range(cores)]
    first, last = stages[0], stages[-1]
    first.x = first.k.hbm("x", x.shape, "fp32", x.view(np.uint32))
    last.y = last.k.hbm("y", x.shape, "fp32")
    marks: list[Mark] = []
    for n, stage in enumerate(stages):
        k = stage.k
        before, after = (stages[n - 1] if n else None), (stages[n + 1] if stage is not last else None)
        k.dma(stage.note[:, :], k.hbm("one", (1, 1), "fp32", np.full((1, 1), 0x3F800000, np.uint32))[:, :])
        for tile in range(tiles):
            come, result = (places[tile % len(places)] for places in (stage.come, stage.results))
            if stage.x is not None:
                k.dma(come[:, :], stage.x[tile, :, :])
            else:
                k.wait(Queue.VECTOR, stage.arrived, tile + 1, come[:, :])
            k.vector.tensor_scalar(result[:, :], come[:, :], "add", float(added[n]))
            if stage is last:
                marks.append(Mark(k.core, Queue.VECTOR, k.items(Queue.VECTOR) - 1))
            if before is not None:
                stage.tell(before, Completion(int(Queue.VECTOR), k.items(Queue.VECTOR)))
            if after is not None:
                if tile >= buffers:
                    k.wait(Queue.GPSIMD, stage.read, tile - buffers + 1)
                k.dma(after.come[tile % buffers][:, :], result[:, :], class_=CLASS, signal=after.arrived)
                stage.count()
            if stage.y is not None:
                k.dma(stage.y[tile, :, :], result[:, :])
    y = x.copy()
    for number in added:
        y = y + np.float32(number)
    return Ensemble(
        programs=tuple(stage.k.program() for stage in stages),
        truth={(last.k.core, "y"): y.view(np.uint32)},
        marks={"added": tuple(marks)},
    )
