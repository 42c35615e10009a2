"""A DMA with its rings, HBM and SBUF, and what each descriptor must leave there."""

import logging
import random
import warnings
from mmap import mmap
from typing import Any

import numpy as np
from cocotbext.axi import AxiBus, AxiRam

from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Update
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space
from verif.agents.bench import Bench
from verif.agents.dma_host import DmaHost
from verif.agents.mover_ports import MoverPorts
from verif.agents.stall import styled
from verif.benches.dma.descriptors import HBM_BYTES, KINDS, WINDOWS, window
from verif.checks.coverage import Coverage
from verif.golden.dma import copy, row_addresses, signal

__all__ = ["COVERAGE", "DmaBench", "same"]

warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"cocotbext\.")

ALIGNMENTS = ("equal", "ahead", "behind")
COVERAGE = Coverage(
    "dma",
    [
        *(f"{kind}, {shift}" for kind in KINDS for shift in ALIGNMENTS),
        *(f"{n} dimensions" for n in (2, 3, 4)),
        "broadcast",
        "negative step",
        "several rings at once",
        "several of a ring",
        "row longer than a burst",
        "row crosses 4 KiB",
        "own partitions",
        "partitions of another mover",
        *(f"adds {add.name}, {kind}" for add in DmaAdd if add for kind in KINDS if kind.endswith("sbuf")),
        "rows added to the same bytes",
        *(f"signal {u.name}" for u in Update),
    ],
)

Expected = tuple[dict[str, int], int, np.ndarray, np.ndarray]
"""A descriptor, its window, and what HBM and SBUF hold there afterwards."""


