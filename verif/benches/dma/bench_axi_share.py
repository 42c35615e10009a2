"""Fetch and DMA on one HBM port: every request arrives unchanged, every beat comes back to its own."""

from collections import deque
from typing import Any

import cocotb
import numpy as np

from rtl.base.axi import FETCH_ID, axi_size
from verif.agents.axi import HbmAgent
from verif.agents.bench import Bench
from verif.agents.stall import randomly
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

RUNS = (Run("axi_share", options={"port_bytes": 32}, faults=EVERY),)

BURSTS = 150
COVERAGE = Coverage("axi share", ["both ask at once", "a request waits", "fetch refuses a beat"])


class Reader:
    """One side: random bursts, and the bytes that must come back, in order."""

    def __init__(self, bench: Bench, prefix: str, ids: range, hbm: np.ndarray, port_bytes: int):
        names = "arvalid arready arid araddr arlen arsize arburst rvalid rready rid rdata rlast"
        self.s = {n: getattr(bench.dut, f"{prefix}__{n}") for n in names.split()}
        self.bench = bench
        self.ids = ids
        self.hbm = hbm
        self.bytes = port_bytes
        self.want: deque[tuple[int, bytes, int]] = deque()
        self.left = BURSTS
        self.s["arvalid"].value = 0
        self.s["rready"].value = 1
        self.s["arsize"].value = axi_size(port_bytes)
        self.s["arburst"].value = 1

    def _ask(self) -> None:
        rng = self.bench.rng
        beats = int(rng.integers(1, 9))
        address = int(rng.integers(0, len(self.hbm) // self.bytes - 8)) * self.bytes
        who = int(rng.choice(self.ids))
        for name, value in (("araddr", address), ("arlen", beats - 1), ("arid", who), ("arvalid", 1)):
            self.s[name].value = value
        for k in range(beats):
            at = address + k * self.bytes
            self.want.append((who, self.hbm[at : at + self.bytes].tobytes(), int(k == beats - 1)))
        self.left -= 1

    async def run(self) -> None:
        """Until every beat has come."""
        rng = self.bench.rng
        s = self.s
        offering = ready = False
        while self.left or self.want or offering:
            await self.bench.edge
            if ready and s["rvalid"].value == 1:
                assert self.want, "a beat that nobody asked for"
                who, data, last = self.want.popleft()
                assert int(s["rid"].value) == who
                assert s["rdata"].value.to_bytes(byteorder="little") == data
                assert int(s["rlast"].value) == last
            elif s["rvalid"].value == 1:
                COVERAGE.hit("fetch refuses a beat")
            if offering and s["arready"].value == 1:
                offering = False
                s["arvalid"].value = 0
            if not offering and self.left and rng.random() < 0.5:
                self._ask()
                offering = True
            # The DMA has room for what it asked; fetch may refuse for a while.
            ready = self.ids.start < FETCH_ID or rng.random() < 0.7
            s["rready"].value = int(ready)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def each_side_gets_its_own_beats(dut: Any) -> None:
    """Random bursts of both sides against an HBM that holds requests back."""
    bench = Bench(dut)
    port_bytes = bench.options["port_bytes"]
    hbm = bench.rng.integers(0, 256, 1 << 14, np.uint8)
    dut.dma__awvalid.value = 0
    dut.dma__wvalid.value = 0
    dut.dma__bready.value = 0
    HbmAgent(bench, hbm, prefixes=["axi"], port_bytes=port_bytes, stall=randomly(bench.rng, 0.4))
    fetch = Reader(bench, "fetch", range(FETCH_ID, FETCH_ID + 4), hbm, port_bytes)
    dma = Reader(bench, "dma", range(0, FETCH_ID), hbm, port_bytes)
    await bench.start()
    tasks = [cocotb.start_soon(side.run()) for side in (fetch, dma)]
    waited: tuple[int, int] | None = None
    while not all(t.done() for t in tasks):
        await bench.edge
        COVERAGE.when(dut.fetch__arvalid.value == 1 and dut.dma__arvalid.value == 1, "both ask at once")
        now = (int(dut.axi__araddr.value), int(dut.axi__arid.value))
        if waited is not None:
            assert dut.axi__arvalid.value == 1 and now == waited, "AR changed before it was taken"
            COVERAGE.hit("a request waits")
        held = dut.axi__arvalid.value == 1 and dut.axi__arready.value == 0
        waited = now if held else None
    COVERAGE.require_all()


@cocotb.test(timeout_time=10, timeout_unit="us")
async def writes_pass_through(dut: Any) -> None:
    """AW, W and B are wires."""
    bench = Bench(dut)
    dut.fetch__arvalid.value = 0
    dut.dma__arvalid.value = 0
    dut.axi__rvalid.value = 0
    await bench.start()
    for _ in range(50):
        down = {n: int(bench.rng.integers(0, 2)) for n in ("awvalid", "wvalid", "wlast", "bready")}
        down |= {"awaddr": int(bench.rng.integers(1 << 40)), "awlen": int(bench.rng.integers(256))}
        down |= {"wdata": int(bench.rng.integers(1 << 60)), "wstrb": int(bench.rng.integers(1 << 16))}
        up = {n: int(bench.rng.integers(0, 2)) for n in ("awready", "wready", "bvalid")}
        up |= {"bid": int(bench.rng.integers(16)), "bresp": int(bench.rng.integers(4))}
        for n, value in down.items():
            getattr(dut, f"dma__{n}").value = value
        for n, value in up.items():
            getattr(dut, f"axi__{n}").value = value
        await bench.edge
        assert {n: int(getattr(dut, f"axi__{n}").value) for n in down} == down
        assert {n: int(getattr(dut, f"dma__{n}").value) for n in up} == up
