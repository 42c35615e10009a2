"""Writes of two classes to another core, of which HBM fails one: the other arrives whole, with its signal."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.isa import Cause, Update
from rtl.contract.memmap import Space, address
from verif.bench import Run
from verif.benches.dma.endpoint_driver import EndpointBench
from verif.benches.dma.requests import CORE
from verif.benches.dma.transfers import FAR
from verif.checks.coverage import Coverage
from verif.golden.endpoint import Peer

RUNS = (
    Run(
        "dma",
        options={"link": True},
        faults=("what HBM fails of a class is not sent, nor what others send",),
        seeds=(1, 2),
    ),
)

COVERAGE = Coverage("endpoint classes", ["good one ends first", "failed one ends first", "several rows"])
BAD = 0x20000
GOOD = 0x30000


def sends(at: int, to: int, rows: int, size: int, class_: int, value: int) -> dict[str, int]:
    """Rows, one behind the other, to HBM of the far core, with a signal there."""
    return {
        "source": address(Space.HBM, at, core_id=CORE),
        "destination": address(Space.HBM, to, core_id=FAR),
        "row_bytes": size,
        "class_": class_,
        **{"count0": rows, "count1": 1, "count2": 1, "source_step0": size, "destination_step0": size},
        **{"signal_update": Update.ADD, "signal_value": value},
        "signal_address": address(Space.SEMAPHORES, 4, core_id=FAR),
    }


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def an_error_of_hbm_is_that_of_its_class(dut: Any) -> None:
    bench = EndpointBench(dut)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    sbuf = np.zeros((cfg.partitions, cfg.sbuf.partition_bytes), np.uint8)
    bench.far = far = Peer(cfg, FAR, np.zeros(cfg.hbm.capacity_mib << 20, np.uint8), sbuf)
    arrived: list[int] = []
    bench.far_checks = [arrived.append]
    bench.agent.bad = range(BAD, BAD + 16)
    for n in range(24):
        rows = [int(r) for r in rng.integers(1, 7, 2)]
        sizes = [int(s) for s in rng.integers(100, 1500, 2)]
        classes = [int(c) for c in rng.permutation(4)[:2]]
        ends: list[int] = []
        bench.host.on_completed = ends.append
        arrived.clear()
        good = sends(GOOD, 0x40000, rows[1], sizes[1], classes[1], 2 * n + 1)
        for ring, d in enumerate((sends(BAD, 0x8000, rows[0], sizes[0], classes[0], 2 * n), good)):
            bench.host.submit(ring, [d])
        await bench.host.idle()
        await bench.quiet()
        assert bench.host.fault(0)[0] == Cause.BUS_ERROR
        assert bench.host.fault(1)[0] == Cause.NONE, f"{bench.host.fault(1)} of class {classes[1]}, {classes[0]} failed"
        assert arrived == [2 * n + 1], f"signals {arrived} arrived"
        size = rows[1] * sizes[1]
        got = far.window(good["destination"], size).tobytes()
        assert got == bench.hbm[GOOD : GOOD + size].tobytes(), f"{rows[1]} rows of {sizes[1]} bytes"
        far.window(good["destination"], size)[:] = 0
        COVERAGE.hit("good one ends first" if size < rows[0] * sizes[0] else "failed one ends first")
        COVERAGE.when(min(rows) > 1, "several rows")
        await bench.host.restart()


@cocotb.test()
async def covered(dut: Any) -> None:
    COVERAGE.require_all()
