"""Workload `forward`: cores in a row; tiles of FP32 go through all of them, each adds a number of its own.

Core 0 brings a tile from HBM, the last one stores it; between two cores it goes from SBUF to SBUF with a signal
(`Stream`), and the program of the core that gets it does nothing for that but wait.
"""

import numpy as np

from firmware.cores.ensemble import Ensemble, Mark, numbered
from firmware.cores.stream import Stream, note
from firmware.kernel import Kernel
from firmware.program import Completion
from firmware.views import HbmView, KernelError, Tile
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["forward"]

HBM_BUFFERS = 3  # places for tiles that come from HBM or go there: a copy under way, its latency, one in use


class _Stage:
    """What a core of the row has. `before`: the stage that its tiles come from; they have `buffers` places."""

    def __init__(self, cfg: Config, number: int, shape: tuple[int, int], before: "_Stage | None", buffers: int):
        self.k = k = Kernel(cfg, f"stage{number}", numbered(cfg, number))
        self.note = note(k)
        self.before: Stream | None = None
        self.after: Stream | None = None
        self.come: list[Tile] = []
        if before is None:
            self.come = self._tiles("come", shape)
        else:
            notes = before.note, self.note
            stream = Stream(before.k, k, notes=notes, partitions=shape[0], columns=shape[1], buffers=buffers)
            self.before = before.after = stream
        self.results = self._tiles("result", shape)
        self.x: HbmView | None = None
        self.y: HbmView | None = None

    def _tiles(self, name: str, shape: tuple[int, int]) -> list[Tile]:
        partitions, columns = shape
        return [
            self.k.sbuf(f"{name}{i}", partitions=partitions, columns=columns, dtype="fp32") for i in range(HBM_BUFFERS)
        ]


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
    shape = x.shape[1], x.shape[2]
    stages: list[_Stage] = []
    for n in range(cores):
        stages.append(_Stage(cfg, n, shape, stages[-1] if stages else None, buffers))
    first, last = stages[0], stages[-1]
    first.x = first.k.hbm("x", x.shape, "fp32", x.view(np.uint32))
    last.y = last.k.hbm("y", x.shape, "fp32")
    marks: list[Mark] = []
    for n, stage in enumerate(stages):
        k = stage.k
        for tile in range(tiles):
            result = stage.results[tile % HBM_BUFFERS]
            if stage.before is not None:
                come = stage.before.receive(Queue.VECTOR, *shape)
            else:
                come = stage.come[tile % HBM_BUFFERS][:, :]
                if stage.x is not None:
                    k.dma(come, stage.x[tile, :, :])
            k.vector.tensor_scalar(result[:, :], come, "add", float(added[n]))
            if stage is last:
                marks.append(Mark(k.core, Queue.VECTOR, k.items(Queue.VECTOR) - 1))
            if stage.before is not None:
                stage.before.release(Completion(int(Queue.VECTOR), k.items(Queue.VECTOR)))
            if stage.after is not None:
                stage.after.send(result[:, :])
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
