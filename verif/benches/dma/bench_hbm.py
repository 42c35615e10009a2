"""The DMA against an HBM with latency, shared bandwidth and errors: utilisation, causes, bus errors."""

import logging
import os
from typing import Any

import cocotb
import numpy as np

from rtl.contract.isa import Cause
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from rtl.contract.timing import STALLS, Engine
from verif.agents.axi import HbmAgent
from verif.agents.bench import Bench
from verif.agents.dma_host import DmaHost
from verif.agents.mover_ports import MoverPorts
from verif.agents.stall import never
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.golden.dma import check, copy

RUNS = (Run("dma", faults=("a bus error of a DMA is not seen",)),)

KINDS = ("load", "store", "copy", "both")
COVERAGE = Coverage("dma with hbm", [*(f"{k} at full rate" for k in KINDS), "read error", "write error", "single rows"])
HBM_BYTES = 1 << 21


class HbmBench(Bench):
    """DMA between a quiet SBUF and an HBM as the configuration states it."""

    def __init__(self, dut: Any, bad: range = range(0)):
        super().__init__(dut)
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        cfg = self.cfg
        self.sbuf = self.rng.integers(0, 256, (cfg.partitions, cfg.sbuf.partition_bytes), np.uint8)
        self.hbm = self.rng.integers(0, 256, HBM_BYTES, np.uint8)
        self.host = DmaHost(self)
        self.ports = MoverPorts(self, self.sbuf, never)
        self.agent = HbmAgent(
            self,
            self.hbm,
            prefixes=[f"axi__{i}" for i in range(cfg.hbm.ports)],
            port_bytes=cfg.hbm.port_bytes,
            latency=cfg.latency_cycles,
            bandwidth=cfg.hbm.bytes_per_cycle,
            bad=bad,
        )

    def rows(self, kind: str, index: int, row_bytes: int) -> dict[str, int]:
        """One row for every partition, in the `index`-th stretch of HBM and of the partitions."""
        p = self.cfg.partitions
        half = HBM_BYTES // 2
        stretch = index * p * row_bytes
        read = address(Space.HBM, stretch)
        written = address(Space.HBM, half + stretch)
        at = (index * row_bytes) % (self.cfg.sbuf.partition_bytes // 2)
        d = {"row_bytes": row_bytes, "count0": p, "count1": 1, "count2": 1}
        d |= {"source_step0": row_bytes, "destination_step0": row_bytes}
        if kind == "load":
            upper = self.cfg.sbuf.partition_bytes // 2
            d |= {"source": read, "destination": address(Space.SBUF, upper + at)}
            d |= {"destination_step0": PARTITION_STRIDE_BYTES}
        elif kind == "store":
            d |= {"source": address(Space.SBUF, at), "destination": written}
            d |= {"source_step0": PARTITION_STRIDE_BYTES}
        else:
            d |= {"source": read, "destination": written}
        assert check(d, self.cfg)[0] == Cause.NONE
        return d

    def utilization(self, begin: int, cycles: int, row_bytes: int) -> float:
        """Useful bytes over bytes that HBM could have moved in `cycles`."""
        useful = self.host.read_bytes + self.host.written_bytes - begin
        return useful / (cycles * self.cfg.hbm.bytes_per_cycle)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(kind=KINDS)
async def rows_of_512_bytes_fill_hbm(dut: Any, kind: str) -> None:
    """Over the time in which data move, start-up and last answers apart, HBM is used to 0.9 and more."""
    bench = HbmBench(dut)
    await bench.start()
    cfg = bench.cfg
    row_bytes = int(os.environ.get("ROW_BYTES", "512"))
    size = cfg.partitions * row_bytes
    count = max(4, min(HBM_BYTES // 2, 24 * cfg.latency_cycles * cfg.hbm.bytes_per_cycle) // size)
    count = min(count, HBM_BYTES // 2 // size)
    want_hbm, want_sbuf = bench.hbm.copy(), bench.sbuf.copy()
    for index in range(count):
        each = kind if kind != "both" else ("load", "store")[index % 2]
        d = bench.rows(each, index, row_bytes)
        copy(d, want_hbm, want_sbuf)
        bench.host.submit(index % len(bench.host.rings), [d])
    moved: list[int] = []  # beats so far, each cycle
    while sum(bench.host.completed) < count:
        await bench.edge
        moved.append(bench.agent.moved["read"] + bench.agent.moved["written"])
    first = next(i for i, n in enumerate(moved) if n)
    last = next(i for i, n in enumerate(moved) if n == moved[-1])
    used = bench.utilization(0, last - first, row_bytes)
    whole = bench.utilization(0, len(moved), row_bytes)
    names = {-1: "idle", 0: "busy", **{2 + i: n for i, n in enumerate(STALLS[Engine.DMA])}}
    states = {names[k]: n for k, n in sorted(bench.host.states.items())}
    print(f"UTILISATION {cfg.name} {kind} {row_bytes}: {used:.3f}, with start and end {whole:.3f}, {states}")
    assert np.array_equal(bench.hbm, want_hbm)
    assert np.array_equal(bench.sbuf, want_sbuf)
    beat = cfg.hbm.port_bytes
    assert moved[-1] * beat == bench.host.read_bytes + bench.host.written_bytes
    assert used >= 0.9, f"{kind}: {used:.3f} of the HBM bandwidth"
    COVERAGE.hit(f"{kind} at full rate")


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(kind=("load", "store", "copy"))
async def a_bus_error_halts_the_ring_after_its_descriptor(dut: Any, kind: str) -> None:
    """The others go on, the record names the descriptor and the side, nothing of it is signalled."""
    beat = 16
    half = HBM_BYTES // 2
    where = half + 1024 if kind == "store" else 1024
    bench = HbmBench(dut, bad=range(where, where + beat))
    await bench.start()
    p = bench.cfg.partitions
    index = 1024 // (p * 64) if 1024 >= p * 64 else 0
    for number in range(4):
        d = bench.rows(kind, number, 64)
        d |= {"signal_update": 1, "signal_address": address(Space.SEMAPHORES, 4 * number), "signal_value": 1}
        bench.host.submit(0, [d])
    beside = bench.rows("store" if kind == "load" else "load", 8, 64)
    bench.host.submit(1, [beside])
    await bench.host.idle()
    faulty = bench.rows(kind, index, 64)
    side = "destination" if kind == "store" else "source"
    assert bench.host.fault(0) == (Cause.BUS_ERROR, index, faulty[side]), bench.host.fault(0)
    assert bench.host.signals == [(n, 1, 1) for n in range(index)]
    assert bench.host.completed[:2] == [index, 1]
    assert bench.host.fault(1)[0] == Cause.NONE
    await bench.host.restart()
    assert bench.host.fault(0)[0] == Cause.NONE
    bench.host.submit(0, [bench.rows("load", 9, 64)])
    await bench.host.idle()
    assert bench.host.completed[0] == index + 1
    COVERAGE.hit("write error" if kind == "store" else "read error")


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_bus_error_in_any_place_of_any_ring(dut: Any) -> None:
    """After any number of good descriptors, in any row, read or written."""
    bench = HbmBench(dut)
    rng, rings = bench.rng, len(bench.host.rings)
    await bench.start()
    for number in range(8 * rings):
        ring, good = number % rings, int(rng.integers(7))
        kind = str(rng.choice(KINDS[:3]))
        side = {"load": "source", "store": "destination"}.get(kind) or str(rng.choice(["source", "destination"]))
        some = [bench.rows(kind, index, 64) for index in range(good + 1)]
        row = some[-1][side] + 64 * int(rng.integers(bench.cfg.partitions))
        beat = row + bench.cfg.hbm.port_bytes * int(rng.integers(64 // bench.cfg.hbm.port_bytes))
        bench.agent.bad = range(beat, beat + bench.cfg.hbm.port_bytes)
        bench.host.submit(ring, some)
        await bench.host.idle()
        assert bench.host.fault(ring) == (Cause.BUS_ERROR, good, some[-1][side]), bench.host.fault(ring)
        for other in set(range(rings)) - {ring}:
            assert bench.host.fault(other)[0] == Cause.NONE, f"ring {other} beside {ring}"
        await bench.host.restart()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def single_rows_go_to_every_mover(dut: Any) -> None:
    """Copies of one row from HBM to HBM share the movers, descriptor after descriptor."""
    bench = HbmBench(dut)
    await bench.start()
    engines = bench.cfg.dma.engines
    for index in range(2 * engines):
        bench.host.submit(0, [bench.rows("copy", index, 64) | {"count0": 1}])
    asked = [0] * engines
    while bench.host.completed[0] < 2 * engines:
        await bench.edge
        for i in range(bench.cfg.hbm.ports):
            if int(getattr(dut, f"axi__{i}__arvalid").value) and int(getattr(dut, f"axi__{i}__arready").value):
                asked[int(getattr(dut, f"axi__{i}__arid").value)] += 1
    assert asked == [2] * engines, f"reads of each mover: {asked}"
    COVERAGE.hit("single rows")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def everything_was_seen(dut: Any) -> None:
    """Coverage of the tests above."""
    COVERAGE.require_all()
