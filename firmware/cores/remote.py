"""Workload `remote`: bulk copies, or sums, between core 0 and core 1, in SBUF or HBM of either."""

import numpy as np

from firmware.cores.ensemble import Ensemble, Mark, numbered
from firmware.kernel import Kernel
from firmware.numbers import decode, encode
from firmware.program import Completion
from firmware.views import HbmView, KernelError, TileView
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["REMOTE_DIRECTIONS", "remote"]

REMOTE_DIRECTIONS = {"write": ((0, 0),), "read": ((0, 1),), "both": ((0, 0), (1, 1))}
"""Who copies, and whose tiles."""

CLASS = 1
RING = 1
QUEUE = Queue.GPSIMD


class _Tiles:
    """Tiles [partitions, columns] of a core, in HBM or in SBUF, where `hbm`, if given, is brought first."""

    def __init__(self, k: Kernel, name: str, space: str, hbm: HbmView | None, shape: tuple[int, ...], dtype: str):
        tiles, partitions, self.columns = shape
        self.hbm = hbm if space == "hbm" else None
        self.k = k
        self.loads: list[Completion] = []
        if self.hbm is None:
            self.sbuf = k.sbuf(name, partitions=partitions, columns=tiles * self.columns, dtype=dtype)
            if hbm is not None:
                self.loads = [k.dma(self[t], hbm[t, :, :]) for t in range(tiles)]

    def __getitem__(self, tile: int) -> TileView | HbmView:
        if self.hbm is not None:
            return self.hbm[tile, :, :]
        return self.sbuf[:, tile * self.columns : (tile + 1) * self.columns]


class _Flow:
    """Tiles x of core `source` that core `actor` brings to the other one."""

    def __init__(
        self, ks: list[Kernel], actor: int, source: int, spaces: tuple[str, str], x: np.ndarray, add: str | None
    ):
        self.k, self.other, self.to = ks[actor], ks[1 - actor], ks[1 - source]
        self.add, self.tiles = add, len(x)
        dtype = add or "uint32"
        given = ks[source].hbm("x", x.shape, dtype, x)
        self.own = _Tiles(ks[source], "own", spaces[source], given, x.shape, dtype)
        base = x[::-1].copy()
        there = self.to.hbm("base", x.shape, dtype, base) if add else None
        self.y = self.to.hbm("y", x.shape, dtype)
        in_hbm = spaces[1 - source] == "hbm"
        self.come = _Tiles(self.to, "come", spaces[1 - source], self.y if in_hbm else there, x.shape, dtype)
        self.arrived = self.to.semaphore("arrived")
        self.bits = x
        if add == "int32":
            self.bits = base + x
        elif add:
            with np.errstate(over="ignore", invalid="ignore"):
                self.bits = encode(decode(base, add) + decode(x, add), add)

    def await_other(self) -> None:
        """Copies begin when the SBUF of the other core holds what is read or added to."""
        loads = (self.come if self.other is self.to else self.own).loads
        if loads:
            note, told = (
                k.sbuf(name, partitions=1, columns=1, dtype="uint32")
                for k, name in ((self.other, "note"), (self.k, "told"))
            )
            self.other.dma(note[:, :], self.other.hbm("one", (1, 1), "uint32", np.ones((1, 1), np.uint32))[:, :])
            ready = self.k.semaphore("ready")
            self.other.dma(told[:, :], note[:, :], class_=CLASS, after=loads, signal=ready)
            self.k.wait(QUEUE, ready, 1, told[:, :])

    def copy(self) -> None:
        """All tiles, with a signal each, when the last one is there."""
        here = [c for tiles in (self.own, self.come) for c in tiles.loads if tiles.k is self.k]
        for t in range(self.tiles):
            self.k.dma(
                self.come[t],
                self.own[t],
                class_=CLASS,
                ring=RING,
                queue=QUEUE,
                add=self.add,
                after=here if t == 0 else (),
                signal=self.arrived,
            )

    def arrive(self) -> list[Mark]:
        """Waits for each tile, then tiles of SBUF to HBM."""
        marks: list[Mark] = []
        k = self.to
        for t in range(self.tiles):
            come = self.come[t]
            k.wait(Queue.SYNC, self.arrived, t + 1, *([] if self.k is k else [come]))
            marks.append(Mark(k.core, Queue.SYNC, k.items(Queue.SYNC) - 1))
        for t in range(self.tiles if self.come.hbm is None else 0):
            k.dma(self.y[t, :, :], self.come[t], ring=0, queue=Queue.SYNC)
        return marks


def remote(
    cfg: Config, x: np.ndarray, *, direction: str = "write", spaces: tuple[str, str] = ("sbuf", "sbuf"), add: str | None
) -> Ensemble:
    """Programs for bits x [tiles, partitions, columns] of uint32, or of the format `add`; `spaces` of core 0 and 1.

    direction: core 0 writes its tiles to core 1, reads core 1's, or both write at a time. `add`: fp32, bf16 or int32,
    tiles are added to others, in the SBUF of who gets them. Output: `y` there. Marks: `arrived`, of each tile of
    one core, then of the other. Errors: KernelError.
    """
    if direction not in REMOTE_DIRECTIONS:
        raise KernelError(f"direction is one of {', '.join(REMOTE_DIRECTIONS)}, not {direction}")
    for space in spaces:
        if space not in ("sbuf", "hbm"):
            raise KernelError(f"near and far are sbuf or hbm, not {space}")
    if x.ndim != 3 or not x.size:
        raise KernelError(f"remote needs tiles [tiles, partitions, columns] of one number at least, not {x.shape}")
    moves = REMOTE_DIRECTIONS[direction]
    if add and (direction == "read" or any(spaces[1 - source] == "hbm" for _, source in moves)):
        raise KernelError(
            f"add={add} goes with direction=write or both, to the SBUF of who gets the tiles, not with "
            f"direction={direction}, near={spaces[0]}, far={spaces[1]}"
        )
    ks = [Kernel(cfg, f"end{n}", numbered(cfg, n)) for n in range(2)]
    flows = [_Flow(ks, actor, source, spaces, x[:, :, :: 1 - 2 * source].copy(), add) for actor, source in moves]
    for step in (_Flow.await_other, _Flow.copy):
        for flow in flows:
            step(flow)
    marks = [flow.arrive() for flow in flows]
    return Ensemble(
        programs=tuple(k.program() for k in ks),
        truth={(flow.to.core, "y"): flow.bits for flow in flows},
        marks={"arrived": tuple(mark for flow in marks for mark in flow)},
    )