class DmaBench(Bench):
    """DMA, its rings, HBM and SBUF; what each descriptor must leave."""

    def __init__(self, dut: Any, *, stalls: str | None = None):
        super().__init__(dut)
        self.link = bool(self.options.get("link"))
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        self.style = stalls
        self.sbuf = self.rng.integers(0, 256, (self.cfg.partitions, self.cfg.sbuf.partition_bytes), np.uint8)
        self.host = DmaHost(self, self._stall)
        self.ports = MoverPorts(self, self.sbuf, self._stall, self._late)
        storage = mmap(-1, HBM_BYTES)
        self.ram = AxiRam(AxiBus.from_prefix(dut, "axi__0_"), dut.clk, dut.rst, size=HBM_BYTES, mem=storage)
        self.hbm = np.frombuffer(storage, np.uint8)
        self.hbm[:] = self.rng.integers(0, 256, HBM_BYTES, np.uint8)
        for channel in self._channels():
            channel.set_pause_generator(self._pause())
        self.pending: list[list[Expected]] = [[] for _ in self.host.rings]
        self.host.on_completed = self._completed

    def _channels(self) -> tuple[Any, ...]:
        w, r = self.ram.write_if, self.ram.read_if
        return w.aw_channel, w.w_channel, w.b_channel, r.ar_channel, r.r_channel

    def _stall(self) -> Any:
        style = self.style or str(self.rng.choice(["never", "rarely", "half", "bursty"]))
        return styled(style, self.rng)

    def _late(self) -> int:
        return 0 if self.style == "never" or self.rng.random() < 0.8 else int(self.rng.integers(1, 60))

    def _pause(self) -> Any:
        own = random.Random(int(self.rng.integers(1 << 30)))
        share = 0.0 if self.style == "never" else own.choice([0.0, 0.1, 0.5])
        while True:
            yield own.random() < share

    def expect(self, ring: int, number: int, d: dict[str, int]) -> None:
        """`d` writes to window `number` only: remember what it must hold afterwards."""
        place = window(self.cfg, number)
        hbm = self.hbm.copy()
        sbuf = self.sbuf.copy()
        copy(d, hbm, sbuf)
        self.pending[ring].append(
            (d, number, hbm[place.hbm.start : place.hbm.stop], sbuf[:, place.sbuf.start : place.sbuf.stop])
        )
        self._cover(d)

    def _completed(self, ring: int) -> None:
        """The oldest of the ring ends: its window must hold the result now, and its signal be sent."""
        assert self.pending[ring], f"a descriptor of ring {ring} has completed that was not to be done"
        d, number, hbm, sbuf = self.pending[ring].pop(0)
        place = window(self.cfg, number)
        same(self.hbm[place.hbm.start : place.hbm.stop], hbm, f"HBM after {d}")
        same(self.sbuf[:, place.sbuf.start : place.sbuf.stop], sbuf, f"SBUF after {d}")
        index, update, value = signal(d)
        if update != Update.NONE:
            assert self.host.signals, f"completed without its signal: {d}"
            assert self.host.signals.pop() == (index, update, value)
        else:
            assert not self.host.signals, "a signal that nobody asked for"

    def _cover(self, d: dict[str, int]) -> None:
        if d.get("indirect"):
            return  # bench_gather lists what it has seen
        from_hbm = d["source"] >> 40 == Space.HBM
        to_hbm = d["destination"] >> 40 == Space.HBM
        kind = f"{'hbm' if from_hbm else 'sbuf'} to {'hbm' if to_hbm else 'sbuf'}"
        if add := DmaAdd(d.get("add", 0)):
            COVERAGE.hit(f"adds {add.name}, {kind}")
            again = [n for n in range(3) if d[f"count{n}"] > 1 and not d[f"destination_step{n}"]]
            COVERAGE.when(again, "rows added to the same bytes")
        mask = (1 << 40) - 1
        s, t = d["source"] & mask & 15, d["destination"] & mask & 15
        COVERAGE.hit(f"{kind}, {'equal' if s == t else 'ahead' if t > s else 'behind'}")
        dims = [n for n in range(3) if d[f"count{n}"] > 1]
        if dims:
            COVERAGE.hit(f"{1 + len(dims)} dimensions")
        for n in dims:
            COVERAGE.when(d[f"source_step{n}"] == 0, "broadcast")
            COVERAGE.when(d[f"destination_step{n}"] < 0, "negative step")
        COVERAGE.hit(f"signal {Update(d.get('signal_update', 0)).name}")
        size = d["row_bytes"]
        if from_hbm:
            COVERAGE.when(size > self.cfg.dma.burst_bytes, "row longer than a burst")
            crossing = [a for a in row_addresses(d, "source") if a // 4096 != (a + size - 1) // 4096]
            COVERAGE.when(crossing, "row crosses 4 KiB")
        elif not to_hbm:
            group = self.ports.group * PARTITION_STRIDE_BYTES
            for a, b in zip(row_addresses(d, "source"), row_addresses(d, "destination"), strict=True):
                COVERAGE.hit("own partitions" if a // group == b // group else "partitions of another mover")

    async def run(self, batch: list[tuple[int, dict[str, int]]]) -> None:
        """Give (ring, descriptor) pairs, each with a window of its own, to the DMA and wait for the end."""
        per_ring: list[list[dict[str, int]]] = [[] for _ in self.host.rings]
        for number, (ring, d) in enumerate(batch):
            self.expect(ring, number, d)
            per_ring[ring].append(d)
        before_hbm, before_sbuf = self.hbm.copy(), self.sbuf.copy()
        COVERAGE.when(sum(bool(p) for p in per_ring) > 1, "several rings at once")
        for ring, some in enumerate(per_ring):
            COVERAGE.when(len(some) > min(4, self.cfg.dma.ring_depth), "several of a ring")
            if some:
                self.host.submit(ring, some)
        await self.host.idle()
        left = [len(p) for p in self.pending]
        assert not any(left), f"descriptors never completed: {left}"
        for number in range(len(batch), WINDOWS):
            place = window(self.cfg, number).hbm
            same(self.hbm[place.start : place.stop], before_hbm[place.start : place.stop], "HBM elsewhere")
        same(self.hbm[: 1 << 19], before_hbm[: 1 << 19], "HBM that is only read")
        half = self.cfg.sbuf.partition_bytes // 2
        same(self.sbuf[:, :half], before_sbuf[:, :half], "SBUF that is only read")


def same(got: np.ndarray, want: np.ndarray, what: str) -> None:
    if not np.array_equal(got, want):
        at = np.argwhere(got != want)
        first = tuple(int(i) for i in at[0])
        one = f"first {first}: {got[first]} instead of {want[first]}"
        raise AssertionError(f"{what}: {len(at)} bytes differ, {one}")
