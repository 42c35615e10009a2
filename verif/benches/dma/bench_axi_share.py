"""Fetch and DMA on one HBM port: every request arrives unchanged, every beat comes back to its own."""

from collections import deque
from collections.abc import Iterable
from typing import Any

import cocotb
import numpy as np
from amaranth.lib.wiring import In, Out

from rtl.base.axi import FAST_ID, FETCH_ID, LINK_ID, AxiSignature, axi_size
from verif.agents.axi import HbmAgent
from verif.agents.bench import Bench
from verif.agents.stall import randomly
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

RUNS = (Run("axi_share", options={"port_bytes": 32}, faults=EVERY),)

BURSTS = 150
COVERAGE = Coverage(
    "axi share",
    [
        "both ask at once",
        "a request waits",
        "fetch refuses a beat",
        "a beat for a link",
        "a beat for the class that goes first",
    ],
)


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


@cocotb.test(timeout_time=20, timeout_unit="us")
async def every_bit_passes(dut: Any) -> None:
    """Random bits in every field, in every cycle: AR through its register, fetch first; all others as they are."""
    bench = Bench(dut)
    members = AxiSignature(bench.options["port_bytes"]).members
    asks = [n for n in members if n.startswith("ar") and n != "arready"]
    beats = ["rid", "rdata", "rresp", "rlast"]
    writes = [n for n in members if not n.startswith(("ar", "r"))]
    there = [n for n in writes if members[n].flow == Out]
    back = [n for n in writes if members[n].flow == In]

    def drive(side: str, names: Iterable[str]) -> dict[str, int]:
        values = {n: int.from_bytes(bench.rng.bytes(64), "little") % (1 << members[n].shape) for n in names}
        for n, value in values.items():
            getattr(dut, f"{side}__{n}").value = value
        return values

    def seen(side: str, names: Iterable[str]) -> dict[str, int]:
        return {n: int(getattr(dut, f"{side}__{n}").value) for n in names}

    held: dict[str, int] | None = None  # what waits in the register
    for side, names in (("fetch", [*asks, "rready"]), ("dma", [*asks, "rready", *there])):
        for n in names:
            getattr(dut, f"{side}__{n}").value = 0
    await bench.start()
    for _ in range(600):
        fetch, dma = drive("fetch", [*asks, "rready"]), drive("dma", [*asks, "rready", *there])
        hbm = drive("axi", ["arready", "rvalid", *beats, *back])
        await bench.edge
        free = held is None or bool(hbm["arready"])
        assert seen("fetch", ["arready"]) == {"arready": free}
        assert seen("dma", ["arready"]) == {"arready": free and not fetch["arvalid"]}
        assert dut.axi__arvalid.value == (held is not None)
        assert held is None or seen("axi", asks) == held
        owner = "fetch" if FETCH_ID <= hbm["rid"] < FAST_ID else "dma"
        COVERAGE.when(hbm["rvalid"] and hbm["rid"] >= LINK_ID, "a beat for a link")
        COVERAGE.when(hbm["rvalid"] and FAST_ID <= hbm["rid"] < LINK_ID, "a beat for the class that goes first")
        assert dut.axi__rready.value == {"fetch": fetch, "dma": dma}[owner]["rready"]
        for side in ("fetch", "dma"):
            assert getattr(dut, f"{side}__rvalid").value == (hbm["rvalid"] and side == owner), f"rvalid of {side}"
            assert seen(side, beats) == {n: hbm[n] for n in beats}
        assert seen("axi", there) == {n: dma[n] for n in there}
        assert seen("dma", back) == {n: hbm[n] for n in back}
        if free:
            held = next(({n: side[n] for n in asks} for side in (fetch, dma) if side["arvalid"]), None)
    COVERAGE.require_all()
