"""The DMA as the GPSIMD engine sees it: a ring that takes descriptors, copies, and tells how each has ended."""

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import Cause, Update
from verif.agents.bench import Bench
from verif.checks.gpsimd_copies import HBM, HBM_BYTES
from verif.golden import dma
from verif.golden.memory import Memory

__all__ = ["SLOTS", "CopyRing"]

SLOTS = 4  # under way, at most
_LATE = 60  # cycles of the engine that a copy takes, at most


class CopyRing:
    """Call `cycle` once a root cycle. `hbm`: all of it that programs reach. `under_way`: copies that were taken and
    have not completed; `most` of them. `update`: makes a signal. `restart` forgets a fault."""

    def __init__(
        self,
        bench: Bench,
        sbuf: Memory,
        stall: Iterator[bool],
        rng: np.random.Generator,
        update: Callable[[int, Update, int], None],
    ):
        self.hbm: NDArray[np.uint8] = rng.integers(0, 256, HBM + 8 * HBM_BYTES, np.uint8)
        self.under_way: deque[tuple[int, dict[str, int]]] = deque()
        self.most = self.completed = 0
        self._cfg, self._sbuf, self._stall, self._rng, self._update = bench.cfg, sbuf, stall, rng, update
        self._cause = Cause.NONE
        self._root_cycles = bench.cfg.tensor.clock_mhz // bench.cfg.gpsimd.clock_mhz
        dut = bench.dut
        self._valid, self._ready, self._word = dut.copy__valid, dut.copy__ready, dut.copy__payload
        status = ("completed", "busy", "cause")
        self._completed, self._busy, self._told = (getattr(dut, f"copies__{name}") for name in status)
        dut.copies__sequence.value = dut.copies__address.value = 0
        self._takes = False
        for signal in (self._ready, self._completed, self._busy, self._told):
            signal.value = 0

    def restart(self) -> None:
        """As `start` of the DMA."""
        assert not self.under_way
        self._cause = Cause.NONE

    def cycle(self, now: int) -> bool:
        """Whether a copy completes."""
        if self._takes and self._valid.value == 1:
            late = int(self._rng.integers(1, _LATE * self._root_cycles))
            self.under_way.append((now + late, DESCRIPTOR.unpack(int(self._word.value))))
            self.most = max(self.most, len(self.under_way))
        ends = bool(self.under_way) and self.under_way[0][0] <= now
        completes = ends and self._end(self.under_way.popleft()[1])
        room = len(self.under_way) < SLOTS and not self._cause
        self._takes = room and not next(self._stall)
        self._ready.value, self._completed.value = int(self._takes), int(completes)
        self._busy.value, self._told.value = int(bool(self.under_way)), int(self._cause)
        return completes

    def _end(self, descriptor: dict[str, int]) -> bool:
        """Whether one completes; behind a fault all end in silence."""
        cause, _ = dma.check(descriptor, self._cfg)
        if self._cause or cause:
            self._cause = self._cause or cause
            return False
        dma.copy(descriptor, self.hbm, self._sbuf.bytes)
        index, update, value = dma.signal(descriptor)
        self._update(index, update, value)
        self.completed += 1
        return True
